"""
Which material is where in a hyperspectral image?
=================================================

A hyperspectral camera measures a spectrum in each pixel. Materials differ in the shape of their spectra, but light and
noise change them too: pixel by pixel the map is full of specks. A pixel described by its surroundings gives fields.
"""

import matplotlib.pyplot as plt
import numpy as np

from subspaces import cluster_image
from subspaces.datasets import make_cube
from subspaces.inspection.plots import LabelMapDisplay, SpectraDisplay
from subspaces.metrics import accuracy, best_matching

values, truth, wavelengths = make_cube((60, 60), n_bands=100, n_materials=5, random_state=1)
print("rows, columns, bands:", values.shape)

# %%
# A made image of five materials whose spectra differ by a few percent. Left: one band of it, as a grey picture. Right:
# the spectra of six pixels. Light scales a whole spectrum, so spectra are compared by their angle: each is scaled to
# length 1 first.
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].imshow(values[:, :, 40], cmap="gray")
axes[0].set_title(f"{wavelengths[40]:.0f} nm")
for row, column in np.random.default_rng(0).integers(0, 60, (6, 2)):
    axes[1].plot(wavelengths, values[row, column], linewidth=0.8)
axes[1].set(title="six pixels", xlabel="wavelength (nm)")

# %%
# The same method twice: each pixel alone, and with the 7 × 7 pixels around it, which is the default.
alone = cluster_image(values, 5, patch_size=1)
around = cluster_image(values, 5)
maps = {"truth": truth}
for title, found in (("spectra alone", alone), ("with surroundings", around)):
    score = 100 * accuracy(truth.ravel(), found.labels.ravel())
    maps[f"{title}: {score:.1f} %"] = best_matching(truth.ravel(), found.labels.ravel()).reshape(truth.shape)
fig, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for ax, (title, labels) in zip(axes, maps.items(), strict=True):
    LabelMapDisplay.from_predictions(labels, ax=ax)
    ax.set_title(title)

# %%
# What a cluster is made of is told by its mean spectrum; the band is one standard deviation of its pixels.
mean, spread = around.spectra()
display = SpectraDisplay(mean, spread, wavelengths, "nm").plot()

# %%
# A large image has too many pixels for a graph of all of them. Superpixels, small areas of similar pixels, stand for
# them; above 10,000 pixels this happens by itself.
areas = cluster_image(values, 5, n_superpixels=400)
print(f"{len(areas.X)} superpixels: {100 * accuracy(truth.ravel(), areas.labels.ravel()):.1f} %")

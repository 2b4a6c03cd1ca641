r"""
What do ``reg`` and ``n_nonzero`` do?
=====================================

The two numbers of KTRR: ``reg`` (λ) says how hard coefficients are held down while a sample is represented,
``n_nonzero`` (η) how many of them are kept for the graph. The paper's advice, η about the dimension of the subspaces
and λ anywhere reasonable, can be looked at: accuracy over a grid, for two kinds of data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from subspaces import KTRR
from subspaces.datasets import make_subspaces
from subspaces.metrics import accuracy

digits = load_digits()
data = {
    "digits (every third)": (digits.data[::3], digits.target[::3]),
    "5 subspaces of dimension 5 in R¹⁵": make_subspaces(5, 5, 15, 80, noise=0.05, random_state=0),
}
regs = [0.001, 0.01, 0.1, 1, 10, 100]
n_nonzeros = [2, 3, 5, 8, 12, 20, 40]

fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for ax, (name, (X, y)) in zip(axes, data.items(), strict=True):
    k = len(set(y))
    grid = np.array(
        [
            [
                accuracy(y, KTRR(k, scaling="unit", reg=reg, n_nonzero=eta, n_init=5).fit_predict(X))
                for eta in n_nonzeros
            ]
            for reg in regs
        ]
    )
    ax.imshow(100 * grid, cmap="cividis", vmin=40, vmax=100, aspect="auto")
    for (i, j), value in np.ndenumerate(grid):
        ax.text(j, i, f"{100 * value:.0f}", ha="center", va="center", color="black" if value > 0.75 else "white")
    ax.set(title=f"{name}: accuracy, %", xlabel="n_nonzero (η)", ylabel="reg (λ / mean of K's diagonal)")
    ax.set_xticks(range(len(n_nonzeros)), n_nonzeros)
    ax.set_yticks(range(len(regs)), regs)

# %%
# Read along the rows, then along the columns. Two coefficients are too few anywhere: the graph falls to pieces. On
# digits, from five on, neither number matters much. On the subspaces λ decides: while it is small the coefficients of
# other subspaces are zero and η may be anything; when it is large they are not, and only an η near the dimension, 5,
# keeps them out. That is the robustness that truncation buys, and its limit (:doc:`/choosing`).

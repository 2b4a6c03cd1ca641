"""The layers of the deep methods: gradients against finite differences, closed forms against the shallow code."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install subspaces[deep]")

from subspaces.deep.autoencoder import Autoencoder, convolutional, default_layers, dense  # noqa: E402
from subspaces.deep.dasc import cluster_bases, discriminator_step, energies, sample_fakes  # noqa: E402
from subspaces.deep.encoded import StructuredAutoencoder  # noqa: E402
from subspaces.deep.self_expressive import (  # noqa: E402
    SelfExpressiveAutoencoder,
    codes_inverse,
    ridge_rebuilt,
    unit_rows,
)
from subspaces.graphs.rules import truncate  # noqa: E402
from subspaces.representation.ridge import ridge  # noqa: E402


@pytest.fixture
def codes(rng):
    return torch.from_numpy(rng.normal(size=(12, 5)))


def identity_network(n, norm="l2"):
    return SelfExpressiveAutoencoder(Autoencoder(), n, norm, torch.float64)


# -------------------------------------------------------------------- gradients


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("reg", [0.1, 1.0])
def test_gradient_of_the_ktrr_layer(codes, kernel, reg):
    codes.requires_grad_()
    assert torch.autograd.gradcheck(ridge_rebuilt, (codes, kernel, reg))
    assert torch.autograd.gradcheck(codes_inverse, (codes, kernel, reg))


def test_hollow_gradient_has_no_diagonal(codes):
    C = identity_network(len(codes), "l1").coefficients
    (C.T @ codes).square().sum().add(codes.sum() * C.sum()).backward()
    gradient = C.grad
    assert (gradient.diagonal() == 0).all()
    assert (gradient != 0).sum() == len(codes) * (len(codes) - 1)


def test_gradient_of_the_loss_is_the_stated_one(codes, rng):
    """2 λ₁ C − λ₂ Z(Z − CᵀZ)ᵀ for the terms with C alone; the reconstruction adds the same with weight 1."""
    network = identity_network(len(codes))
    C = torch.from_numpy(rng.normal(size=(len(codes),) * 2))
    network.coefficients.data.copy_(C)
    network.loss(codes, 0.7, 3.0).backward()
    residual = codes - C.T @ codes
    expected = 2 * 0.7 * C - (3.0 + 1) * codes @ residual.T
    torch.testing.assert_close(network.coefficients.grad, expected)


# -------------------------------------------------------------------- equal to the shallow methods


# -------------------------------------------------------------------- autoencoders


@pytest.mark.parametrize("shape", [(32, 32, 1), (48, 42, 1), (28, 28, 1), (64, 48, 3), (7, 5, 1), (1, 9, 2)])
def test_autoencoder_round_trip_of_shapes(shape):
    rows = torch.rand(3, int(np.prod(shape)))
    autoencoder = convolutional(shape, *default_layers(shape), nonnegative=True)
    codes = autoencoder.encode(rows)
    assert codes.ndim == 2
    assert autoencoder.decode(codes).shape == rows.shape
    assert (autoencoder.decode(codes) >= 0).all()


@pytest.mark.parametrize(
    ("shape", "channels", "kernel_sizes", "size"),
    [((48, 42, 1), None, None, 1080), ((32, 32, 1), None, None, 3840), ((32, 32, 1), (3, 3, 5), (3, 3, 3), 80)],
)
def test_published_codes(shape, channels, kernel_sizes, size):
    if channels is None:
        channels, kernel_sizes = default_layers(shape)
    autoencoder = convolutional(shape, channels, kernel_sizes, nonnegative=True)
    assert autoencoder.encode(torch.zeros(1, shape[0] * shape[1])).shape == (1, size)


def test_layout_of_the_rows():
    """A row is an image with its channels last: a kernel that copies pixels copies the right ones."""
    autoencoder = convolutional((4, 6, 2), (2,), (1,), nonnegative=False)
    with torch.no_grad():
        autoencoder.encoder[1].weight.copy_(torch.eye(2)[:, :, None, None])
    images = torch.rand(3, 4, 6, 2)
    codes = autoencoder.encode(images.flatten(1)).view(3, 2, 3, 2)
    torch.testing.assert_close(codes, images[:, ::2, ::2])


# -------------------------------------------------------------------- DASC


def test_fakes_lie_in_their_cluster(codes):
    labels = torch.tensor([0] * 3 + [1] * 4 + [2] * 5)
    fakes, owners = sample_fakes(codes, labels, 0.5, torch.Generator().manual_seed(0))
    assert owners.tolist() == [0] * 2 + [1] * 2 + [2] * 3
    bases = torch.zeros(3, 5, 5, dtype=torch.float64)
    for cluster in range(3):
        members = codes[labels == cluster]
        for fake in fakes[owners == cluster]:
            weights = torch.linalg.lstsq(members.T, fake).solution
            torch.testing.assert_close(members.T @ weights, fake)
    assert bases.shape == cluster_bases(codes, labels, bases).shape


def test_energy_is_zero_inside_and_bases_are_orthonormal(codes):
    labels = torch.tensor([0] * 6 + [1] * 6)
    low = codes.clone()
    low[:6, 2:] = 0  # the first cluster lies in a plane
    bases = cluster_bases(low, labels, torch.zeros(2, 5, 2, dtype=torch.float64))
    torch.testing.assert_close(bases.mT @ bases, torch.eye(2, dtype=torch.float64).expand(2, 2, 2))
    assert energies(low, bases[labels])[:6].max() < 1e-20
    assert energies(low, bases[labels])[6:].min() > 1e-6
    few = cluster_bases(low[:2], labels[[0, 6]], torch.zeros(2, 5, 3, dtype=torch.float64))
    torch.testing.assert_close(few.mT @ few, torch.eye(3, dtype=torch.float64).expand(2, 3, 3))


def test_discriminator_moves_towards_trusted_codes(rng):
    codes = unit_rows(torch.from_numpy(rng.normal(size=(40, 6)) * [3, 2, 1, 0.1, 0.1, 0.1]))
    labels = torch.zeros(40, dtype=torch.int64)
    bases = torch.linalg.qr(torch.from_numpy(rng.normal(size=(1, 6, 2))))[0]
    fakes, owners = sample_fakes(codes, labels, 0.9, torch.Generator().manual_seed(0))
    before = energies(codes, bases[labels]).sort().values[: len(fakes)].mean()
    far = 100 * fakes  # beyond every margin: the hinge is zero and has no say
    after_bases = bases
    for _ in range(20):
        after_bases = discriminator_step(after_bases, codes, labels, far, owners, separation=0.1)
    after = energies(codes, after_bases[labels]).sort().values[: len(fakes)].mean()
    assert after <= before
    torch.testing.assert_close(after_bases.mT @ after_bases, torch.eye(2, dtype=torch.float64)[None])


# -------------------------------------------------------------------- StructAE


@pytest.fixture
def structured(rng):
    rows = rng.normal(size=(15, 6))
    network = StructuredAutoencoder(dense(6, (4,)), 15, 3, torch.float64).double()
    prior = truncate(ridge(rows @ rows.T, reg=0.1), 3)
    network.set_prior(prior)
    return network, torch.from_numpy(rows), prior


def test_batches_of_structured_loss_sum_to_the_whole(structured):
    network, rows, _ = structured
    network.loss(rows, torch.arange(15), 2.0, 0.5).backward()
    whole = [weights.grad.clone() for weights in network.parameters()]
    network.zero_grad()
    for batch in torch.randperm(15, generator=torch.Generator().manual_seed(0)).split(4):
        network.loss(rows, batch, 2.0, 0.5).backward()  # gradients add up
    for part, expected in zip(network.parameters(), whole, strict=True):
        torch.testing.assert_close(part.grad, expected)


def test_structure_term_is_the_residual_of_the_prior(structured):
    network, rows, prior = structured
    with torch.no_grad():
        codes = network.autoencoder.encode(rows).numpy()
        both = network.loss(rows, torch.arange(15), 2.0, 0.0) - network.loss(rows, torch.arange(15), 0.0, 0.0)
    residual = codes - prior.T @ codes
    np.testing.assert_allclose(both.item(), np.sum(residual**2))

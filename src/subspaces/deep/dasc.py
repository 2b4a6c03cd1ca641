"""DASC: DSC-Net with an adversary that keeps one subspace per cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from torch import Tensor

from subspaces.deep.autoencoder import Autoencoder
from subspaces.deep.base import ELSEWHERE, DeepClusterer
from subspaces.deep.self_expressive import SelfExpressive, SelfExpressiveAutoencoder, unit_rows
from subspaces.deep.training import Training
from subspaces.engine import stages
from subspaces.engine.plan import Plan
from subspaces.engine.stages import Evidence
from subspaces.estimators.base import COUNT
from subspaces.kernels import Linear
from subspaces.kernels.scaling import Scaling
from subspaces.representation.coefficients import Coefficients, from_dense
from subspaces.spectral.partition import GRAPH_CUTS
from subspaces.utils.decompositions import svd
from subspaces.utils.process import quiet
from subspaces.utils.types import Labels


class AdversarialAutoencoder(SelfExpressiveAutoencoder):
    """DSC-Net plus what the adversary knows: the clusters of the samples and an orthonormal basis of each.

    ``shape`` is that of the bases: number of clusters, length of a code, dimension.
    """

    labels: Tensor
    bases: Tensor

    def __init__(
        self, autoencoder: Autoencoder, shape: tuple[int, int, int], n_samples: int, dtype: torch.dtype
    ) -> None:
        super().__init__(autoencoder, n_samples, "l2", dtype)
        # buffers: saved with the weights, not touched by the generator's optimiser
        self.register_buffer("labels", torch.zeros(n_samples, dtype=torch.int64))
        self.register_buffer("bases", torch.zeros(shape, dtype=dtype))


@dataclass(eq=False, repr=False, kw_only=True)
class DASC(SelfExpressive, DeepClusterer):
    """Deep adversarial subspace clustering (DASC): DSC-Net against a discriminator made of subspaces.

    After DSC-Net's training, the current clusters get a basis U_k each. Random combinations of the codes of a cluster
    ("fakes") should lie in its subspace: the discriminator turns U_k towards the codes it trusts and away from the
    fakes, the network makes the fakes' residual ‖z − U_k U_kᵀ z‖² small. Clusters are recomputed now and then.

    The loss of :class:`DSCNet` with ``norm="l2"`` remains; `norm` must stay "l2". `n_clusters` is needed, and the graph
    and cut serve the clusterings within.

    Parameters
    ----------
    adversarial : float, default=1
        Weight of the fakes' residuals relative to that of the self-expression term.
    adversarial_epochs : int, default=30
        Largest number of epochs of the game; `epochs` is the number without it.
    interval : int, default=10
        Epochs between two clusterings.
    rank : int, default=5
        Dimension of the clusters' subspaces.
    fake_share : float in (0, 1], default=0.9
        Fakes per member of a cluster.
    discriminator_steps : int, default=5
        Steps of the discriminator per step of the network.
    separation : float, default=0.1
        Weight of ‖U_kᵀU_l‖², which keeps the subspaces apart.
    norm, norm_weight, error_weight, epochs
        Of the loss of :class:`DSCNet`: the norm of C, its weight, that of the self-expression, largest number of steps.

    Examples
    --------
    >>> from subspaces.deep import DASC
    >>> X = [[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]]
    >>> DASC(n_clusters=2, channels=(), rank=1, graph="symmetric", adversarial_epochs=5).fit_predict(X)
    array([0, 0, 0, 1, 1, 1])
    """

    adversarial: float = 1.0
    adversarial_epochs: int = 30
    interval: int = 10
    rank: int = 5
    fake_share: float = 0.9
    discriminator_steps: int = 5
    separation: float = 0.1

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [COUNT],
        "adversarial": [Interval(Real, 0, None, closed="left")],
        "adversarial_epochs": [COUNT],
        "interval": [COUNT],
        "rank": [COUNT],
        "fake_share": [Interval(Real, 0, 1, closed="right")],
        "discriminator_steps": [COUNT],
        "separation": [Interval(Real, 0, None, closed="left")],
    }
    _untrained = ELSEWHERE  # the graph and the cut take part in the training here
    _cost = "DSC-Net, and a spectral clustering every few epochs"
    _reference = "Zhou, Hou, Feng: Deep adversarial subspace clustering, CVPR 2018"

    def _network(self, autoencoder: Autoencoder, rows: Tensor) -> AdversarialAutoencoder:
        if self.norm != "l2":
            raise ValueError(f'norm={self.norm!r}: DASC is defined with norm="l2".')
        assert self.n_clusters is not None
        with torch.no_grad():
            code_size = autoencoder.to(rows).encode(rows[:1]).shape[1]
        shape = (self.n_clusters, code_size, min(self.rank, code_size))
        return AdversarialAutoencoder(autoencoder, shape, len(rows), rows.dtype)

    def _train(self, training: Training, rows: Tensor, network: Any) -> Coefficients:
        super()._train(training, rows, network)
        plan = replace(self._outline(rows.cpu().numpy()), seed=training.seed)

        def play(epoch: int) -> None:
            with torch.no_grad():
                codes = unit_rows(network.autoencoder.encode(rows))
            if epoch % self.interval == 0:
                self._recluster(network, codes, plan, first=epoch == 0)
            for _ in range(self.discriminator_steps):
                fakes, owners = sample_fakes(codes, network.labels, self.fake_share, training.generator)
                network.bases = discriminator_step(
                    network.bases, codes, network.labels, fakes, owners, separation=self.separation
                )

        def loss(_: Tensor) -> Tensor:
            codes = network.autoencoder.encode(rows)
            fakes, owners = sample_fakes(codes, network.labels, self.fake_share, training.generator)
            residuals = energies(fakes, network.bases[owners]).sum()
            weight = 0.5 * self.error_weight * self.adversarial
            return network.loss(rows, self.norm_weight, self.error_weight) + weight * residuals

        training.stage("adversarial", loss, self.adversarial_epochs, before_epoch=play)
        return from_dense(network.matrix())

    def _recluster(self, network: AdversarialAutoencoder, codes: Tensor, plan: Plan, *, first: bool) -> None:
        """Recompute clusters from the current C, unless one would be empty, and their bases from the codes."""
        assert self.n_clusters is not None
        # in double precision: a label that hangs on the last digit of a float32 would change the rest of the training
        C = network.matrix().astype(np.float64, copy=False)
        labels = labels_of(from_dense(C), plan)
        if not first and len(np.unique(labels)) < self.n_clusters:
            return
        network.labels = torch.from_numpy(labels.astype(np.int64)).to(codes.device)
        network.bases = cluster_bases(codes, network.labels, network.bases)


def labels_of(coefficients: Coefficients, plan: Plan) -> Labels:
    """Run the stages from C to labels."""
    assert plan.n_clusters is not None
    graph = stages.graph(coefficients, Evidence(Scaling(), Linear()), plan)
    with quiet():  # of a graph in pieces: it is cut many times before the one that counts
        embedding = None if plan.cut.method in GRAPH_CUTS else stages.embed(graph.W, plan.n_clusters)
    return stages.cut(graph, embedding, plan)


def energies(points: Tensor, bases: Tensor) -> Tensor:
    """Return ‖z − U Uᵀ z‖² of each sample to its own basis (n × q × r)."""
    inside = torch.einsum("nq,nqr->nr", points, bases)
    return (points - torch.einsum("nr,nqr->nq", inside, bases)).square().sum(1)


def sample_fakes(codes: Tensor, labels: Tensor, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw ⌈share · m⌉ random combinations of the m codes of every cluster, and the clusters they belong to.

    Weights are uniform and sum to one: without this the group that proposed the method found training unstable.
    """
    fakes, owners = [], []
    for cluster in labels.unique():
        members = codes[labels == cluster]
        weights = torch.rand(int(np.ceil(share * len(members))), len(members), generator=generator, dtype=codes.dtype)
        weights = weights.to(codes.device)
        fakes.append((weights / weights.sum(1, keepdim=True)) @ members)
        owners.append(cluster.expand(len(weights)))
    return torch.cat(fakes), torch.cat(owners)


def discriminator_step(
    bases: Tensor,
    codes: Tensor,
    labels: Tensor,
    fakes: Tensor,
    owners: Tensor,
    *,
    separation: float,
    step: float = 0.1,
) -> Tensor:
    """Take one gradient step on the bases, then QR: they stay orthonormal without the published penalty on U_kᵀU_k − I.

    Minimises, per cluster, mean E(real) + mean max(0, margin − E(fake)) + separation · Σ ‖U_kᵀU_l‖². Real are the codes
    of the cluster with the smallest residuals, as many as fakes; the margin is the median residual of all members, so
    that the hinge means the same at any scale. Nothing is kept between steps, so a checkpoint needs only the bases.
    """
    bases = bases.detach().requires_grad_()
    codes, fakes = codes.detach(), fakes.detach()
    loss = torch.zeros((), dtype=codes.dtype, device=codes.device)
    clusters = labels.unique()
    for cluster in clusters:
        members, invented = codes[labels == cluster], fakes[owners == cluster]
        real = energies(members, bases[cluster].expand(len(members), -1, -1))
        fake = energies(invented, bases[cluster].expand(len(invented), -1, -1))
        margin = real.detach().median()
        trusted = real.sort().values[: len(invented)]
        loss = loss + (trusted.mean() + (margin - fake).clamp_min(0).mean()) / len(clusters)
    products = torch.einsum("kqr,lqs->klrs", bases, bases).square().sum((2, 3))
    loss = loss + separation * (products.sum() - products.diagonal().sum())
    (gradient,) = torch.autograd.grad(loss, bases)
    return torch.linalg.qr(bases.detach() - step * gradient)[0]


def cluster_bases(codes: Tensor, labels: Tensor, old: Tensor) -> Tensor:
    """Return leading singular vectors of each cluster's codes; clusters without samples keep the old basis."""
    bases = old.clone()
    rank = old.shape[2]
    for cluster in labels.unique():
        # by SciPy, with its second driver where the first fails
        right = torch.from_numpy(svd(codes[labels == cluster].numpy(force=True))[2]).to(codes)
        found = right[:rank].T
        bases[cluster, :, : found.shape[1]] = found
        # fewer samples than dimensions: any further directions, made orthonormal with the rest
        bases[cluster, :, found.shape[1] :] = torch.eye(len(found), rank - found.shape[1]).to(found)
    return torch.linalg.qr(bases)[0]

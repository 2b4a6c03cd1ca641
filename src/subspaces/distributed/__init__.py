"""The two routes to many points on Dask: the same labels from chunks and worker processes as from one array.

*Sampled* (EKTRR and every :class:`~subspaces.estimators.sampled.SampledClusterer`): the landmarks are fetched from the
chunks and fitted here, then each worker labels its chunks. *Graph* (KTRR): the points become one file that all workers
map into memory, each computes the coefficients of some points, and the graph is cut here.

In both the estimator's own plan is run; only the stage that costs most is computed elsewhere. So the labels are those
of the same estimator in memory, for any chunk size and any number of workers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

try:
    import distributed as dask_distributed
    from distributed.comm import CommClosedError
except ImportError as error:
    raise ImportError('subspaces.distributed needs Dask: pip install "subspaces[dask]"') from error

from subspaces.distributed._files import remove_leftovers
from subspaces.distributed._graph import fit_graph
from subspaces.distributed._input import as_dask_array
from subspaces.distributed._sampled import fit_sampled
from subspaces.distributed._tasks import Progress, Workers
from subspaces.estimators.ktrr import KTRR
from subspaces.estimators.sampled import Sampled
from subspaces.numerics.types import Labels

__all__ = ["connect", "fit_predict"]


def fit_predict(
    estimator: Any,
    X: Any,
    *,
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Labels:
    """Cluster the rows of X on the workers of a Dask cluster.

    Parameters
    ----------
    estimator : KTRR, EKTRR, SSSC, SLSR, SLRR or SampledClusterer
        Is fitted, as by its own ``fit``. KTRR's graph is computed by the workers where its solver is the two-scale one;
        the other solvers, for few points or few features, run in this process.
    X : dask array, Dask DataFrame, Zarr array, array, or path of a ``.npy``, ``.zarr`` or ``.parquet`` file
        Points as rows, chunked in any way; unknown chunk sizes are counted first.
    client : distributed.Client or None
        What :func:`connect` gives. None takes the client that is in use, or starts workers on this machine.
    checkpoint : path of a folder or None
        Where finished pieces are kept; a second call with the same points and parameters goes on from there. Workers
        on other machines must see it under the same path. None is a temporary folder.
    progress : callable or None
        Called as ``progress(done, total)`` after each task of the stage that the workers compute.

    Returns
    -------
    array of shape (n,)
        A NumPy array of labels, also kept as ``estimator.labels_``.

    Examples
    --------
    >>> import dask.array as da
    >>> from subspaces.distributed import connect, fit_predict
    >>> from subspaces import EKTRR
    >>> X = da.random.default_rng(0).normal(size=(20_000, 3), chunks=(5_000, 3))
    >>> with connect(n_workers=1) as client:
    ...     labels = fit_predict(EKTRR(n_clusters=2, n_landmarks=100), X, client=client)
    >>> labels.shape
    (20000,)
    """
    if not isinstance(estimator, KTRR | Sampled):
        raise TypeError(
            f"estimator must be KTRR or one that samples (EKTRR, SSSC, SLSR, SLRR, SampledClusterer); "
            f"got {type(estimator).__name__}. Fit it in memory, or wrap it: SampledClusterer(clusterer=...)."
        )
    with ExitStack() as stack:
        workers = Workers(stack.enter_context(_in_use(client)), progress)
        stack.enter_context(_lost_named(workers.client, checkpoint))
        if checkpoint is None and isinstance(estimator, KTRR):
            temporary = tempfile.TemporaryDirectory(prefix="subspaces-", ignore_cleanup_errors=True)
            checkpoint = stack.enter_context(temporary)
        folder = None if checkpoint is None else _shared_folder(Path(checkpoint), workers)
        points = as_dask_array(X, workers)
        if isinstance(estimator, Sampled):
            fit_sampled(estimator, points.array, workers, folder)
        else:
            assert folder is not None
            fit_graph(estimator, points, workers, folder)
    if points.names is not None:
        estimator.feature_names_in_ = points.names
    labels: Labels = estimator.labels_
    return labels


@contextmanager
def connect(address: str | None = None, n_workers: int | None = None, memory: int | None = None) -> Iterator[Any]:
    """A client of the scheduler at `address`, or of workers started on this machine and stopped at the end.

    Parameters
    ----------
    address : such as ``"tcp://10.0.0.5:8786"``; None starts worker processes here
    n_workers : worker processes to start, one thread each; None is one per core
    memory : bytes that the workers started may take together; None is what the machine has

    Notes
    -----
    A script that starts workers must do so under ``if __name__ == "__main__":``, because each worker imports the
    script. Whoever reaches a scheduler can run programs on its workers: connect only to one that you trust.
    """
    if address is not None:
        if n_workers is not None:
            raise ValueError(f"n_workers={n_workers} has no meaning with address={address!r}: its workers run already.")
        try:
            client = dask_distributed.Client(address)
        except OSError as error:
            raise ConnectionError(
                f"no Dask scheduler answers at address={address!r}: check it, or start one with `dask scheduler`."
            ) from error
        with client:
            yield client
        return
    n_workers = n_workers or os.cpu_count() or 1
    cluster = dask_distributed.LocalCluster(
        n_workers=n_workers,
        memory_limit="auto" if memory is None else memory // n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",  # a free port, for this machine only; None would try port 8787 and warn
    )
    with cluster, dask_distributed.Client(cluster) as client:
        yield client


@contextmanager
def _in_use(client: Any) -> Iterator[Any]:
    """The given client, the one in use, or a new one for this call alone; in any case the current one inside."""
    if client is None:
        try:
            client = dask_distributed.get_client()
        except ValueError:
            with connect() as client, client.as_current():
                yield client
            return
    with client.as_current():
        yield client


@contextmanager
def _lost_named(client: Any, checkpoint: Any) -> Iterator[None]:
    """Say what it means when tasks are cancelled or the line is dead: that the scheduler is gone."""
    address = getattr(getattr(client, "scheduler", None), "address", "unknown")
    kept = "what was finished is kept there" if checkpoint else "with checkpoint=folder it would go on from there"
    try:
        yield
    except (CancelledError, CommClosedError, TimeoutError) as error:
        raise ConnectionError(
            f"the Dask scheduler at {address} was lost ({' '.join(str(error).split())[:120]}): start it and its "
            f"workers and run the same again; {kept}."
        ) from error


def _shared_folder(folder: Path, workers: Workers) -> Path:
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    blind = [address for address, found in workers.client.run(os.path.isdir, str(folder)).items() if not found]
    if blind:
        raise ValueError(
            f"the folder checkpoint={str(folder)!r} is not visible to {len(blind)} of the workers ({blind[0]}, ...): "
            "name one on a file system that this machine and all workers share."
        )
    remove_leftovers(folder)
    return folder

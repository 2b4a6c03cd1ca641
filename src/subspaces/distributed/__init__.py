"""Cluster more samples than one process can hold: through files in this process, or on a Dask cluster.

*Sampled* (EKTRR and every :class:`~subspaces.estimators.sampled.SampledClusterer`): the landmarks are fetched from the
chunks and fitted here, then the workers label the chunks. The labels are those of the same estimator in memory.

*Graph* (KTRR): up to 200,000 samples are fetched and fitted here, with the labels of the same estimator in memory.
Above, no process holds all samples or the graph: samples are sorted into shards of neighbours, tasks compute blocks of
the graph, and only the graph between some thousand groups of samples is cut here.

Either way labels are the same for any chunks and any number of workers.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from subspaces.distributed._input import as_source
from subspaces.distributed._output import Output
from subspaces.distributed._sampled import fit_sampled
from subspaces.distributed._sharded import fit_graph
from subspaces.distributed._tasks import DaskWorkers, ThisProcess, Workers
from subspaces.estimators.ktrr import KTRR
from subspaces.estimators.sampled import Sampled
from subspaces.utils.atomic import remove_leftovers
from subspaces.utils.types import Labels

__all__ = ["connect", "fit_predict"]


def fit_predict(
    estimator: Any,
    X: Any,
    *,
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Labels | None:
    """Cluster the rows of X on the workers of a Dask cluster, or out of core in this process.

    Parameters
    ----------
    estimator : KTRR, EKTRR, SSSC, SLSR, SLRR or SampledClusterer
        Is fitted, as by its own ``fit``. KTRR's graph is computed in shards from 200,000 samples on where its solver is
        the two-scale one; the other solvers, for few features, run in this process.
    X : dask array, Dask DataFrame, Zarr array, array, or path
        Samples as rows, chunked in any way; unknown chunk sizes are counted first. A path is that of a ``.npy`` or
        ``.parquet`` file, or of a folder of ``.parquet`` or ``.csv`` files.
    client : distributed.Client, "here" or None
        What :func:`connect` gives. None takes the client that is in use, or starts workers on this machine;
        ``"here"`` computes in this process, piece by piece and without Dask: X is a path or an array.
    checkpoint : path of a folder or None
        Where finished pieces are kept; a second call with the same samples and parameters goes on from there. Workers
        on other machines must see it under the same path. None is a temporary folder.
    output : path of a file or None
        Where to leave the labels: ``.npy`` or ``.parquet`` (columns ``row`` and ``cluster``). One that is
        there is replaced, but never X.

    Returns
    -------
    array of shape (n,) or None
        Labels, also ``estimator.labels_``; a memory map of the `output`, nothing where that is not ``.npy``.

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
    written = Output(None if output is None else Path(output).expanduser().resolve(), X)
    with ExitStack() as stack:
        workers = stack.enter_context(_computing(client, checkpoint))
        if checkpoint is None and isinstance(estimator, KTRR):
            checkpoint = stack.enter_context(_temporary_folder())
        folder = None if checkpoint is None else _shared_folder(Path(checkpoint), workers)
        source = as_source(X, workers)
        if isinstance(estimator, Sampled):
            fit_sampled(estimator, source, workers, folder, written)
        else:
            assert folder is not None
            fit_graph(estimator, source, workers, folder, written)
    if source.names is not None:
        estimator.feature_names_in_ = source.names
    if written.path is not None and written.path.suffix != ".npy":
        return None
    labels: Labels = estimator.labels_
    return labels


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Make a folder for one run; tasks that were cancelled may still be writing to it when it is removed."""
    folder = Path(tempfile.mkdtemp(prefix="subspaces-"))
    try:
        yield folder
    finally:
        for _ in range(50):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)


@contextmanager
def _computing(client: Any, checkpoint: Any) -> Iterator[Workers]:
    """Give this process, or the workers of a client: the given one, the one in use, or a new one for this call."""
    if isinstance(client, str):
        if client != "here":
            raise ValueError(f'client must be a Dask client, None or "here"; got {client!r}. connect() makes a client.')
        yield ThisProcess()
        return
    with ExitStack() as stack:
        if client is None:
            try:
                client = _dask().get_client()
            except ValueError:
                client = stack.enter_context(connect())
        stack.enter_context(client.as_current())
        from distributed.comm import CommClosedError

        try:
            yield DaskWorkers(client)
        except (CancelledError, CommClosedError, TimeoutError) as error:
            address = getattr(getattr(client, "scheduler", None), "address", "unknown")
            kept = (
                "what was finished is kept there" if checkpoint else "with checkpoint=folder it would go on from there"
            )
            raise ConnectionError(
                f"the Dask scheduler at {address} was lost ({' '.join(str(error).split())[:120]}): start it and its "
                f"workers and run the same again; {kept}."
            ) from error


@contextmanager
def connect(address: str | None = None, n_workers: int | None = None, memory: int | None = None) -> Iterator[Any]:
    """Connect to the scheduler at `address`, or start workers on this machine and stop them at the end.

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
    dask_distributed = _dask()
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


def _dask() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError('subspaces.distributed needs Dask: pip install "subspaces[dask]"') from error
    return distributed


def _shared_folder(folder: Path, workers: Workers) -> Path:
    folder = folder.expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    blind = workers.blind(folder)
    if blind:
        raise ValueError(
            f"the folder checkpoint={str(folder)!r} is not visible to {len(blind)} of the workers ({blind[0]}, ...): "
            "name one on a file system that this machine and all workers share."
        )
    remove_leftovers(folder)
    return folder

r"""Coverage-guided fuzzing of every reader with atheris, for a bounded time.

``python tests/fuzz/run.py --minutes 10 [--target npz --target csv]`` gives each target an equal share of the minutes,
in a process of its own with 4 GB of memory, and prints a table; ``benchmarks/results/fuzz.jsonl`` gets a line for
each target, ``--work`` (by default ``build/fuzz``) keeps the corpus, from which the next run goes on, and the inputs
of the findings. ``--replay FILE`` runs one input again; ``--total`` prints the table of all runs so far.

It needs ``pip install atheris`` (Linux, Python 3.11 to 3.13), which nothing else here does. A finding does not end a
run: it is written down once (by its kind and place) and the smallest input of it is kept. Only what kills the process
(a crash in C, more than 20 seconds, more than 2.5 GB) does; the run then starts again with what time is left. Every
finding becomes a test in ``tests/fuzz/test_fuzz_findings.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import inspect
import json
import os
import re
import resource
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parents[1]), str(ROOT / "src")]
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}

PACKAGES = {
    "subspaces.app.files": "_read _text _columns _dataset _arrays _missing _numpy _matlab _parquet _images _sort",
    "subspaces.datasets": "_formats loaders",
    "subspaces.distributed": "_files _input",
    "PIL": "Image ImageFile ImageOps PngImagePlugin JpegImagePlugin TiffImagePlugin BmpImagePlugin GifImagePlugin "
    "WebPImagePlugin ImagePalette",
    "h5py._hl": "files dataset group attrs selections",
    "numpy.lib": "_format_impl _npyio_impl _utils_impl",
    "json": "decoder scanner",
}
MODULES = [f"{package}.{module}" for package, modules in PACKAGES.items() for module in modules.split()]
MODULES += ["zipfile", "gzip", "_compression", "csv", "ast", "pyarrow.parquet.core"]
"""What is instrumented for every target: our readers and the Python part of what they call."""
MORE = {
    "zarr": "zarr.core.array zarr.core.metadata.v2 zarr.core.metadata.v3 zarr.core.common zarr.core.dtype.registry "
    "zarr.codecs.bytes zarr.codecs.zstd zarr.core.chunk_grids",
    "torch_checkpoint": "subspaces.deep.training torch.serialization torch._weights_only_unpickler",
}
TOKENS = """
'descr': 'fortran_order': 'shape': True, False, <f8 <f2 <U0 <U1 |O |b1 >i4 <m8 (0, (1000000000000, X.npy y.npy PK
nan inf 1e308 -1e308 1e999 NA 1_0 label id IHDR IDAT tRNS zTXt acTL PLTE eXIf iCCP PAR1 OHDR GCOL null 1e400
[[ ]] { } = [protocol] runs draws cuts panels rows series vary values grid quick zarr_format dtype filters pickle
"""
"""Words of the formats, which mutation of single bytes does not find."""
GIB = 2**30


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--target", action="append", help="one or more of them (all)")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "fuzz.jsonl")
    parser.add_argument("--replay", type=Path, help="an input to run again; its name begins with that of its target")
    parser.add_argument("--total", action="store_true", help="print the table of all runs so far and do nothing else")
    options = parser.parse_args()
    if options.total:
        print(table(totals([json.loads(line) for line in options.results.read_text().splitlines()])))
    elif options.replay is not None:
        replay(options.replay)
    else:
        fuzz_all(options)


# ------------------------------------------------------------------ the process of one target


def instrument(names: list[str]) -> int:
    """Instrument every function of the modules, also those imported long ago; returns how many."""
    import atheris

    count = 0
    for name in names:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        members = list(vars(module).values())
        members += [
            value for cls in members if inspect.isclass(cls) and cls.__module__ == name for value in vars(cls).values()
        ]
        for member in members:
            for function in (member, *(getattr(member, part, None) for part in ("__func__", "__wrapped__", "fget"))):
                if inspect.isfunction(function) and function.__module__ == name:
                    atheris.instrument_func(function)
                    count += 1
    return count


def fuzz(name: str, work: Path, seconds: float) -> None:
    """Fuzz one target; ends the process."""
    import atheris

    from fuzz.harness import Descriptors, Watch
    from fuzz.seeds import seeds_of
    from fuzz.targets import TARGETS

    watch, target, descriptors = Watch(), TARGETS[name], Descriptors()
    seeds = seeds_of(name)
    for seed in seeds:  # imports what is imported late, before anything is watched
        _restoring_on_error(lambda seed=seed: target(watch, seed))
    corpus, kept = work / "corpus" / name, work / "findings"
    for folder in (corpus, kept):
        folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    instrument(MORE.get(name, "").split())
    resource.setrlimit(resource.RLIMIT_AS, (_virtual() + 4 * GIB,) * 2)

    def one_input(data: bytes) -> None:
        try:
            target(watch, data)
            descriptors.check()
        except Exception as error:
            _keep(name, kept, data, error)

    flags = [f"-max_total_time={max(1, round(seconds))}", "-timeout=20", "-rss_limit_mb=2500", "-print_final_stats=1"]
    words = work / "words.dict"
    words.write_text("".join(f'"{token}"\n' for token in TOKENS.split()))
    flags += [f"-dict={words}", "-max_len=16384"]
    flags += [f"-artifact_prefix={kept}/{name}-killed-", "-len_control=20", str(corpus)]
    atheris.Setup([sys.argv[0], *flags], one_input)
    try:
        atheris.Fuzz()
    finally:
        watch.close()


def _restoring_on_error(run: Any) -> None:
    with suppress(Exception):  # the fuzzer will find it again
        run()


def _virtual() -> int:
    import psutil

    return int(psutil.Process().memory_info().vms)


def _keep(name: str, folder: Path, data: bytes, error: Exception) -> None:
    """Write a finding down: what it is, where, and the smallest input so far."""
    frames = traceback.extract_tb((error.__cause__ or error).__traceback__)
    ours = [frame for frame in frames if "/subspaces/" in frame.filename] or list(frames)
    where = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "?"
    last = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "?"
    what = re.sub(r"0x[0-9a-f]+|[0-9]+|'.*?'", "#", f"{type(error).__name__}: {error}")[:160]
    key = hashlib.sha1(f"{what}|{where}|{last}".encode()).hexdigest()[:10]
    path = folder / f"{name}-{key}"
    if path.exists() and path.stat().st_size <= len(data):
        return
    path.write_bytes(data)
    text = "".join(traceback.format_exception(error))
    path.with_suffix(".txt").write_text(f"{what}\n{where} {last}\n\n{text}", errors="backslashreplace")


# ------------------------------------------------------------------ all targets, one process at a time


def fuzz_all(options: argparse.Namespace) -> None:
    """Share the time among the targets; print the table and append the lines."""
    if importlib.util.find_spec("atheris") is None:
        raise SystemExit("fuzzing needs atheris: pip install atheris (Linux, Python 3.11 to 3.13)")
    from fuzz.targets import TARGETS

    names = options.target or list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        raise SystemExit(f"there is no target {', '.join(sorted(unknown))}; known: {', '.join(TARGETS)}")
    instrument([*MODULES, "fuzz.targets", "fuzz.targets_of_runs", "fuzz.packing"])
    rows = []
    for name in names:
        rows.append(fuzz_one(name, options.work, 60 * options.minutes / len(names)))
        options.results.parent.mkdir(parents=True, exist_ok=True)
        with options.results.open("a") as stream:
            stream.write(json.dumps(rows[-1]) + "\n")
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(table(rows))


def fuzz_one(name: str, work: Path, seconds: float) -> dict[str, Any]:
    """Run one target for a time, again after every end of its process; what it did."""
    kept = work / "findings"
    before = set(kept.glob(f"{name}-*")) if kept.is_dir() else set()
    start, runs, fuzzed = time.monotonic(), 0, 0.0
    executions = coverage = features = 0
    cpu = _cpu_of_children()
    while (left := seconds - fuzzed) > 1 and runs < 8:
        runs += 1
        begun = time.monotonic()
        log = _child(name, work, left)
        done = re.findall(r"Done \d+ runs in (\d+) second", log)  # without the start, which is slow
        fuzzed += float(done[0]) if done else time.monotonic() - begun
        executions += max(map(int, re.findall(r"^#(\d+)", log, re.MULTILINE)), default=0)
        coverage = max([coverage, *map(int, re.findall(r"cov: (\d+)", log))])
        features = max([features, *map(int, re.findall(r"ft: (\d+)", log))])
    cpu = _cpu_of_children() - cpu
    found = sorted({path.stem for path in kept.glob(f"{name}-*")} - {path.stem for path in before})
    return {
        "target": name,
        "executions": executions,
        "minutes": round(fuzzed / 60, 2),
        "wall_minutes_with_start": round((time.monotonic() - start) / 60, 2),
        "cpu_minutes_with_start": round(cpu / 60, 2),
        "coverage": coverage,
        "features": features,
        "corpus": len(list((work / "corpus" / name).glob("*"))),
        "processes": runs,
        "new_findings": found,
    }


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _child(name: str, work: Path, seconds: float) -> str:
    """Fuzz in a fork: it shares the imports and the instrumentation, which take longer than many a run."""
    log = work / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    pid = os.fork()
    if pid == 0:
        with log.open("wb") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        try:
            fuzz(name, work, seconds)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.waitpid(pid, 0)
    for parent in ("/dev/shm", tempfile.gettempdir()):  # libFuzzer ends a process without tidying up
        for left in Path(parent).glob(f"subspaces-fuzz-{pid}-*"):
            shutil.rmtree(left, ignore_errors=True)
    return log.read_text(errors="replace")


def totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each target: sums of what was spent, the most that was reached."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        sum_ = found.setdefault(
            row["target"], dict(row, executions=0, minutes=0.0, cpu_minutes_with_start=0.0, new_findings=[])
        )
        for key in ("executions", "minutes", "cpu_minutes_with_start", "new_findings"):
            sum_[key] = sum_[key] + row[key]
        for key in ("coverage", "features", "corpus"):
            sum_[key] = max(sum_[key], row[key])
    return list(found.values())


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    names = ["executions", "minutes", "cpu_minutes_with_start", "coverage", "features", "corpus"]
    lines = [f"| target | {' | '.join(names)} | findings |", "|---" * (len(names) + 2) + "|"]
    for row in rows:
        numbers = [f"{row[name]:.4g}" if isinstance(row[name], float) else str(row[name]) for name in names]
        lines.append(f"| {row['target']} | {' | '.join(numbers)} | {len(set(row['new_findings']))} |")
    total = [sum(row[name] for row in rows) for name in names[:3]]
    return "\n".join([*lines, f"| all | {total[0]} | {total[1]:.1f} | {total[2]:.1f} | | | | |"])


def replay(path: Path) -> None:
    """Run one kept input without the fuzzer; a finding is raised."""
    from fuzz.harness import Watch
    from fuzz.seeds import seeds_of
    from fuzz.targets import TARGETS

    name = path.name.rsplit("-killed-" if "-killed-" in path.name else "-", 1)[0]
    watch = Watch()
    try:
        for seed in seeds_of(name):
            _restoring_on_error(lambda seed=seed: TARGETS[name](watch, seed))
        TARGETS[name](watch, path.read_bytes())
    finally:
        watch.close()
    print("nothing found")


if __name__ == "__main__":
    main()

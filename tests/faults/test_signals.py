"""Cases 59 and 61: Ctrl-C, ``kill``, a closed terminal at any moment: the promised exit code, nothing half-written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from fault_data import ENVIRONMENT, write_photos

from subspaces.app.cli.main import app
from subspaces.utils import atomic
from subspaces.utils.atomic import write_atomically

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
Image = pytest.importorskip("PIL.Image")

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
WORDS = {130: "interrupted\n", 143: "terminated\n", 129: "the terminal was closed\n"}


@pytest.fixture
def photos(tmp_path, rng):
    return write_photos(tmp_path / "photos", rng, 6)


@pytest.fixture(autouse=True)
def ordinary_signals():
    """What a program finds when it is started by a person; in the background of a script SIGINT is ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def everything(photos: Path) -> list[str]:
    """A command that writes all that ``cluster`` can write."""
    places = {"-o": "labels.csv", "--report": "report.html", "--sort-into": "sorted"}
    written = [word for option, name in places.items() for word in (option, str(photos.parent / name))]
    fixed = ["--set", "kernel=rbf", "--set", "reg=1", "--set", "n_nonzero=3"]
    return ["cluster", str(photos), "-k", "2", *fixed, "-q", *written]


def left(folder: Path) -> set[str]:
    """Names of what a command left, but for the photos."""
    return {path.name for path in folder.iterdir()} - {"photos"}


def check_whole(folder: Path) -> None:
    """Whatever is there is complete, and nothing is hidden."""
    assert left(folder) <= {"labels.csv", "report.html", "sorted"}
    if (folder / "labels.csv").exists():
        assert len((folder / "labels.csv").read_text().splitlines()) == 13
    if (folder / "report.html").exists():
        assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    if (folder / "sorted").exists():
        assert len(list((folder / "sorted").glob("cluster_*/*.png"))) == 12
        assert len((folder / "sorted" / "index.csv").read_text().splitlines()) == 13


# ---------------------------------------------------------------- at exactly this moment, inside this process


def raise_after(monkeypatch, where, name: str, number: signal.Signals, calls: int = 1) -> None:
    """Let a function send this process a signal at the end of its n-th call, which still returns."""
    function, seen = getattr(where, name), []

    def wrapped(*args, **kwargs):
        result = function(*args, **kwargs)
        seen.append(args)
        if len(seen) == calls:
            os.kill(os.getpid(), number)
        return result

    monkeypatch.setattr(where, name, wrapped)


def moments():
    from matplotlib.figure import Figure

    from subspaces.app.cli import cluster
    from subspaces.engine import stages

    return {
        "reading": (Image, "open", 5),
        "fitting": (stages, "graph", 1),
        "describing": (cluster, "describe", 1),
        "labels on disk": (os, "fsync", 1),
        "labels in place": (os, "replace", 1),
        "sorting": (shutil, "copy2", 7),
        "plots": (Figure, "savefig", 2),
        "report on disk": (os, "fsync", 3),
    }


# interrupted between "opened" and "with", a file is closed by the collector, which says so
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("moment", list(moments()))
def test_case_59_at_every_moment_of_cluster(moment, photos, monkeypatch, capfd):
    """59: signalled while it reads, fits and writes each of its outputs."""
    where, name, calls = moments()[moment]
    raise_after(monkeypatch, where, name, signal.SIGINT, calls)
    with pytest.raises(SystemExit) as ended:
        app(everything(photos), prog_name="subspaces")
    out, err = capfd.readouterr()
    assert (ended.value.code, out, err) == (130, "", "interrupted\n")
    check_whole(photos.parent)
    assert len(left(photos.parent)) < 3


@pytest.mark.parametrize(("number", "old"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, True)])
def test_case_59_the_old_file_stays(number, old, photos, monkeypatch, capfd):
    """59: an existing file is as it was, whichever signal came; 61: --force replaces it whole or not at all."""
    labels = photos.parent / "labels.csv"
    if old:
        labels.write_text("old")
    raise_after(monkeypatch, os, "fsync", number)
    with pytest.raises(SystemExit) as ended:
        app(["cluster", str(photos), "-k", "2", "--method", "sscomp", "-o", str(labels), "--force"])
    assert ended.value.code == CODES[number]
    assert capfd.readouterr().err == WORDS[CODES[number]]
    assert left(photos.parent) == ({"labels.csv"} if old else set())
    assert not old or labels.read_text() == "old"


def test_case_59_twice_in_a_row(photos, monkeypatch, capfd):
    """59: a second Ctrl-C does not interrupt the cleaning that the first one began."""
    raise_after(monkeypatch, os, "fsync", signal.SIGINT)
    unlink = Path.unlink

    def interrupted_unlink(path, *args, **kwargs):
        os.kill(os.getpid(), signal.SIGINT)
        unlink(path, *args, **kwargs)

    monkeypatch.setattr(Path, "unlink", interrupted_unlink)
    with pytest.raises(SystemExit, match="130"):
        app(everything(photos))
    assert capfd.readouterr().err == "interrupted\n"
    assert left(photos.parent) == set()


def test_case_59_an_interruption_that_a_library_turns_into_its_own_error(photos, monkeypatch, capfd):
    """59: C extensions say "failed to import" when they were interrupted on the way."""

    def broken(*args, **kwargs):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            raise ImportError("numpy.core.multiarray failed to import") from None

    monkeypatch.setattr("subspaces.app.files.read_table", broken)
    with pytest.raises(SystemExit, match="130"):
        app(everything(photos))
    assert capfd.readouterr().err == "interrupted\n"


def test_case_59_handlers_of_others_are_put_back_or_left_alone(photos, monkeypatch):
    """59: a program that calls the command line keeps its signals."""
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    mine = signal.getsignal(signal.SIGTERM)
    raise_after(monkeypatch, Image, "open", signal.SIGTERM)
    with pytest.raises(SystemExit, match="0"):
        app(["cluster", str(photos), "-k", "2", "--method", "sscomp", "-q"])
    assert heard == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is mine
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(tmp_path):
    """64: what a killed process was writing is removed by the next run, what a living one writes is not."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and nobody has asked how it ended: a zombie
    dead = tmp_path / atomic.temporary_name("a.npy").replace(f"-{os.getpid()}-", f"-{child.pid}-")
    folder = dead.with_name(dead.name.replace("a.npy", "folder"))
    elsewhere = tmp_path / f".a.npy.{'0000' if atomic._host() != '0000' else '1111'}-{child.pid}-abcdef.tmp"
    strangers = [tmp_path / name for name in ("a.npy", ".hidden", ".a.tmp", ".note.tmp.txt")]
    for path in (dead, elsewhere, *strangers):
        path.touch()
    folder.mkdir()
    (folder / "x").touch()
    with write_atomically(tmp_path / "b.npy") as stream:
        stream.write(b"b")
        atomic.remove_leftovers(tmp_path)
        assert len(list(tmp_path.glob(".b.npy.*.tmp"))) == 1
    assert set(tmp_path.iterdir()) == {elsewhere, *strangers, tmp_path / "b.npy"}
    child.wait()
    dead.touch()
    atomic.remove_leftovers(tmp_path)
    assert not dead.exists()


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from subspaces.app.cli.main import app
where, name, calls = shutil, "copy2", 3
function, seen = getattr(where, name), []
def wrapped(*args, **kwargs):
    function(*args, **kwargs)
    seen.append(args)
    if len(seen) == calls:
        os.kill(os.getpid(), signal.SIGKILL)
setattr(where, name, wrapped)
app(sys.argv[1:])
"""


@pytest.mark.full  # takes seconds: .ci/run has it
def test_a_killed_run_leaves_nothing_for_ever(photos):
    """64: ``kill -9`` while images are sorted; the next run removes what is hidden."""
    command, target = [*everything(photos), "--force"], photos.parent / "sorted"
    killed = subprocess.run([sys.executable, "-c", KILLED, *command], env=ENVIRONMENT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not target.exists()
    assert any(name.startswith(".sorted.") for name in left(photos.parent))
    with pytest.raises(SystemExit, match="0"):
        app(command)
    check_whole(photos.parent)
    assert len(left(photos.parent)) == 3


# ---------------------------------------------------------------- processes


def start(*command: object, **more: object) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        list(map(str, command)), text=True, env=ENVIRONMENT, start_new_session=True, **pipes, **more
    )


READY = """
    import sys
    from subspaces.app.cli.__main__ import main
    print("ready", flush=True)  # before, Python itself ends: test_case_59_while_python_still_loads
    sys.argv = ["subspaces", *sys.argv[1:]]
    main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [0.5, 3])
def test_case_59_at_any_time(number, seconds, photos):
    """59: to the whole group as a terminal does, whatever it does just then: 130 or 143, or it was done already."""
    child = start(sys.executable, "-c", textwrap.dedent(READY), *everything(photos))
    assert child.stdout.readline() == "ready\n"
    time.sleep(seconds / 2)
    os.killpg(child.pid, number)
    out, err = child.communicate(timeout=120)
    check_whole(photos.parent)
    if child.returncode == 0:
        assert len(left(photos.parent)) == 3
    elif child.returncode == -number:  # before any command began: nothing to clean up, nobody to speak
        assert number == signal.SIGTERM
        assert (out, err, left(photos.parent)) == ("", "", set())
    else:
        assert child.returncode == CODES[number]
        assert err in (WORDS[CODES[number]], "")


def test_case_59_while_python_still_loads(tmp_path):
    """59: no traceback even before the command line exists."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"}
    command = [sys.executable, "-m", "subspaces.app.cli", "--version"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "")


def test_case_59_explore_ends_quietly(tmp_path, rng):
    """59: Ctrl-C is how one leaves the explorer: no traceback, and all is well."""
    pytest.importorskip("panel", reason='the explorer is not installed: pip install "subspaces[explore]"')
    np.save(tmp_path / "x.npy", rng.normal(size=(60, 3)))
    child = start(sys.executable, "-m", "subspaces.app.cli", "explore", tmp_path / "x.npy", "--no-browser")
    assert child.stdout.readline().startswith("http://127.0.0.1:")
    child.stdout.readline()
    time.sleep(0.5)
    os.killpg(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=120)
    assert child.returncode in (0, 130)  # the second: between the announcement and the server's own loop
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


IGNORED = """
import os, signal, time, weakref
from subspaces.utils.process import stopped_by_signals

class Thing: pass

def callback(reference):
    os.kill(os.getpid(), signal.SIGTERM)
    sum(range(1000))  # the handler has run by now, and what it raised is ignored here

with stopped_by_signals() as signals:
    try:
        thing = Thing()
        reference = weakref.ref(thing, callback)
        del thing
        time.sleep(60)
    except KeyboardInterrupt:
        print("stopped by", signals)
"""


def test_an_interrupt_that_python_ignores_is_raised_again():
    """59: the exception came up in the callback of a weak reference, and the command went on."""
    child = start(sys.executable, "-c", IGNORED)
    assert child.communicate(timeout=30) == (f"stopped by [{int(signal.SIGTERM)}]\n", "")

"""The command line: what a user types, sees and gets, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import subspaces
from subspaces.cli import _options
from subspaces.cli._common import progress_bar
from subspaces.cli.main import app
from subspaces.estimators import KTRR
from subspaces.methods import METHODS

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals, pipes or terminals")


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="subspaces", **options)


def environment(**more):
    source = str(Path(subspaces.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}


def process(*arguments, **options):
    command = [sys.executable, "-m", "subspaces.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, **options)


def fails(*arguments, code=2):
    """The one line on standard error with which a command refuses."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.isprintable()
    return line


@pytest.fixture
def table(tmp_path):
    """Three rings in three dimensions, as a CSV with names, classes and an odd column name."""
    rng = np.random.default_rng(5)
    angle = rng.uniform(0, 2 * np.pi, size=(3, 30))
    planes = np.linalg.qr(rng.normal(size=(3, 9, 2)))[0]
    X = np.concatenate([np.c_[np.cos(a), np.sin(a)] @ p.T for a, p in zip(angle, planes, strict=True)])
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)] + ["[bold]x8[/bold]"])
    frame.insert(0, "name", [f"p{i}" for i in range(90)])
    frame["species"] = np.repeat(["ash", "elm", "oak"], 30)
    path = tmp_path / "rings.csv"
    frame.to_csv(path, index=False)
    return path


AUTOMATIC = dict.fromkeys(("kernel", "reg", "n_nonzero", "scaling", "partition"), "auto")
COLUMNS = ("--id", "name", "--label", "species")


# ------------------------------------------------------------------ help and version


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["cluster", "--help"], ["demo", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    program = (
        "import sys; sys.argv = ['subspaces', *sys.argv[1:]]\n"
        "from subspaces.cli.main import app\n"
        "try: app()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'h5py', 'matplotlib', 'psutil'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment(), timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert ("subspaces " + subspaces.__version__ in result.stdout) or ("Usage" in result.stdout)


def test_no_arguments_show_help():
    result = run()
    assert result.exit_code == 0
    assert "cluster" in result.stdout
    assert "demo" in result.stdout


def test_options_offer_what_the_library_has():
    from subspaces.kernels import KERNELS
    from subspaces.partition import PARTITIONS
    from subspaces.scaling import SCALINGS

    assert set(get_args(_options.Kernel)) == {"auto", *KERNELS}
    assert set(get_args(_options.Partition)) == {"auto", *PARTITIONS}
    assert set(get_args(_options.Scaling)) == {"auto", "none", *SCALINGS}


# ------------------------------------------------------------------ cluster


def test_cluster_writes_labels_and_says_so(table, tmp_path):
    result = run("cluster", table, "-k", 3, *COLUMNS, "-o", tmp_path / "labels.csv")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    written = pd.read_csv(tmp_path / "labels.csv")
    assert list(written) == ["id", "label", "confidence", "second_cluster", "margin", "fits_nowhere"]
    assert written["id"].tolist() == [f"p{i}" for i in range(90)]
    frame = pd.read_csv(table)
    expected = KTRR(3, **AUTOMATIC).fit_predict(frame.drop(columns=["name", "species"]).to_numpy())
    assert written["label"].tolist() == expected.tolist()
    assert "90 points, 9 features" in result.stdout
    assert "3 clusters in" in result.stdout
    assert "constant label" in result.stdout
    assert f"labels written to {tmp_path / 'labels.csv'}" in result.stdout


@pytest.mark.parametrize("suffix", [".tsv", ".parquet", ".json", ".npy"])
def test_cluster_writes_every_format(table, tmp_path, suffix):
    out = tmp_path / f"labels{suffix}"
    result = run("cluster", table, "-k", 3, *COLUMNS, "-o", out, "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    match suffix:
        case ".npy":
            labels = np.load(out, allow_pickle=False).tolist()
        case ".json":
            document = json.loads(out.read_text())
            labels = document["labels"]
            assert document["ids"][0] == "p0"
            assert document["scores"].keys() >= {"accuracy", "nmi"}
        case ".parquet":
            labels = pd.read_parquet(out)["label"].tolist()
        case _:
            labels = pd.read_csv(out, sep="\t")["label"].tolist()
    assert len(labels) == 90
    assert set(labels) == {0, 1, 2}


def test_json_is_one_document(table):
    result = run("cluster", table, "-k", 3, *COLUMNS, "--json", "--seed", 4, "--reg", 0.5)
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["version"] == subspaces.__version__
    assert document["source"] == str(table)
    assert (document["n_points"], document["n_features"], document["n_clusters"]) == (90, 9, 3)
    assert len(document["labels"]) == len(document["ids"]) == 90
    assert document["parameters"] == KTRR(3, **{**AUTOMATIC, "random_state": 4, "reg": 0.5}).get_params()
    assert set(document["chosen"]) == set(AUTOMATIC) - {"reg"}
    assert document["chosen"]["kernel"] in document["reason"]
    assert set(document["timings"]) >= {"kernel", "partition"}
    assert 0 <= document["scores"]["accuracy"] <= 1
    assert result.stderr == ""


def test_options_reach_the_estimator_and_others_are_automatic(table, monkeypatch):
    seen = []
    original = KTRR.fit
    monkeypatch.setattr(KTRR, "fit", lambda self, X, y=None: seen.append(self.get_params()) or original(self, X))
    options = ["--kernel", "exponential", "--bandwidth", "0.7", "--reg", 2, "--n-nonzero", 7, "--scaling", "none"]
    result = run("cluster", table, "-k", 3, *COLUMNS, *options, "--partition", "qr", "--seed", 9, "--threads", 1)
    assert result.exit_code == 0, result.output
    run("cluster", table, "-k", 3, *COLUMNS)
    run("cluster", table, "-k", 3, *COLUMNS, "--method", "trr", "--scaling", "unit", "--bandwidth", "mean")
    changed = {
        "kernel": "exponential",
        "bandwidth": 0.7,
        "reg": 2,
        "n_nonzero": 7,
        "partition": "qr",
        "random_state": 9,
    }
    assert seen == [KTRR(3, **changed).get_params(), KTRR(3, **AUTOMATIC).get_params()]


def test_the_choice_is_explained(table):
    result = run("cluster", table, *COLUMNS, "-k", "auto", "--kernel", "auto", "--reg", "0.5")
    assert result.exit_code == 0, result.output
    line = next(line for line in result.stdout.splitlines() if line.startswith("chosen: "))
    assert "kernel" in line
    assert "reg 0.5" in line
    assert "auto" not in result.stdout.splitlines()[1]  # the settled values are shown, not the word


def test_other_methods_keep_their_defaults_and_refuse_auto(table):
    result = run("cluster", table, *COLUMNS, "-k", 3, "--method", "lsr1", "--json")
    assert json.loads(result.stdout)["parameters"]["partition"] == "kmeans"
    assert "no meaning for the method lsr1" in fails(
        "cluster", table, *COLUMNS, "-k", 3, "--method", "lsr1", "--reg", "auto"
    )


def test_number_of_clusters_is_found_if_not_given(table):
    result = run("cluster", table, *COLUMNS, "--json")
    document = json.loads(result.stdout)
    assert document["parameters"]["n_clusters"] == "auto"
    assert document["n_clusters"] == document["chosen"]["n_clusters"] == len(set(document["labels"]))
    low, high = document["n_clusters_range"]
    assert low <= document["n_clusters"] <= high
    other = json.loads(run("cluster", table, *COLUMNS, "--method", "lsr1", "--json").stdout)
    assert (other["parameters"]["n_clusters"], other["parameters"]["partition"]) == (None, "modularity")
    result = run("cluster", table, *COLUMNS)
    assert "the number was found; -k sets it" in result.stdout
    assert "-o labels.csv saves the labels" in result.stdout


def test_trr(table):
    result = run("cluster", table, "-k", 3, *COLUMNS, "--method", "trr", "--json")
    assert json.loads(result.stdout)["method"] == "trr"


def test_seed_repeats(table):
    first, second = (run("cluster", table, "-k", 3, *COLUMNS, "--json", "--seed", 3).stdout for _ in range(2))
    assert json.loads(first)["labels"] == json.loads(second)["labels"]


def test_notes_reach_the_reader(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "x.npz"
    np.savez(path, X=rng.integers(100, size=(30, 5)), y=np.arange(30) % 2, scale=0.01)
    result = run("cluster", path, "-k", 2)
    assert "note: the file also holds 'y', one value per point: --label y scores it" in result.stdout
    assert "note: the points were multiplied by the file's scale 0.01" in result.stdout
    assert "constant label" not in result.stdout


def test_precomputed_kernel(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    np.save(tmp_path / "k.npy", X @ X.T)
    assert run("cluster", tmp_path / "k.npy", "-k", 2, "--kernel", "precomputed").exit_code == 0
    np.save(tmp_path / "x.npy", X)
    fails("cluster", tmp_path / "x.npy", "-k", 2, "--kernel", "precomputed", code=1)


def test_threads_are_limited(table, monkeypatch):
    from threadpoolctl import threadpool_info

    seen = []
    original = KTRR.fit

    def fit(self, X, y=None):
        seen.append({pool["num_threads"] for pool in threadpool_info()} | {int(os.environ["OMP_NUM_THREADS"])})
        return original(self, X)

    monkeypatch.setattr(KTRR, "fit", fit)
    before = dict(os.environ)
    assert run("cluster", table, "-k", 3, *COLUMNS, "--threads", 1).exit_code == 0
    assert seen == [{1}]
    assert dict(os.environ) == before


# ------------------------------------------------------------------ what goes wrong


def test_file_errors_are_one_line(table, tmp_path):
    line = fails("cluster", table, "-k", 3)
    assert f"{table}, line 2, column 'name': 'p0' is not a number" in line
    assert "--ignore name" in line
    assert "no such file" in fails("cluster", tmp_path / "nothing.csv", "-k", 3)
    assert ".parquet" in fails("cluster", Path(__file__), "-k", 3)
    assert "did you mean 'species'" in fails("cluster", table, "-k", 3, "--label", "specis")


def test_markup_and_control_characters_do_nothing(tmp_path):
    path = tmp_path / "[red]x.csv"
    path.write_text("a,[bold]b[/bold]\x1b[2J\n1,2\n3,x[/nonsense]\n")
    line = fails("cluster", path, "-k", 2)
    assert "[red]x.csv, line 3, column '[bold]b[/bold]\\x1b[2J': 'x[/nonsense]' is not a number" in line
    path.write_text("a,[bold]b[/bold]\x1b[2J\n" + "".join(f"{i % 5},{i * i % 7}\n" for i in range(20)))
    result = run("cluster", path, "-k", 2)
    assert result.exit_code == 0
    assert "[red]x.csv: 20 points" in result.stdout
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--kernel", "gauss"], "rbf"),
        (["--method", "magic"], "ktrr, trr"),
        (["--reg", "-1"], "'reg' parameter of KTRR"),
        (["--reg", "much"], "--reg"),
        (["--n-nonzero", "2.5"], "not a whole number or auto"),
        (["--n-nonzero", "0"], "'n_nonzero' parameter"),
        (["--bandwidth", "wide"], "not mean, rms, median or a number"),
        (["--bandwidth", "-2"], "'bandwidth' parameter"),
        (["-k", "91"], "91 clusters of 90 points"),
        (["-k", "0"], "-k"),
        (["--method", "trr", "--kernel", "rbf"], "no meaning for the method trr"),
        (["--nonsense"], "--nonsense"),
        (["--seed", "-3"], "--seed"),
        (["--threads", "0"], "--threads"),
        (["-o", "labels.xlsx"], ".csv"),
    ],
)
def test_usage_errors_are_one_line(table, arguments, expected):
    assert expected in fails("cluster", table, "-k", 3, *COLUMNS, *arguments)


def test_kmeans_needs_a_number(table):
    assert "add -k" in fails("cluster", table, *COLUMNS, "--partition", "kmeans", "--method", "lsr1")


def test_unknown_command():
    assert "No such command 'clutser'" in fails("clutser")


def test_existing_output_is_kept_without_force(table, tmp_path, monkeypatch):
    out = tmp_path / "labels.csv"
    out.write_text("precious")
    monkeypatch.setattr(KTRR, "fit", lambda *_: pytest.fail("must be refused before computing"))
    assert "--force" in fails("cluster", table, "-k", 3, *COLUMNS, "-o", out)
    assert "input file" in fails("cluster", table, "-k", 3, *COLUMNS, "-o", table, "--force")
    assert out.read_text() == "precious"
    monkeypatch.undo()
    assert run("cluster", table, "-k", 3, *COLUMNS, "-o", out, "--force").exit_code == 0
    assert out.read_text().startswith("id,label,confidence,")


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (ValueError("bad\nnews [red]x[/red] \x1b[31m"), 1, "error: bad news [red]x[/red] \\x1b[31m"),
        (MemoryError("the 9 × 9 matrix needs 1 TiB."), 1, "error: not enough memory; the 9 × 9 matrix needs"),
        (np.linalg.LinAlgError("singular"), 1, "error: singular"),
        (RuntimeError(), 1, "error: RuntimeError"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_failures_end_in_one_line_and_no_file(table, tmp_path, monkeypatch, error, code, expected):
    def fit(self, X, y=None):
        raise error

    monkeypatch.setattr(KTRR, "fit", fit)
    result = run("cluster", table, "-k", 3, *COLUMNS, "-o", tmp_path / "labels.csv")
    assert result.exit_code == code
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(expected)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rings.csv"]


def test_failed_writing_ends_in_one_line(table, tmp_path, monkeypatch):
    def replace(source, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(os, "replace", replace)
    line = fails("cluster", table, "-k", 3, *COLUMNS, "-o", tmp_path / "labels.csv", code=1)
    assert line.endswith("labels.csv: No space left on device")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rings.csv"]


@pytest.mark.parametrize("how", ["option", "environment"])
def test_debug_shows_the_traceback(table, how):
    arguments = ["cluster", table, "-k", 3, *(["--debug"] if how == "option" else [])]
    result = run(*arguments, env={"SUBSPACES_DEBUG": "1"} if how == "environment" else None)
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")


def test_warnings_are_one_line(table, monkeypatch):
    original = KTRR.fit

    def fit(self, X, y=None):
        warnings.warn("did not\nconverge [red]", UserWarning, stacklevel=2)
        return original(self, X)

    monkeypatch.setattr(KTRR, "fit", fit)
    result = run("cluster", table, "-k", 3, *COLUMNS, "--json")
    assert json.loads(result.stdout)["n_clusters"] == 3
    assert result.stderr == "warning: did not converge [red]\n"


# ------------------------------------------------------------------ as a real process


def test_process_exit_codes(table, tmp_path):
    good = process("cluster", table, "-k", 3, *COLUMNS, "-o", "labels.csv", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert (tmp_path / "labels.csv").read_text().count("\n") == 91
    bad = process("cluster", table, "-k", 3)
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)


def open_for_reader(pipe, child):
    """Open a named pipe for writing, which succeeds once the child reads from it."""
    while child.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            time.sleep(0.02)
    pytest.fail(child.stderr.read())


@posix
def test_interrupt_ends_with_130(tmp_path):
    pipe = tmp_path / "x.csv"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "subspaces.cli", "cluster", str(pipe), "-k", "2", "-o", str(tmp_path / "y.csv")]
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored in the background of a script, and inherited
    try:
        child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    writer = open_for_reader(pipe, child)
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    os.close(writer)
    assert (child.returncode, stdout, stderr) == (130, "", "interrupted\n")
    assert [file.name for file in tmp_path.iterdir()] == ["x.csv"]


@posix
def test_progress_goes_to_a_terminal_on_standard_error(table):
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "subspaces.cli", "cluster", str(table), "-k", "3", *COLUMNS]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=follower, env=environment(TERM="xterm"), text=True
    ) as child:
        os.close(follower)
        shown = b""
        try:
            while block := os.read(leader, 4096):
                shown += block
        except OSError:  # how Linux says that the other end is closed
            pass
        stdout, _ = child.communicate(timeout=60)
    os.close(leader)
    assert child.returncode == 0
    assert b"KTRR" in shown
    assert "\x1b" not in stdout
    assert "3 clusters in" in stdout


def test_progress_is_silent_elsewhere(monkeypatch):
    for wanted, terminal in ((False, True), (True, False)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        estimator = KTRR(2)
        with progress_bar(estimator, wanted):
            assert not getattr(estimator, "_skl_callbacks", [])


@posix
def test_closed_pipe_is_no_traceback():
    command = [sys.executable, "-m", "subspaces.cli", "--version"]
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment(), timeout=60)
    os.close(writer)
    assert result.returncode != 0
    assert result.stderr == b""


# ------------------------------------------------------------------ demo


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return folder, run("demo", "--output", folder)


def test_demo_prints_a_table_and_writes_files(demonstration):
    folder, result = demonstration
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    rows = {line[:35].strip(): line[35:].split() for line in result.stdout.splitlines()[2:8]}
    assert rows.pop("") == ["AC", "NMI", "ARI", "F", "seconds"]
    names = ["k-means", "spectral clustering (10 neighbours)", "KTRR, cut by k-means", "KTRR, cut by modularity"]
    assert list(rows) == ["one label for all", *names]
    assert rows["one label for all"][:3] == ["10.2", "0.0", "0.0"]
    assert all(0 <= float(cell) <= 100 for cells in rows.values() for cell in cells[:4])
    assert float(rows["KTRR, cut by modularity"][0]) > float(rows["k-means"][0])
    labels = pd.read_csv(folder / "labels.csv")
    assert list(labels) == ["row", "digit", *names]
    assert len(labels) == 1797
    assert (folder / "digits.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(file.name for file in folder.iterdir()) == ["digits.png", "labels.csv"]


def test_demo_again_without_matplotlib(demonstration, monkeypatch):
    folder, first = demonstration
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "-o", folder)
    assert result.exit_code == 0
    assert 'pip install "subspaces[report]"' in result.stdout
    result = run("demo", "-o", folder, "--json", "--seed", 0)
    document = json.loads(result.stdout)
    assert document["files"] == [str(folder / "labels.csv")]
    assert f"{document['scores']['k-means']['AC']:.1f}" in first.stdout


def test_demo_folder_must_be_one(table):
    assert "the folder cannot be made" in fails("demo", "-o", table)


def test_every_estimator_has_a_name_in_lower_case():
    assert all(name == name.lower() for name in METHODS)


def test_methods_lists_every_estimator():
    result = run("methods")
    assert result.exit_code == 0
    for name, cls in METHODS.items():
        assert f"{name}: " in result.stdout
        assert cls.reference in result.stdout
        assert cls.cost in result.stdout
    document = json.loads(run("methods", "--json").stdout)
    assert set(document) == set(METHODS)
    assert "Parameters" in run("methods", "ssc").stdout
    assert run("methods", "nope").exit_code == 2


@pytest.mark.parametrize("method", ["ssc", "lrr2", "tsc"])
def test_cluster_runs_any_method(tmp_path, method):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", np.kron(np.eye(2), rng.normal(size=(15, 3))))
    result = run("cluster", str(tmp_path / "X.npy"), "-k", "2", "--method", method, "--json")
    assert result.exit_code == 0, result.stderr
    labels = json.loads(result.stdout)["labels"]
    assert len(set(labels[:15])) == len(set(labels[15:])) == 1

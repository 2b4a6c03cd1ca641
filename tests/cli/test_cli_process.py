"""The command line as a real process: exit codes, signals, terminals and pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from cli_data import COLUMNS, environment

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals, pipes or terminals")


def process(*arguments, **options):
    command = [sys.executable, "-m", "subspaces.app.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, **options)


def test_process_exit_codes(table, tmp_path):
    good = process("cluster", table, "-k", 3, *COLUMNS, "-o", "labels.csv", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert (tmp_path / "labels.csv").read_text().count("\n") == 91
    bad = process("cluster", table, "-k", 3)
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)


@posix
def test_interrupt_ends_with_130(tmp_path):
    command = [sys.executable, "-m", "subspaces.app.cli", "cluster", "-", "-k", "2", "-o", str(tmp_path / "y.csv")]
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored in the background of a script, and inherited
    try:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        child = subprocess.Popen(command, **streams, env=environment(), text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    child.stdin.write("1,2\n" * 2**17)  # more than a pipe holds: it returns once the child reads
    child.stdin.flush()
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert (child.returncode, stdout, stderr) == (130, "", "interrupted\n")
    assert [file.name for file in tmp_path.iterdir()] == []


@posix
def test_progress_goes_to_a_terminal_on_standard_error(table):
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "subspaces.app.cli", "cluster", str(table), "-k", "3", *COLUMNS]
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
    for name in ("Starting", "Trying settings", " of "):
        assert name.encode() in shown
    assert "\x1b" not in stdout
    assert "3 clusters; points in each cluster: " in stdout


@posix
def test_closed_pipe_is_no_traceback():
    command = [sys.executable, "-m", "subspaces.app.cli", "--version"]
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment(), timeout=60)
    os.close(writer)
    assert result.returncode != 0
    assert result.stderr == b""


@pytest.mark.parametrize("name", ["typer", "rich", "matplotlib", "jinja2"])
def test_without_the_app_the_command_says_what_to_install(name, monkeypatch):
    from subspaces.app.cli.__main__ import main

    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == f'error: {name} not installed; install with pip install "subspaces[app]"'

"""Memory in containers and under limits; long work over blocks tells how far it is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from subspaces.utils import memory
from subspaces.utils.blocks import map_blocks
from subspaces.utils.progress import phase, progress_to


def groups(tmp_path, monkeypatch, process, files):
    """A machine whose control groups are these files, by their paths and contents."""
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "process").write_text(process)
    monkeypatch.setattr(memory, "_GROUPS_OF_PROCESS", tmp_path / "process")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")


@pytest.mark.parametrize(("limit", "used", "expected"), [("1000", "400", 600), ("100", "400", 0), ("max", "400", None)])
def test_container_allows_what_it_has_left(tmp_path, monkeypatch, limit, used, expected):
    groups(tmp_path, monkeypatch, "0::/\n", {"memory.max": limit, "memory.current": used})
    found = memory.available_bytes()
    assert found > 10**6 if expected is None else found == expected
    with memory.limited(1):  # less than the process has already
        assert memory.available_bytes() == 0


def test_container_takes_files_read_before_for_free(tmp_path, monkeypatch):
    """What the kernel keeps of files it gives back when asked; else a fit after reading its data would be refused."""
    stat = "anon 100\nactive_file 50\ninactive_file 300\n"
    files = {"memory.max": "1000", "memory.current": "400", "memory.stat": stat}
    groups(tmp_path, monkeypatch, "0::/\n", files)
    assert memory.available_bytes() == 900
    groups(tmp_path, monkeypatch, "0::/\n", {**files, "memory.stat": "inactive_file\n"})
    assert memory.available_bytes() == 600


NESTED = {
    "a/memory.max": "5000",
    "a/memory.current": "1000",
    "a/b/memory.max": "max",
    "a/b/memory.current": "700",
    "a/b/c/memory.max": "9000",
    "a/b/c/memory.current": "600",
    "other/memory.max": "1",
    "other/memory.current": "1",
}


@pytest.mark.parametrize("place", ["", "unified/"])
def test_every_group_above_a_process_limits_it(tmp_path, monkeypatch, place):
    files = {place + name: text for name, text in NESTED.items()}
    groups(tmp_path, monkeypatch, "0::/a/b/c\n", files)
    assert memory.available_bytes() == 4000
    groups(
        tmp_path,
        monkeypatch,
        "0::/../elsewhere\n",
        {**files, place + "memory.max": "10", place + "memory.current": "3"},
    )
    assert memory.available_bytes() == 7


def test_groups_of_version_1(tmp_path, monkeypatch):
    files = {
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "memory/memory.usage_in_bytes": "12345",
        "memory/job/memory.limit_in_bytes": "2000",
        "memory/job/memory.usage_in_bytes": "1500",
        "memory/job/memory.stat": "cache 900\ninactive_file 1\ntotal_inactive_file 800\n",
    }
    groups(tmp_path, monkeypatch, "8:pids:/x\n4:cpu,memory:/job\n0::/\n", files)
    assert memory.available_bytes() == 1300


def test_machine_without_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_GROUPS_OF_PROCESS", tmp_path / "nothing")
    assert memory.available_bytes() > 10**6


def test_address_space_is_a_limit(monkeypatch):
    """``ulimit -v``: what would not be given is not free."""
    resource = pytest.importorskip("resource", reason="Windows knows no limits of this kind")
    taken = psutil.Process().memory_info().vms
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (taken + 2**30, resource.RLIM_INFINITY))
    assert memory.available_bytes() <= 2**30
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=2**31))
    monkeypatch.setattr(memory, "_GROUPS_OF_PROCESS", Path("/nothing"))
    assert memory.available_bytes() == 2**31


def test_what_a_container_lacks_is_refused(tmp_path, monkeypatch):
    groups(tmp_path, monkeypatch, "0::/\n", {"memory.max": "1000", "memory.current": "900"})
    with pytest.raises(MemoryError, match="the matrix needs"):
        memory.require(101, "the matrix", "Use less.")
    memory.require(100, "the matrix", "Use less.")


def test_long_work_is_told_block_by_block():
    told = []
    with progress_to(lambda *now: told.append(now)), phase("Sums"):
        assert map_blocks(lambda start, stop: start, [(2 * i, 2 * i + 2) for i in range(300)]) == [*range(0, 600, 2)]
        map_blocks(lambda start, stop: start, [(0, 1)])  # too short to be worth a word
    assert told == [("Sums", 0, None), *(("Sums", done, 600) for done in range(0, 601, 2))]

"""Writers: what was written comes back, whole or not at all."""

from __future__ import annotations

import os
import stat
import sys

import numpy as np
import pandas as pd
import pytest

from subspaces.app.files import WRITERS, FileError, check_output, write_labels
from subspaces.utils.atomic import write_atomically

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("suffix", [*WRITERS, ".CSV"])
@pytest.mark.parametrize("named", [True, False])
def test_labels_come_back(tmp_path, suffix, named):
    if suffix.lower() == ".xlsx":
        pytest.importorskip("openpyxl")
    labels = np.array([2, 0, 1])
    ids = ["plain", 'quote",comma\ttab', "line\nbreak\ré"] if named else None
    path = tmp_path / f"labels{suffix}"
    write_labels(path, labels, ids=ids)
    key, expected = ("id", ids) if named else ("row", [0, 1, 2])
    match suffix.lower():
        case ".npy":
            np.testing.assert_array_equal(np.load(path, allow_pickle=False), labels)
            return
        case ".parquet":
            frame = pd.read_parquet(path)
        case ".xlsx":
            frame = pd.read_excel(path)
            expected = [str(name).replace("\r", "\\r") for name in ids] if named else expected
        case _:
            frame = pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",")
    assert list(frame) == [key, "cluster"]
    assert frame[key].tolist() == expected
    assert frame["cluster"].tolist() == [2, 0, 1]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")
def test_written_file_is_an_ordinary_file(tmp_path):
    target, link, plain = tmp_path / "target.csv", tmp_path / "link.csv", tmp_path / "plain"
    plain.touch()
    target.write_text("old")
    link.symlink_to(target)
    write_labels(link, np.array([1]), force=True)
    assert link.is_symlink()
    assert target.read_text() == "row,cluster\n0,1\n"
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_outputs_are_checked(tmp_path, monkeypatch):
    def problem(name, **options):
        with pytest.raises(FileError) as caught:
            check_output(tmp_path / name, **options)
        return str(caught.value)

    (tmp_path / "old.csv").write_text("a,b\n1,2\n")
    (tmp_path / "folder.csv").mkdir()
    assert "force=True" in problem("old.csv")
    check_output(tmp_path / "old.csv", force=True)
    assert "input file" in problem("old.csv", force=True, source=tmp_path / "old.csv")
    assert "choose one of .csv" in problem("x.ods")
    assert "without a suffix" in problem("labels")
    assert "folder does not exist" in problem("nowhere/x.csv")
    assert "this is a folder" in problem("folder.csv")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "may not be written to" in problem("x.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "subspaces[app]" in problem("x.parquet")


def test_ids_must_match_labels(tmp_path):
    with pytest.raises(ValueError, match="one id per label"):
        write_labels(tmp_path / "x.csv", np.array([1, 2]), ids=["a"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, OSError])
def test_failed_writing_leaves_nothing_and_keeps_the_old(tmp_path, error):
    path = tmp_path / "x.csv"
    for old in (None, "old"):
        if old is not None:
            path.write_text(old)
        with pytest.raises(error), write_atomically(path) as stream:  # noqa: PT012
            stream.write(b"half")
            raise error
        assert [file.name for file in tmp_path.iterdir()] == ([] if old is None else ["x.csv"])
        assert old is None or path.read_text() == old

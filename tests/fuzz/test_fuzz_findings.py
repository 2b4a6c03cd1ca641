"""Faults of the readers that fuzzing (with atheris, until November 2026) and reading found: they stay fixed."""

from __future__ import annotations

import bz2
import pickle
import struct
import warnings
import zipfile
from importlib.util import find_spec

import numpy as np
import pytest

from io_data import MAT_HEADER, Bomb, npy, npy_header, refusal, write_zip
from subspaces.app.files import FileError, read_table


def test_streamed_arrays_with_a_header_of_gigabytes(tmp_path):
    """14 bytes of a file asked for 1.8 GB, and the error had no reason."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    from subspaces.distributed._files import mapped

    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x03\x00\xff\xff\xab\x6c")
    with pytest.raises(FileError, match="a header of 1823211519 bytes, more than 10000"):
        mapped(path)


# ------------------------------------------------------------------ numbers at the edge


@pytest.mark.parametrize("label", [1e300, -1e19, 2.0**63, np.inf])
def test_huge_labels_and_identifiers_stay_what_they_are(tmp_path, label):
    np.savez(tmp_path / "x.npz", X=np.eye(3), y=[0.0, label, 1.0], id=[0.0, label, 1.0])
    data = read_table(tmp_path / "x.npz", label="y", id="id")
    assert len(data.classes) == 3
    assert str(label) in data.classes
    assert data.ids[1] == label


def test_payloads_of_nan_are_missing_values(tmp_path):
    for dtype, bits in (("f4", 0x7FA00001), ("f8", 0xFFF4DEADBEEF0001), ("f2", 0x7D01)):
        X = np.ones((4, 2), dtype=dtype)
        X.view(dtype.replace("f", "u"))[1, 0] = bits  # a signalling NaN with a payload
        np.save(tmp_path / "x.npy", X)
        assert "row 1, column '0': missing value" in refusal(tmp_path / "x.npy")
        for how in ("drop", "mean", "median"):
            assert np.isfinite(read_table(tmp_path / "x.npy", missing=how).X).all()


def test_enormous_whole_numbers(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3," + "9" * 5000 + "\n")
    assert "not finite" in refusal(tmp_path / "x.csv")
    np.save(tmp_path / "x.npy", np.full((3, 2), 2**64 - 1, dtype=np.uint64))
    assert read_table(tmp_path / "x.npy").X.dtype == np.uint64
    (tmp_path / "digits.npy").write_bytes(npy_header((3, 10**200)))
    assert "cut short" in refusal(tmp_path / "digits.npy")
    members = {"X.npy": npy_header((10**200, 10**200))}
    assert "of memory may be used" in refusal(write_zip(tmp_path / "x.npz", members))


def test_images_darker_than_black(tmp_path):
    """Found by the fuzzer's seeds (images): far below 0 the grey values overflowed and became NaN when resized."""
    image = pytest.importorskip("PIL.Image")
    for i, lowest in enumerate((-3e38, -1.0)):
        values = np.linspace(lowest, 1, 200, dtype=np.float32).reshape(10, 20)
        image.fromarray(values).save(tmp_path / f"{i}.tif")
    for size in (None, (4, 4)):
        X = read_table(tmp_path, image_size=size).X
        assert np.isfinite(X).all()
        assert X.min() >= 0
        assert X.max() <= 1


@pytest.mark.parametrize("change", [(b"4), }", b"4L),}"), (b"'fortran", b"7fo.ran")])
def test_headers_of_arrays_without_warnings(tmp_path, change):
    """Found by the fuzzer (npy): NumPy warned of headers that Python 2 wrote, Python of literals in broken ones."""
    content = npy(np.zeros((3, 4))).replace(*change)
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if b"4L" in content:
            assert read_table(path).X.shape == (3, 4)
        else:
            refusal(path)
        if find_spec("distributed") is not None:
            from subspaces.distributed import _files

            if b"4L" in content:
                assert _files.mapped(path).shape == (3, 4)
            else:
                with pytest.raises(FileError):
                    _files.mapped(path)


@pytest.mark.parametrize("shape", [(3,) * 2000, (1,) * 3000])
def test_errors_stay_short_whatever_the_file_says(tmp_path, shape):
    refusal(write_zip(tmp_path / "x.npz", {"X.npy": npy_header(shape)}), max_bytes=2**20)
    many = {f"a{i}.npy": npy(np.eye(2)) for i in range(100)}
    assert "and 92 more" in refusal(write_zip(tmp_path / "many.npz", many))
    assert "and 92 more" in refusal(tmp_path / "many.npz", array="a0", label="y")
    fields = [(f"field{i}", "<f8") for i in range(300)]
    np.save(tmp_path / "x.npy", np.zeros(3, dtype=fields))
    assert "of type" in refusal(tmp_path / "x.npy")


def test_names_of_control_characters_stay_short(tmp_path):
    """Found by the fuzzer (csv): each became four letters after the name had been cut, in an error that repeats it."""
    path = tmp_path / "x.csv"
    path.write_bytes(bytes(72) + b"0,1\n,\n7,8\n" + b"1,1\n,\n,18\n" * 3)
    assert len(refusal(path, header=True)) < 900 + len(str(path))


def test_matlab_objects_are_left_out(tmp_path):
    """MATLAB's own objects (class 17) have neither dimensions nor values; a data set beside one is read."""
    opaque = struct.pack("<II", 6, 8) + struct.pack("<II", 17, 0) + bytes(64)
    path = tmp_path / "x.mat"
    path.write_bytes(MAT_HEADER + struct.pack("<II", 14, len(opaque)) + opaque)
    assert "the file holds nothing" in refusal(path)


# ------------------------------------------------------------------ what our own runs leave behind


def test_damaged_checkpoints_of_distributed_runs(tmp_path):
    """Found by reading: damaged bytes ended in errors of parsers, and a header may announce what is not there."""
    pytest.importorskip("dask.array")
    pytest.importorskip("distributed")
    from subspaces.distributed import _files

    path = tmp_path / "x.npy"
    for content in (b"", npy(1)[:50], npy_header((10**15,)), b"PK\x05\x06" + bytes(18), pickle.dumps([1])):
        path.write_bytes(content)
        assert _files.load(path) is None
        with pytest.raises(FileError, match=r"x\.npy"):
            _files.mapped(path)


@pytest.mark.parametrize("dtype", ["u1", "i2", "?", "f2", ">f4", "g"])
def test_workers_get_floats_whatever_the_file_stores(tmp_path, dtype):
    """Found by the fuzzer (dask_npy): blocks stayed whole numbers under an array that said float64."""
    from subspaces.distributed._input import as_source, opened
    from subspaces.distributed._tasks import ThisProcess, results

    X = np.arange(12).reshape(4, 3).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    source = as_source(tmp_path / "x.npy", ThisProcess())
    (found,) = results(ThisProcess(), opened, [(block,) for block in source.pieces()[1]])
    assert (
        found.dtype
        == source.dtype
        == source.whole(ThisProcess()).dtype
        == (np.float32 if dtype == ">f4" else np.float64)
    )
    np.testing.assert_array_equal(found, X)


def test_checkpoints_of_deep_methods_that_are_none(tmp_path):
    """Found by the fuzzer's seeds (torch_checkpoint): KeyError, and tensors that cannot be compared."""
    torch = pytest.importorskip("torch")
    from subspaces.deep.training import Checkpoint

    kept = Checkpoint(tmp_path, "dsc_net", {"a": "1"})
    kept.save({"epoch": 3})
    assert kept.load()["epoch"] == 3
    tensor = torch.zeros(3)
    for state in ({"format": 1}, {"format": tensor}, {"format": 1, "identity": {"a": tensor}}, [1], tensor):
        torch.save(state, kept.path)
        with pytest.raises(ValueError, match=r"dsc_net-.*delete it"):
            kept.load()
    announced = b"\x80\x02X\xff\xff\xff\xff.npy"  # of the fuzzer: PyTorch's old format, a text of 4 GB
    for content in (b"", pickle.dumps(Bomb(tmp_path / "trace")), bz2.compress(b"x"), announced):
        kept.path.write_bytes(content)
        with pytest.raises(ValueError, match=r"dsc_net-.*delete it"):
            kept.load()
    assert not (tmp_path / "trace").exists()
    torch.save({"format": 1, "identity": {"a": "1"}}, kept.path)
    with zipfile.ZipFile(kept.path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    write_zip(kept.path, members)  # the same, but packed
    with pytest.raises(ValueError, match="delete it"):
        kept.load()

"""A damaged numpy file gets a sentence, whatever byte is wrong."""

import gc
import io
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from labelkin import InputError
from labelkin import _numpy_files as numpy_files
from labelkin._numpy_files import load_numpy


def saved(path: Path, *, compressed: bool = True) -> bytes:
    arrays = {"probs": np.full((4, 3), 1 / 3, dtype=np.float32), "labels": np.array(["a", "b", "c", "a"])}
    if path.suffix == ".npy":
        np.save(path, arrays["probs"])
    else:
        (np.savez_compressed if compressed else np.savez)(path, **arrays)
    return path.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize(("name", "compressed"), [("x.npy", False), ("x.npz", False), ("x.npz", True)])
def test_every_single_byte_may_be_wrong(tmp_path: Path, name: str, compressed: bool):
    path = tmp_path / name
    content = saved(path, compressed=compressed)
    refused: list[str] = []
    for place in range(len(content)):
        for flipped in (content[place] ^ 0xFF, content[place] ^ 0x01):
            path.write_bytes(content[:place] + bytes([flipped]) + content[place + 1 :])
            try:
                load_numpy(path)
            except InputError as error:
                refused.append(str(error))
    assert len(refused) > len(content) // 10
    assert all(sentence.startswith(str(path)) and "\n" not in sentence for sentence in refused)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_every_shorter_file_is_refused(tmp_path: Path, name: str):
    path = tmp_path / name
    content = saved(path)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(InputError):
            load_numpy(path)


def test_a_damaged_archive_is_closed(tmp_path: Path):
    (tmp_path / "x.npz").write_bytes(saved(tmp_path / "x.npz")[:-40])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(InputError, match="not a readable numpy file"):
            load_numpy(tmp_path / "x.npz")
        gc.collect()
    assert not [str(warning.message) for warning in said]


def test_a_good_file_is_read(tmp_path: Path):
    saved(tmp_path / "x.npz")
    found = load_numpy(tmp_path / "x.npz")
    assert isinstance(found, dict)
    assert found["labels"].tolist() == ["a", "b", "c", "a"]


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, ("trap",)


def test_pickles_are_refused_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "objects.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    (tmp_path / "plain.npy").write_bytes(pickle.dumps(Trap()))
    for name in ("objects.npy", "plain.npy"):
        with pytest.raises(InputError, match="Python objects or is not a numpy file"):
            load_numpy(tmp_path / name)
    assert not (tmp_path / "trap").exists()


def test_an_archive_that_unpacks_to_much_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(numpy_files, "SMALL", 1 << 22)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (1 << 23,)})
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("x.npy", header.getvalue() + bytes(1 << 23))
    with pytest.raises(InputError, match="more than 1,000 times the size of the file"):
        load_numpy(tmp_path / "bomb.npz")


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"gone\.npy: there is no such file"):
        load_numpy(tmp_path / "gone.npy")

"""`load` by name: where files are looked for, downloads from a server of our own, and the options of any set."""

import functools
import gzip
import hashlib
import http.server
import os
import socketserver
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import labelkin.data
from labelkin._checks import InputError
from labelkin.data import DATASETS, cache_folder, data_folders, find_files, load
from labelkin.data._locate import Download, Place, find_or_download

FILES = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No data folder but those that a test makes."""
    monkeypatch.delenv("LABELKIN_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write_mnist(folder, shift=0):
    """A tiny MNIST of real digits, gzipped; `shift` tells one copy from another."""
    folder.mkdir(parents=True)
    found = load_digits()
    arrays = [found.images[:30] + shift, found.target[:30], found.images[30:50], found.target[30:50]]
    for name, array in zip(FILES, arrays, strict=True):
        header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
        (folder / name).write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


@pytest.fixture
def server(tmp_path):
    """A web server with a tiny MNIST and a tiny FOOD101: its address and its folder."""
    root = tmp_path / "served"
    write_mnist(root)
    entry = root / "food-101" / "images" / "pie" / "1.jpg"
    entry.parent.mkdir(parents=True)
    entry.write_bytes(b"a photograph")
    with tarfile.open(root / "food-101.tar.gz", "w:gz") as tar:
        tar.add(root / "food-101", arcname="food-101")
    handler = functools.partial(QuietHandler, directory=str(root))
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}", root
        running.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def served(address, root):
    """MNIST as DATASETS has it, but from our server."""
    downloads = tuple(Download(f"{address}/{name}", md5(root / name), "MNIST/raw") for name in FILES)
    return DATASETS["mnist"].place._replace(downloads=downloads)


def use(monkeypatch, name, place):
    monkeypatch.setitem(DATASETS, name, DATASETS[name]._replace(place=place))


# Where files are looked for


def test_data_dir_goes_before_the_variable_and_the_variable_before_the_cache(tmp_path, monkeypatch):
    first = {}
    for shift, folder in enumerate((cache_folder(), tmp_path / "variable", tmp_path / "given")):
        write_mnist(folder / "MNIST" / "raw", shift)
        if folder.name == "variable":
            monkeypatch.setenv("LABELKIN_DATA", str(folder))
        data_dir = folder if folder.name == "given" else None
        first[folder.name] = int(load("mnist", data_dir=data_dir, download=False).train.inputs.min())
    assert first == {"data": 0, "variable": 1, "given": 2}
    assert data_folders("a") == [Path("a"), tmp_path / "variable", tmp_path / "cache" / "labelkin" / "data"]


def test_absent_and_offline_says_what_to_put_where(tmp_path):
    with pytest.raises(InputError) as caught:
        load("mnist", data_dir=tmp_path, download=False)
    message = str(caught.value)
    for part in (
        str(tmp_path),
        str(cache_folder()),
        "train-images-idx3-ubyte",
        "MNIST/raw",
        "LABELKIN_DATA",
        "turned off",
    ):
        assert part in message
    assert "\n" not in message
    with pytest.raises(
        InputError, match=r"awa2: .* has to be downloaded manually; place the folder Animals_with_Attributes2"
    ):
        load("awa2")
    with pytest.raises(InputError, match=r"data_dir: there is no folder '.*missing'"):
        load("mnist", data_dir=tmp_path / "missing")


def test_unknown_names_list_near_matches():
    with pytest.raises(
        InputError, match=r"no dataset or path 'cifar-100'; known datasets: digits, .*Did you mean 'cifar100'"
    ):
        load("cifar-100")
    with pytest.raises(InputError, match=r"'cifar10:coarse'.*Did you mean 'cifar100:coarse'"):
        load("cifar10:coarse")


def test_a_missing_path_lists_its_neighbours(tmp_path):
    (tmp_path / "photos").mkdir()
    with pytest.raises(InputError, match=r"there is no file or folder '.*photo'\. Did you mean 'photos'\?"):
        load(tmp_path / "photo")
    with pytest.raises(InputError, match=r"there is no file or folder 'iris\.csv'"):
        load("iris.csv")


# Downloads


def test_a_download_lands_checked_in_the_data_folder(tmp_path, server, monkeypatch):
    pytest.importorskip("pooch")
    use(monkeypatch, "mnist", served(*server))
    home = tmp_path / "home"
    home.mkdir()
    data = load("mnist", data_dir=home)
    assert sorted(p.name for p in (home / "MNIST" / "raw").iterdir()) == sorted(FILES)
    assert data.train.targets.tolist() == load_digits().target[:30].tolist()
    for name in FILES:  # there now: nothing is asked of the server again
        (server[1] / name).unlink()
    assert len(load("mnist", data_dir=home).test) == 20


def test_without_data_dir_a_download_goes_to_the_cache(server, monkeypatch):
    pytest.importorskip("pooch")
    use(monkeypatch, "mnist", served(*server))
    load("mnist")
    assert find_files(DATASETS["mnist"].place) == cache_folder() / "MNIST" / "raw"


def test_a_wrong_checksum_a_missing_file_and_no_server(tmp_path, server, monkeypatch):
    pytest.importorskip("pooch")
    place = served(*server)
    spoiled = place._replace(downloads=tuple(item._replace(md5="0" * 32) for item in place.downloads))
    use(monkeypatch, "mnist", spoiled)
    with pytest.raises(InputError, match=r"does not match the published checksum.*place train-images-idx3-ubyte"):
        load("mnist", data_dir=tmp_path)
    assert list((tmp_path / "MNIST" / "raw").iterdir()) == []  # nothing half done is left
    absent = place._replace(downloads=(Download(f"{server[0]}/nothing.gz", "0" * 32),))
    use(monkeypatch, "mnist", absent)
    with pytest.raises(InputError, match=r"the download failed \(HTTPError\)"):
        load("mnist", data_dir=tmp_path)
    unreachable = place._replace(downloads=(Download("http://127.0.0.1:9/x.gz", "0" * 32),))
    use(monkeypatch, "mnist", unreachable)
    with pytest.raises(InputError, match=r"the download failed \(ConnectionError\)"):
        load("mnist", data_dir=tmp_path)


def test_without_pooch_the_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(
        InputError, match=r"the download needs pooch.*pip install 'labelkin\[data\]'; place train-images"
    ):
        load("mnist")


def test_an_archive_is_unpacked_whole(tmp_path, server):
    pytest.importorskip("pooch")
    address, root = server
    archive = Download(f"{address}/food-101.tar.gz", md5(root / "food-101.tar.gz"), unpacks_to="food-101")
    place = Place(("food-101",), lambda path: (path / "images").is_dir(), "it", (archive,))
    home = tmp_path / "home"
    home.mkdir()
    assert find_or_download("food101", place, data_dir=home) == home / "food-101"
    assert (home / "food-101" / "images" / "pie" / "1.jpg").read_bytes() == b"a photograph"
    assert [p.name for p in home.iterdir()] == ["food-101"]


def test_every_download_has_an_address_and_a_checksum():
    for name, source in DATASETS.items():
        for item in source.place.downloads:
            assert item.url.startswith(("http://", "https://")), name
            assert len(bytes.fromhex(item.md5)) == 16, name


# Options of any set


def test_validation_subset_and_noise_touch_the_training_split_alone():
    plain = load("digits")
    data = load("digits", validation_fraction=0.25, subset=0.5, label_noise=0.5, seed=3)
    assert torch.equal(data.test.inputs, plain.test.inputs)
    assert torch.equal(data.test.targets, plain.test.targets)
    true = {x.numpy().tobytes(): int(y) for x, y in zip(plain.train.inputs, plain.train.targets, strict=True)}
    assert [true[x.numpy().tobytes()] for x in data.val.inputs] == data.val.targets.tolist()
    assert len(data.val) == round(0.25 * 1438)
    assert len(data.train) == round(0.5 * (1438 - len(data.val)))
    wrong = [true[x.numpy().tobytes()] != int(y) for x, y in zip(data.train.inputs, data.train.targets, strict=True)]
    assert np.mean(wrong) == pytest.approx(0.5, abs=0.01)


def test_some_classes_in_an_order_of_ones_own():
    data = load("digits", classes=["7", "1", "3"])
    everything = load("digits")
    assert data.classes == ("7", "1", "3")
    for k, name in enumerate(data.classes):
        wanted = everything.train.inputs[everything.train.targets == int(name)]
        assert torch.equal(data.train.inputs[data.train.targets == k], wanted)
    with pytest.raises(InputError, match="classes: the dataset has no class '11'"):
        load("digits", classes=["1", "11"])


@pytest.mark.long
def test_a_tree_follows_its_classes(tmp_path):
    if find_files(DATASETS["fashion-mnist"].place) is None:
        pytest.skip("Fashion-MNIST is not here")
    data = load("fashion-mnist", classes=["Bag", "Coat", "Shirt"], subset=0.01)
    assert data.taxonomy is not None
    assert data.taxonomy.classes == data.classes == ("Bag", "Coat", "Shirt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "species"}, "label: does not apply to digits; it takes no such options"),
        ({"image_size": 32}, "image_size: does not apply to digits"),
        ({"test_fraction": 0.5}, "test_fraction: does not apply to digits, which already has this split"),
        ({"validation_fraction": 1.5}, "validation_fraction: expected a number in"),
        ({"label_noise": -0.1}, "label_noise: expected a number in"),
        ({"subset": 0.0}, "subset: expected a number in"),
        ({"seed": -1}, "seed: expected a whole number of at least 0"),
        ({"on_error": "ignore"}, "on_error: expected one of 'stop', 'skip', got 'ignore'"),
        ({"image_size": 0}, "image_size: expected a whole number of at least 1"),
        ({"classes": ["1"]}, "classes: expected at least 2 names"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        load("digits", **options)


@pytest.mark.long
def test_the_room_opens_without_any_extra():
    code = (
        "import sys; absent = dict.fromkeys(('pooch', 'PIL', 'PIL.Image', 'pyarrow', 'sklearn', 'plotly', 'ray'));"
        "sys.modules.update(absent); import labelkin.data; print(len(labelkin.data.DATASETS))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}, check=False)
    assert done.stdout.strip() == str(len(DATASETS)), done.stderr


@pytest.mark.parametrize(("old", "new"), [("find", "find_files"), ("fetch", "download_files")])
def test_old_names_work_with_a_warning(old: str, new: str):
    with pytest.warns(DeprecationWarning, match=f"labelkin.data.{old} is deprecated; use labelkin.data.{new}"):
        found = getattr(labelkin.data, old)
    assert found is getattr(labelkin.data, new)

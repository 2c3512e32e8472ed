"""Readers of the published sets: real files where they are, small ones in the official layouts always."""

import gzip
import io
import lzma
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from labelkin._checks import InputError
from labelkin.data import load
from labelkin.structure import _catalogue as catalogue
from support.requires import skip_unless

SHARED = Path(__file__).resolve().parents[3] / "shared"
CIFAR10, CIFAR100 = catalogue.taxonomy("cifar10"), catalogue.taxonomy("cifar100")
COARSE = sorted(catalogue.groups("cifar100"))
GROUP_OF = {name: COARSE.index(group) for group, names in catalogue.groups("cifar100").items() for name in names}


# Real sets


def test_digits_are_scikit_learns_with_one_test_set_for_everybody():
    data, again = load("digits", seed=0), load("digits", seed=9)
    assert torch.equal(data.test.inputs, again.test.inputs)
    found = load_digits()
    counts = torch.bincount(torch.cat([data.train.targets, data.test.targets]))
    assert counts.tolist() == np.bincount(found.target).tolist()
    assert set(data.test.targets.tolist()) == set(range(10))
    pixels = {row.numpy().tobytes() for row in torch.cat([data.train.inputs, data.test.inputs])}
    assert pixels == {(image * 15).astype(np.uint8).tobytes() for image in found.images}
    train = data.train.inputs.numpy() / 255
    assert float(data.normalize.mean) == pytest.approx(train.mean(), abs=1e-6)
    assert float(data.normalize.std) == pytest.approx(train.std(), abs=1e-6)
    assert set(data.classes) == set(catalogue.order("digits"))


def _mnist_folder(tmp_path_factory):
    """A data folder with MNIST in it: LABELKIN_DATA, beside the checkout, or unpacked from what lies there."""
    for folder in (os.environ.get("LABELKIN_DATA"), SHARED / "data-unpacked"):
        if folder is not None and (Path(folder) / "MNIST" / "raw").is_dir():
            return Path(folder)
    packed = SHARED / "data" / "mnist"
    skip_unless(packed.is_dir(), "MNIST", "mnist")
    root = tmp_path_factory.mktemp("data")
    (root / "MNIST" / "raw").mkdir(parents=True)
    for file in packed.glob("*.xz"):
        (root / "MNIST" / "raw" / file.stem).write_bytes(lzma.decompress(file.read_bytes()))
    return root


@pytest.mark.long
def test_mnist(tmp_path_factory):
    data = load("mnist", data_dir=_mnist_folder(tmp_path_factory), download=False)
    assert (len(data.train), len(data.test), data.shape) == (60_000, 10_000, (1, 28, 28))
    assert data.train.targets[:5].tolist() == [5, 0, 4, 1, 9]
    assert data.test.targets[:5].tolist() == [7, 2, 1, 0, 4]
    assert torch.bincount(data.test.targets).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert float(data.normalize.mean) == pytest.approx(0.1307, abs=5e-5)
    assert float(data.normalize.std) == pytest.approx(0.3081, abs=5e-5)


def test_fashion_mnist_from_debians_package():
    skip_unless(Path("/usr/share/datasets/fashion-mnist").is_dir(), "Debian's dataset-fashion-mnist", "data")
    data = load("fashion-mnist", download=False)
    assert torch.bincount(data.train.targets).tolist() == [6000] * 10
    assert torch.bincount(data.test.targets).tolist() == [1000] * 10
    assert data.classes[int(data.train.targets[0])] == "Ankle boot"
    assert float(data.normalize.mean) == pytest.approx(0.2860, abs=5e-5)
    assert float(data.normalize.std) == pytest.approx(0.3530, abs=5e-5)
    assert data.taxonomy is not None
    assert data.taxonomy.classes == data.classes


def test_cifar100_agrees_with_the_tree_that_ships_with_the_package():
    folder = Path(os.environ.get("LABELKIN_DATA", SHARED / "data-unpacked"))
    skip_unless((folder / "cifar-100-python").is_dir(), "CIFAR-100", "cifar100")
    data = load("cifar100", data_dir=folder, download=False)
    assert torch.bincount(data.train.targets).tolist() == [500] * 100
    assert torch.bincount(data.test.coarse).tolist() == [500] * 20
    np.testing.assert_allclose(data.normalize.mean, [0.5071, 0.4865, 0.4409], atol=1e-4)
    np.testing.assert_allclose(data.normalize.std, [0.2673, 0.2564, 0.2762], atol=1e-4)
    assert data.coarse_classes == tuple(COARSE)
    wanted = torch.tensor([GROUP_OF[name] for name in data.classes])
    assert torch.equal(wanted[data.train.targets], data.train.coarse)


# Small files in the official layouts


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder, suffix="", dotted=False):
    """Twelve and six real digits, three and two a class or so."""
    found = load_digits()
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in (("train", slice(0, 30)), ("t10k", slice(30, 50))):
        for kind, array in (("images-idx3", found.images), ("labels-idx1", found.target)):
            name = f"{part}-{kind}-ubyte".replace("-idx", ".idx" if dotted else "-idx")
            content = idx(array[rows].astype(np.uint8))
            (folder / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix else content)


@pytest.mark.parametrize(
    ("below", "suffix", "dotted"),
    [("MNIST/raw", "", False), ("mnist", ".gz", False), ("", "", True), ("MNIST", "", False)],
)
def test_idx_files_in_their_usual_places(tmp_path, below, suffix, dotted):
    write_idx(tmp_path / below, suffix, dotted)
    data = load("mnist", data_dir=tmp_path, download=False)
    assert torch.equal(data.train.inputs[:, 0], torch.from_numpy(load_digits().images[:30]).to(torch.uint8))
    assert data.test.targets.tolist() == load_digits().target[30:50].tolist()
    by_path = load(tmp_path / below)
    assert torch.equal(by_path.train.inputs, data.train.inputs)
    assert by_path.classes == data.classes == tuple("0123456789")


def flip_magic(content):
    return b"\x00\x00\x0d" + content[3:]


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            "train-images-idx3-ubyte",
            flip_magic,
            "expected an idx file of 3 dimensions that starts with 00000803, got 00000d03",
        ),
        ("train-labels-idx1-ubyte", lambda c: b"", "expected an idx file of 1 dimension .* got an empty file"),
        ("train-images-idx3-ubyte", lambda c: c[:-1], "expected 1,920 bytes according to its header, got 1,919"),
        ("t10k-labels-idx1-ubyte", lambda c: c + b"\x00", "expected 20 bytes according to its header, got 21"),
        ("t10k-labels-idx1-ubyte", lambda c: idx(np.zeros(19, dtype=np.uint8)), "20 t10k images and 19 labels"),
        ("train-images-idx3-ubyte", lambda c: gzip.compress(c)[:-9], "the gzip archive is damaged"),
        (
            "train-labels-idx1-ubyte",
            lambda c: idx(np.full(30, 10, dtype=np.uint8)),
            "expected train targets from 0 to 9, got 10 to 10",
        ),
    ],
)
def test_corrupt_idx_files(tmp_path, file, change, message):
    write_idx(tmp_path)
    (tmp_path / file).write_bytes(change((tmp_path / file).read_bytes()))
    with pytest.raises(InputError, match=message):
        load("mnist", data_dir=tmp_path, download=False)


def cifar_samples(classes, each, seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(classes), each))
    return rng.integers(0, 256, (len(labels), 3072), dtype=np.uint8), labels


def write_cifar10(folder, binary):
    """Five batches of ten and a test batch of ten, one image a class."""
    folder.mkdir(parents=True)
    samples = [cifar_samples(10, 1, seed) for seed in range(6)]
    for name, (pixels, labels) in zip([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"], samples, strict=True):
        if binary:
            rows = np.concatenate([labels[:, None].astype(np.uint8), pixels], axis=1)
            (folder / f"{name}.bin").write_bytes(rows.tobytes())
        else:
            record = {b"batch_label": b"x", b"labels": labels.tolist(), b"data": pixels, b"filenames": [b"a.png"] * 10}
            (folder / name).write_bytes(pickle.dumps(record, protocol=2))
    if binary:
        (folder / "batches.meta.txt").write_text("\n".join(CIFAR10.classes) + "\n\n")
    else:
        meta = {b"label_names": [name.encode() for name in CIFAR10.classes], b"num_vis": 3072}
        (folder / "batches.meta").write_bytes(pickle.dumps(meta, protocol=2))
    return samples


def write_cifar100(folder, binary):
    folder.mkdir(parents=True)
    samples = [cifar_samples(100, 1, seed) for seed in range(2)]
    for name, (pixels, fine) in zip(("train", "test"), samples, strict=True):
        coarse = np.array([GROUP_OF[CIFAR100.classes[k]] for k in fine])
        if binary:
            rows = np.concatenate([coarse[:, None], fine[:, None], pixels], axis=1).astype(np.uint8)
            (folder / f"{name}.bin").write_bytes(rows.tobytes())
        else:
            record = {b"data": pixels, b"fine_labels": fine.tolist(), b"coarse_labels": coarse.tolist()}
            (folder / name).write_bytes(pickle.dumps(record, protocol=2))
    if binary:
        (folder / "fine_label_names.txt").write_text("\n".join(CIFAR100.classes) + "\n")
        (folder / "coarse_label_names.txt").write_text("\n".join(COARSE) + "\n")
    else:
        meta = {
            b"fine_label_names": [n.encode() for n in CIFAR100.classes],
            b"coarse_label_names": [n.encode() for n in COARSE],
        }
        (folder / "meta").write_bytes(pickle.dumps(meta, protocol=2))
    return samples


def pack(folder, archive):
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)


CIFAR_LAYOUTS = [
    ("cifar10", "cifar-10-batches-py", "cifar-10-python.tar.gz", write_cifar10, False),
    ("cifar10", "cifar-10-batches-bin", "cifar-10-binary.tar.gz", write_cifar10, True),
    ("cifar100", "cifar-100-python", "cifar-100-python.tar.gz", write_cifar100, False),
    ("cifar100", "cifar-100-binary", "cifar-100-binary.tar.gz", write_cifar100, True),
]


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "tar.gz"])
@pytest.mark.parametrize(("name", "folder", "archive", "write", "binary"), CIFAR_LAYOUTS)
def test_cifar_in_every_official_form(tmp_path, name, folder, archive, write, binary, packed):
    home = tmp_path / "elsewhere" / folder if packed else tmp_path / folder
    *train, test = write(home, binary)
    if packed:
        pack(home, tmp_path / archive)
    data = load(name, data_dir=tmp_path, download=False)
    for split, parts in ((data.train, train), (data.test, [test])):
        pixels = np.concatenate([pixels for pixels, _ in parts])
        assert torch.equal(split.inputs, torch.from_numpy(pixels.reshape(-1, 3, 32, 32)))
        assert split.targets.tolist() == np.concatenate([labels for _, labels in parts]).tolist()
    assert data.taxonomy == (CIFAR10 if name == "cifar10" else CIFAR100)
    assert load(tmp_path / (archive if packed else folder)).classes == data.classes
    if name == "cifar100":
        coarse = load("cifar100:coarse", data_dir=tmp_path, download=False)
        assert coarse.classes == data.coarse_classes == tuple(COARSE)
        assert torch.equal(coarse.train.targets, data.train.coarse)
        assert coarse.train.targets.tolist() == [GROUP_OF[data.classes[k]] for k in data.train.targets]


class Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("test", lambda c: c[:-500], "test: not a readable pickle"),
        ("train", lambda c: pickle.dumps([1, 2]), "expected a dictionary, got list"),
        (
            "train",
            lambda c: pickle.dumps({"data": np.zeros((3, 3072), np.uint8)}),
            "3 whole numbers in each of 'fine_labels'",
        ),
        (
            "train",
            lambda c: pickle.dumps({"data": np.zeros((3, 30), np.uint8)}),
            r"expected 'data' of shape \(n, 3072\)",
        ),
        (
            "meta",
            lambda c: pickle.dumps({"label_names": ["a"]}),
            "expected the lists 'fine_label_names', 'coarse_label_names'",
        ),
        (
            "meta",
            lambda c: pickle.dumps({"fine_label_names": ["a"], "coarse_label_names": ["b"]}),
            "expected labels from 0 to 0, got 0 to 99",
        ),
    ],
)
def test_corrupt_cifar_pickles(tmp_path, file, change, message):
    write_cifar100(tmp_path / "cifar-100-python", binary=False)
    path = tmp_path / "cifar-100-python" / file
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=message):
        load("cifar100", data_dir=tmp_path, download=False)


def test_a_hostile_cifar_file_is_refused_without_running(tmp_path):
    write_cifar10(tmp_path / "cifar-10-batches-py", binary=False)
    marker = tmp_path / "ran"
    hostile = {b"data": Runs(str(marker)), b"labels": [0]}
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").write_bytes(pickle.dumps(hostile))
    with pytest.raises(InputError, match=r"data_batch_3: expected .* got posix\.mkdir, .* do not trust this file"):
        load("cifar10", data_dir=tmp_path, download=False)
    assert not marker.exists()


def test_a_short_binary_a_missing_file_and_a_cut_archive(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    write_cifar10(folder, binary=True)
    pack(folder, tmp_path / "cifar-10-binary.tar.gz")
    whole = (folder / "data_batch_2.bin").read_bytes()
    (folder / "data_batch_2.bin").write_bytes(whole[:-1])
    with pytest.raises(InputError, match=r"data_batch_2\.bin: expected records of 3,073 bytes, got 30,729"):
        load("cifar10", data_dir=tmp_path, download=False)
    (folder / "data_batch_2.bin").unlink()
    with pytest.raises(InputError, match=r"'data_batch_2\.bin' is missing; unpack cifar-10-binary\.tar\.gz again"):
        load("cifar10", data_dir=tmp_path, download=False)
    archive = tmp_path / "cifar-10-binary.tar.gz"
    archive.write_bytes(archive.read_bytes()[:50_000])
    with pytest.raises(InputError, match="the archive is damaged"):
        load(archive)


def test_an_archive_with_nothing_of_cifar_in_it(tmp_path):
    archive = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("cifar-10-batches-py/readme.html"), io.BytesIO())
    with pytest.raises(InputError, match="expected a CIFAR file such as"):
        load(archive)


# Sets of photographs


@pytest.fixture
def photo():
    image = pytest.importorskip("PIL.Image")

    def write(path, shade):
        path.parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (20, 16), (shade, 0, 255 - shade)).save(path)

    return write


def test_food101_is_split_as_its_lists_say(tmp_path, photo):
    root = tmp_path / "food-101"
    (root / "meta").mkdir(parents=True)
    lists = {"train": ["apple_pie/1", "apple_pie/2", "waffles/7"], "test": ["waffles/8", "apple_pie/3"]}
    for part, entries in lists.items():
        (root / "meta" / f"{part}.txt").write_text("\n".join(entries) + "\n")
        for entry in entries:
            photo(root / "images" / f"{entry}.jpg", 20 * int(entry[-1]))
    data = load("food101", data_dir=tmp_path, download=False, image_size=8)
    assert data.classes == ("apple_pie", "waffles")
    assert (data.train.targets.tolist(), data.test.targets.tolist()) == ([0, 0, 1], [1, 0])
    assert data.shape == (3, 8, 8)
    np.testing.assert_allclose(data.train.inputs[:, 0].float().mean((1, 2)), [20, 40, 140], atol=3)  # JPEG is lossy
    (root / "images" / "waffles" / "8.jpg").unlink()
    with pytest.raises(InputError, match=r"waffles/8\.jpg' cannot be read"):
        load("food101", data_dir=tmp_path, download=False)


def test_awa2_takes_its_classes_from_its_list(tmp_path, photo):
    root = tmp_path / "Animals_with_Attributes2"
    for name, count in (("grizzly+bear", 10), ("antelope", 5), ("fox", 5)):
        for i in range(count):
            photo(root / "JPEGImages" / name / f"{name}_{i}.jpg", 10 * i)
    (root / "classes.txt").write_text("     1\tantelope\n     2\tgrizzly+bear\n     3\tfox\n")
    data = load("awa2", data_dir=tmp_path)
    assert data.classes == ("antelope", "grizzly bear", "fox")
    assert torch.bincount(data.train.targets).tolist() == [4, 8, 4]
    assert torch.bincount(data.test.targets).tolist() == [1, 2, 1]
    some = load("awa2", data_dir=tmp_path, classes=["fox", "antelope"])
    assert some.classes == ("fox", "antelope")
    assert torch.bincount(some.train.targets).tolist() == [4, 4]
    (root / "classes.txt").write_text("1 antelope\n2 okapi\n")
    with pytest.raises(InputError, match=r"classes\.txt lists 'okapi', but JPEGImages contains no images"):
        load("awa2", data_dir=tmp_path)

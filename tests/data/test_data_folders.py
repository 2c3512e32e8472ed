"""Folders of images: classes, trees, given splits, sizes, and what cannot be read. The images are real digits."""

import struct
import zlib

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from labelkin._checks import InputError
from labelkin.data import Dataset, FileSplit, load
from labelkin.data._readers.images import ImageForm, read_image
from labelkin.structure import Taxonomy

Image = pytest.importorskip("PIL.Image")
FOUND = load_digits()
TREE = {"0": "round/closed/0", "8": "round/closed/8", "3": "round/open/3", "1": "straight/1", "7": "straight/7"}


def write(root, digit, below, count=5):
    """`count` images of a digit, `root/below/*.png`."""
    folder = root / below
    folder.mkdir(parents=True, exist_ok=True)
    for i, image in enumerate(FOUND.images[FOUND.target == digit][:count]):
        Image.fromarray((image * 15).astype(np.uint8)).save(folder / f"{i}.png")


@pytest.fixture
def nested(tmp_path):
    for digit, below in TREE.items():
        write(tmp_path, int(digit), below)
    return tmp_path


def test_nested_folders_are_the_taxonomy(nested):
    data = load(nested)
    assert data.classes == ("0", "8", "3", "1", "7")
    assert data.taxonomy == Taxonomy.from_paths([TREE[name] for name in data.classes])
    assert (len(data.train), len(data.test), data.shape) == (20, 5, (1, 8, 8))
    originals = {(i * 15).astype(np.uint8).tobytes(): int(t) for i, t in zip(FOUND.images, FOUND.target, strict=True)}
    for split in (data.train, data.test):
        for image, target in zip(split.inputs, split.targets.tolist(), strict=True):
            assert originals[image.numpy().tobytes()] == int(data.classes[target])


def test_flat_folders_have_no_taxonomy_and_odd_files_are_left_alone(tmp_path):
    for digit in (4, 2):
        write(tmp_path, digit, str(digit))
    (tmp_path / "2" / "notes.txt").write_text("no image")
    (tmp_path / "4" / "layers.PSD").write_text("no image")
    (tmp_path / "4" / "Thumbs.db").write_text("no image")
    (tmp_path / ".cache").mkdir()
    (tmp_path / "README.md").write_text("no class")
    with pytest.warns(UserWarning, match=r"2 files in the folders of the classes are skipped.*: 1 \.psd, 1 \.txt\."):
        data = load(tmp_path)
    assert (data.classes, data.taxonomy) == (("2", "4"), None)
    assert len(data.train) + len(data.test) == 10


def test_a_wrapping_folder_and_equal_names_in_two_branches(tmp_path):
    for digit, below in ((0, "set/a/left"), (1, "set/a/right"), (2, "set/b/left")):
        write(tmp_path, digit, below)
    data = load(tmp_path)
    assert data.classes == ("a/left", "right", "b/left")
    assert data.taxonomy is not None
    assert data.taxonomy.depth[data.taxonomy.leaves].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("folders", "parts"),
    [
        (("train", "test"), {"train": 6, "test": 4}),
        (("train", "val"), {"train": 6, "test": 4}),  # ImageNet's way
        (("Training", "testing", "valid"), {"train": 6, "test": 4, "val": 4}),
    ],
)
def test_given_splits(tmp_path, folders, parts):
    for part in folders:
        for digit in (0, 1):
            write(tmp_path, digit, f"{part}/{digit}", count=3 if "train" in part.lower() else 2)
    data = load(tmp_path)
    assert {part: len(split) for part, split in data.splits.items()} == parts
    with pytest.raises(InputError, match=r"test_fraction: .* already has this split"):
        load(tmp_path, test_fraction=0.5)


def test_a_validation_split_on_request(nested):
    data = load(nested, test_fraction=0.2, validation_fraction=0.25, seed=1)
    assert {part: len(split) for part, split in data.splits.items()} == {"train": 15, "val": 5, "test": 5}
    rows = [row.numpy().tobytes() for split in data.splits.values() for row in split.inputs]
    assert len(set(rows)) == 25


# What the images become


def test_images_of_many_sizes_are_fitted_and_cropped_in_the_middle(tmp_path):
    pixels = np.zeros((100, 300, 3), dtype=np.uint8)
    pixels[:, 100:200] = (250, 120, 10)  # the middle square
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    Image.fromarray(pixels.transpose(1, 0, 2)).save(tmp_path / "tall.png")
    for name in ("wide", "tall"):
        image = read_image(tmp_path / f"{name}.png", ImageForm(3, 10, 10))
        assert image.dtype == torch.uint8
        assert image[:, 1:-1, 1:-1].unique(dim=1).unique(dim=2).flatten().tolist() == [250, 120, 10]
        assert image[0].min() > 200  # the filter reaches over the edge of the crop by half a pixel


def test_a_photograph_is_turned_as_its_exif_says(tmp_path):
    pixels = np.zeros((32, 32), dtype=np.uint8)
    pixels[:16] = 200  # bright above
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held so that the top is on the left: turn by 90 degrees clockwise
    Image.fromarray(pixels).save(tmp_path / "turned.png", exif=exif)
    image = read_image(tmp_path / "turned.png", ImageForm(1, 4, 4))[0]
    assert image[:, [0, 3]].tolist() == [[0, 200]] * 4


def test_sixteen_bits_are_scaled_not_cut(tmp_path):
    values = np.array([[0, 257], [32896, 65535]], dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    assert read_image(tmp_path / "deep.png", ImageForm(1, 2, 2))[0].tolist() == [[0, 1], [128, 255]]


@pytest.mark.parametrize(
    ("sizes", "mode", "option", "shape"),
    [
        ([(12, 10)], "L", None, (1, 10, 12)),
        ([(12, 10)], "RGB", None, (3, 10, 12)),
        ([(12, 10), (9, 9)], "RGB", None, (3, 64, 64)),
        ([(300, 300)], "RGB", None, (3, 64, 64)),
        ([(12, 10), (9, 9)], "L", 16, (1, 16, 16)),
    ],
)
def test_the_size_is_what_the_images_share_or_what_was_asked(tmp_path, sizes, mode, option, shape):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for i in range(4):
            Image.new(mode, sizes[i % len(sizes)]).save(tmp_path / name / f"{i}.png")
    assert load(tmp_path, image_size=option).shape == shape


def test_streaming_on_request_gives_the_same_samples(nested):
    eager, lazy = load(nested), load(nested, stream=True)
    assert isinstance(lazy.train, FileSplit)
    assert torch.equal(lazy.train.in_memory().inputs, eager.train.inputs)
    assert torch.equal(lazy.train.targets, eager.train.targets)
    assert torch.equal(lazy.normalize.mean, eager.normalize.mean)


# What cannot be used


def test_an_image_that_unpacks_to_hundreds_of_megapixels_is_refused(nested):
    bomb = nested / "straight" / "1" / "2.png"
    content = bytearray(bomb.read_bytes())
    content[16:24] = (30_000).to_bytes(4, "big") * 2  # width and height
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
    bomb.write_bytes(content)
    with pytest.raises(
        InputError, match=r"the image '.*1/2\.png' cannot be read \(Image size \(900000000 pixels\) exceeds"
    ):
        load(nested)


def test_a_broken_image_is_named_and_stops_or_is_skipped(nested):
    broken = nested / "straight" / "1" / "2.png"
    broken.write_bytes(broken.read_bytes()[:70])
    with pytest.raises(InputError, match=r"the image '.*straight/1/2\.png' cannot be read \(.+\); .*on_error='skip'"):
        load(nested)
    with pytest.warns(UserWarning, match=r"1 image could not be read and is skipped: '.*straight/1/2\.png'"):
        data = load(nested, on_error="skip")
    assert len(data.train) + len(data.test) == 24


def test_a_class_whose_images_are_all_broken_is_named(nested):
    for path in (nested / "straight" / "1").iterdir():
        path.write_bytes(b"broken")
    with (
        pytest.warns(UserWarning, match=r"\d images? could not be read"),
        pytest.raises(InputError, match="expected at least one training sample per class, got none of '1'"),
    ):
        load(nested, on_error="skip")


@pytest.mark.parametrize(
    ("arrange", "message"),
    [
        (lambda root: (root / "empty").mkdir(), r"empty: the class folder contains no images"),
        (lambda root: write(root, 5, "."), r"contains both images and the folder 'round'"),
    ],
)
def test_odd_folders(nested, arrange, message):
    arrange(nested)
    with pytest.raises(InputError, match=message):
        load(nested)


def test_missing_empty_or_single_class_folders(tmp_path):
    with pytest.raises(InputError, match=r"there is no file or folder '.*/nowhere'"):
        load(tmp_path / "nowhere")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match="expected one folder of images per class, got no class folders"):
        load(tmp_path / "nothing")
    write(tmp_path, 3, "loose")
    with pytest.raises(InputError, match="got images but no class folders"):
        load(tmp_path / "loose")
    write(tmp_path / "one", 3, "cat")
    with pytest.raises(InputError, match="one: expected at least two classes, got only 'cat'"):
        load(tmp_path / "one")
    write(tmp_path / "few", 3, "cat")
    write(tmp_path / "few", 4, "lynx", count=1)
    with pytest.warns(UserWarning, match="1 class with one sample, which is trained on and not tested: 'lynx'"):
        load(tmp_path / "few")


def test_a_test_folder_with_a_class_that_is_not_trained(tmp_path):
    for below in ("train/a", "train/b", "test/a", "test/c"):
        write(tmp_path, 3, below)
    with pytest.raises(InputError, match="test has class folders that train does not have: 'c'"):
        load(tmp_path)


def test_a_taxonomy_in_another_order_is_refused(nested):
    data = load(nested)
    assert data.taxonomy is not None
    with pytest.raises(InputError, match="expected a taxonomy over the same classes in the same order"):
        Dataset(
            name="x", classes=data.classes, train=data.train, test=data.test,
            taxonomy=data.taxonomy.reorder(data.classes[::-1]),
        )  # fmt: skip


def test_a_png_with_a_broken_chunk_is_named_or_skipped(nested):
    """Pillow raises a ValueError for it when it reads the header already."""
    file = nested / "round/open/3/0.png"
    content = file.read_bytes()
    chunk = b"acTL" + b"a\0\0x"
    packed = struct.pack(">I", 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    file.write_bytes(content[:33] + packed + content[33:])  # after the header
    with pytest.raises(InputError, match=r"the image '.*0\.png' cannot be read \(APNG contains truncated acTL chunk\)"):
        load(nested)
    with pytest.warns(UserWarning, match="1 image"):
        found = load(nested, on_error="skip")
    assert len(found.train) + len(found.test) == 24

"""Photos as cameras, phones and editors write them."""

import io
import os

import numpy as np
import pytest
import torch
from PIL import Image, features

import labelkin
from labelkin import data
from labelkin._checks import InputError
from labelkin._extras import MissingExtra
from labelkin.data import UnreadableImage, folder_content
from labelkin.data._readers.images import ImageForm, read_image
from labelkin.data._unlabeled import files_at

RGB, GRAY = ImageForm(3, 16, 16), ImageForm(1, 16, 16)
COLOR = (200, 120, 40)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELKIN_CACHE", str(tmp_path / "cache"))


def mean_color(path, form=RGB) -> list[float]:
    return read_image(path, form).float().mean((1, 2)).tolist()


@pytest.mark.parametrize("suffix", [".jfif", ".webp", ".avif", ".heic", ".jpg", ".bmp", ".tiff"])
def test_the_formats_of_photos(tmp_path, suffix):
    path = tmp_path / f"photo{suffix}"
    image = Image.new("RGB", (40, 30), COLOR)
    if suffix == ".heic":
        pytest.importorskip("pillow_heif").register_heif_opener()
        image.save(path, format="HEIF")
    elif suffix == ".avif" and not features.check("avif"):
        pytest.skip("this Pillow has no AVIF")
    else:
        image.save(path)
    assert mean_color(path) == pytest.approx(COLOR, abs=4)


def test_a_missing_package_for_heic_is_named(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.heic").write_bytes(b"")
    monkeypatch.setitem(__import__("sys").modules, "pillow_heif", None)
    with pytest.raises(MissingExtra, match=r"reading \.heic files needs pillow_heif.*labelkin\[heic\]"):
        data.load(tmp_path)


def test_cmyk_is_read_as_colors(tmp_path):
    Image.new("RGB", (40, 40), COLOR).convert("CMYK").save(tmp_path / "print.jpg")
    assert mean_color(tmp_path / "print.jpg") == pytest.approx(COLOR, abs=6)


def test_sixteen_bits_of_three_channels_are_scaled(tmp_path):
    """A PNG with 16 bits per color, written by hand because Pillow writes none."""
    import struct
    import zlib

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    row = b"\0" + struct.pack(">3H", *(257 * value for value in COLOR)) * 8
    header = struct.pack(">2I5B", 8, 8, 16, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * 8)) + chunk(b"IEND", b"")
    (tmp_path / "deep.png").write_bytes(png)
    assert mean_color(tmp_path / "deep.png") == pytest.approx(COLOR, abs=1)


@pytest.mark.parametrize(("suffix", "tolerance"), [(".gif", 12), (".webp", 6), (".png", 0)])
def test_an_animation_is_its_first_frame(tmp_path, suffix, tolerance):
    frames = [Image.new("RGB", (20, 20), color) for color in (COLOR, (0, 0, 255), (0, 255, 0))]
    frames[0].save(tmp_path / f"moving{suffix}", save_all=True, append_images=frames[1:])
    assert mean_color(tmp_path / f"moving{suffix}") == pytest.approx(COLOR, abs=tolerance)


def test_transparent_parts_are_white(tmp_path):
    pixels = np.zeros((16, 16, 4), dtype=np.uint8)
    pixels[:8] = (*COLOR, 255)
    pixels[8:] = (10, 20, 30, 0)  # colors that nobody sees
    Image.fromarray(pixels).save(tmp_path / "logo.png")
    found = read_image(tmp_path / "logo.png", RGB)
    assert found[:, 0, 0].tolist() == list(COLOR)
    assert found[:, -1, 0].tolist() == [255, 255, 255]
    Image.fromarray(pixels[..., [0, 3]], "LA").save(tmp_path / "gray.png")
    assert read_image(tmp_path / "gray.png", GRAY)[0, :, 0].tolist() == [COLOR[0]] * 8 + [255] * 8


def test_a_palette_with_transparency_is_white_there(tmp_path):
    image = Image.new("P", (16, 16), 1)
    image.putpalette([0, 0, 0, *COLOR])
    image.paste(0, (0, 8, 16, 16))
    image.save(tmp_path / "old.gif", transparency=0)
    found = read_image(tmp_path / "old.gif", RGB)
    assert found[:, 0, 0].tolist() == list(COLOR)
    assert found[:, -1, 0].tolist() == [255, 255, 255]


def test_a_truncated_photo_is_named_and_not_guessed(tmp_path):
    file = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(file, "jpeg")
    (tmp_path / "half.jpg").write_bytes(file.getvalue()[: len(file.getvalue()) // 2])
    with pytest.raises(UnreadableImage, match="truncated"):
        read_image(tmp_path / "half.jpg", RGB)


def test_a_large_jpeg_is_decoded_in_a_reduced_size(tmp_path, monkeypatch):
    Image.new("RGB", (1600, 1600), COLOR).save(tmp_path / "large.jpg")
    decoded = []
    load = Image.Image.convert
    monkeypatch.setattr(Image.Image, "convert", lambda self, *a, **k: decoded.append(self.size) or load(self, *a, **k))
    assert mean_color(tmp_path / "large.jpg") == pytest.approx(COLOR, abs=4)
    assert max(decoded[-1]) <= 200  # an eighth, the smallest size that JPEG offers


def test_the_folder_of_a_class_without_images_says_what_it_has(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8), COLOR).save(tmp_path / name / "1.png")
    (tmp_path / "c").mkdir()
    for name in ("1.psd", "2.psd", "notes"):
        (tmp_path / "c" / name).write_bytes(b"")
    with pytest.raises(
        InputError, match=r"contains no images, but 2 \.psd, 1 without suffix, which labelkin does not read"
    ):
        data.load(tmp_path)


def test_prediction_counts_the_files_that_it_skips(tmp_path):
    for name in ("1.png", "2.raw", "3.raw", "Thumbs.db", ".hidden"):
        (tmp_path / name).write_bytes(b"")
    with pytest.warns(UserWarning, match=r"2 files are skipped: 2 \.raw"):
        found = files_at(tmp_path, single={".png"}, kind="image", others=())
    assert [file.name for file in found] == ["1.png"]


@pytest.fixture
def photos(tmp_path):
    root = tmp_path / "photos"
    for k, name in enumerate(("a", "b")):
        (root / name).mkdir(parents=True)
        for i in range(6):
            Image.fromarray(np.full((8, 8), 100 * k + i, dtype=np.uint8)).save(root / name / f"{i}.bmp")
    return root


def replaced(file) -> None:
    """Another image of the same name and size, with another time."""
    before = file.read_bytes()
    Image.fromarray(np.full((8, 8), 255, dtype=np.uint8)).save(file)
    assert len(file.read_bytes()) == len(before)
    os.utime(file, ns=(1, 1))


def test_a_folder_is_known_by_content(photos):
    before = folder_content(str(photos))
    assert before == folder_content(str(photos)) is not None
    fingerprint = data.fingerprint(str(photos))
    replaced(photos / "a" / "1.bmp")
    assert data.fingerprint(str(photos)) == fingerprint  # so the ids of earlier runs stay
    assert folder_content(str(photos)) != before
    assert folder_content("digits") is None
    (photos / "b" / "notes.txt").write_text("no image")
    renamed = folder_content(str(photos))
    (photos / "a" / "1.bmp").rename(photos / "a" / "9.bmp")
    assert folder_content(str(photos)) != renamed


@pytest.mark.long
def test_a_run_on_replaced_images_is_not_reused(photos, tmp_path):
    run = labelkin.train(photos, out=tmp_path / "run", epochs=1, calibration=0)
    assert labelkin.evaluate(run).samples == 2
    replaced(photos / "a" / "1.bmp")
    with pytest.raises(InputError, match="the data changed since this run was trained"):
        labelkin.evaluate(run)
    with pytest.raises(InputError, match="trained on other images of the same names and sizes"):
        labelkin.train(photos, out=tmp_path / "run", epochs=1, calibration=0)


@pytest.mark.long
def test_a_comparison_on_replaced_images_is_not_reused(photos, tmp_path):
    options = {"objectives": ["one-hot"], "out": tmp_path / "runs", "epochs": 1, "calibration": 0}
    labelkin.compare(photos, **options)
    labelkin.compare(photos, **options)
    replaced(photos / "a" / "1.bmp")
    with pytest.raises(InputError, match="trained on other images of the same names and sizes"):
        labelkin.compare(photos, **options)


def test_images_of_bytes_stay_as_they_are(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "plain.png")
    assert torch.equal(read_image(tmp_path / "plain.png", RGB), torch.from_numpy(pixels).permute(2, 0, 1))

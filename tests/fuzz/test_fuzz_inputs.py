"""Images, parquet tables and inputs of predictions that anyone may have written."""

import io
import json
import struct
import warnings
import zlib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

import labelkin
from labelkin import InputError, data
from labelkin.runs import export_model, load_run, write_predictions
from support.fuzzing import changed, damaged, files, fuzz

PIL = pytest.importorskip("PIL.Image")
FORMATS = {"png": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"), "jpeg": ("L", "RGB", "CMYK"), "gif": ("L", "P", "RGB")}
FORMATS |= {
    "bmp": ("1", "L", "P", "RGB"),
    "tiff": ("1", "L", "RGB", "RGBA", "CMYK", "F", "I;16"),
    "webp": ("RGB", "RGBA"),
}


def picture(rng: Random, kind: str) -> bytes:
    """A valid image of any mode and size, perhaps turned by its EXIF data or with several frames."""
    mode = rng.choice(FORMATS[kind])
    width, height = rng.randrange(1, 24), rng.randrange(1, 24)
    values = np.random.default_rng(rng.randrange(2**32)).integers(0, 256, (height, width, 3), dtype=np.uint8)
    if mode in ("F", "I;16"):
        own = PIL.fromarray(values[..., 0].astype(np.float32 if mode == "F" else np.uint16))
    else:
        own = PIL.fromarray(values).convert(mode)
    out, options = io.BytesIO(), {}
    if kind in ("png", "jpeg", "webp", "tiff") and rng.random() < 0.3:
        exif = PIL.Exif()
        exif[0x0112] = rng.randrange(10)  # the orientation; 1 to 8 are defined
        options["exif"] = exif
    if kind in ("gif", "tiff") and mode != "F" and rng.random() < 0.3:
        options |= {"save_all": True, "append_images": [own.copy()]}
    own.save(out, kind, **options)
    return out.getvalue()


def with_other_chunks(content: bytes, rng: Random) -> bytes:
    """A PNG with a chunk changed, dropped, repeated or moved, and correct checksums, so that its reader goes on."""
    chunks, at = [], 8
    while at < len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        chunks.append([content[at + 4 : at + 8], bytearray(content[at + 8 : at + 8 + size])])
        at += 12 + size
    place = rng.randrange(len(chunks))
    kind, body = chunks[place]
    match rng.randrange(5):
        case 0 if kind == b"IHDR":
            field, values = rng.choice(
                [
                    ((0, 4), (0, 1, 40, 60_000, 2**31)),
                    ((4, 8), (0, 1, 60_000)),
                    ((8, 9), (0, 4, 16)),
                    ((9, 10), range(8)),
                ]
            )
            body[slice(*field)] = rng.choice(list(values)).to_bytes(field[1] - field[0], "big")
        case 0 if kind == b"IDAT":
            pixels = bytearray(zlib.decompress(bytes(body)))
            pixels[rng.randrange(len(pixels))] ^= 1 << rng.randrange(8)  # a pixel, or the filter of a line
            body[:] = zlib.compress(bytes(pixels if rng.random() < 0.5 else pixels[: len(pixels) // 2]))
        case 1:
            del chunks[place]
        case 2:
            chunks.insert(rng.randrange(len(chunks) + 1), chunks[place])
        case 3:
            chunks.insert(
                1, [rng.choice((b"tEXt", b"zTXt", b"tRNS", b"gAMA", b"acTL", b"abcd", b"iCCP")), bytearray(b"a\0\0x")]
            )
        case _ if body:
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    packed = b"".join(
        struct.pack(">I", len(body)) + kind + bytes(body) + struct.pack(">I", zlib.crc32(kind + bytes(body)))
        for kind, body in chunks
    )
    return content[:8] + packed


def any_picture(rng: Random) -> tuple[str, bytes]:
    kind = rng.choice(("png", "png", *FORMATS))
    content = picture(rng, kind)
    if kind == "png" and rng.random() < 0.5:
        return kind, with_other_chunks(content, rng)
    return kind, damaged(content, rng)


@pytest.mark.long
def test_images(tmp_path: Path):
    for k in range(6):
        (tmp_path / f"photos/{'ab'[k % 2]}").mkdir(parents=True, exist_ok=True)
        PIL.fromarray(np.full((9, 9, 3), 20 * k, np.uint8)).save(tmp_path / f"photos/{'ab'[k % 2]}/{k}.png")

    def case(rng: Random) -> None:
        kind, content = any_picture(rng)
        file = tmp_path / f"photos/a/odd.{kind}"
        file.write_bytes(content)
        skip = rng.random() < 0.2
        size = rng.choice((None, 8))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = data.load(tmp_path / "photos", image_size=size, on_error="skip" if skip else "stop")
            assert found.shape[1:] == ((8, 8) if size else found.shape[1:])
            assert found.train.inputs.dtype == torch.uint8
            read = sum(map(len, found.splits.values()))
            assert read in ((6, 7) if skip else (7,))
        finally:
            file.unlink()
        if read == 6:
            raise InputError("the image was skipped")

    fuzz(case)


def column(rng: Random, count: int) -> Any:
    """A column of one of the many types that a parquet file may have."""
    import pyarrow as pa

    match rng.randrange(14):
        case 0:
            return pa.array([rng.choice("xyz") for _ in range(count)]).dictionary_encode()
        case 1:
            return pa.array([None if rng.random() < 0.2 else rng.random() for _ in range(count)])
        case 2:
            return pa.array([[rng.random()] for _ in range(count)])
        case 3:
            return pa.array([{"a": rng.randrange(3)} for _ in range(count)])
        case 4:
            return pa.array(range(count), pa.timestamp("s"))
        case 5:
            return pa.array([b"\xff\x00"] * count)
        case 6:
            return pa.nulls(count)
        case 7:
            return pa.array([rng.random() < 0.5 for _ in range(count)])
        case 8:
            return pa.array([rng.choice((0.0, float("nan"), float("inf"), 1e300)) for _ in range(count)])
        case 9:
            return pa.array([rng.choice(("1", " 2", "x", "")) for _ in range(count)])
        case 10:
            return pa.array([rng.random() for _ in range(count)]).cast(pa.float32())
        case 11:
            return pa.array([rng.randrange(2**62) for _ in range(count)])
        case 12:
            return pa.array([rng.randrange(5) for _ in range(count)], pa.int8())
        case _:
            return pa.array([rng.random() for _ in range(count)]).cast(pa.decimal128(20, 10), safe=False)


@pytest.mark.long
def test_parquet_tables(tmp_path: Path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    file = tmp_path / "t.parquet"

    def case(rng: Random) -> None:
        count = rng.randrange(8, 30)
        columns = {"label": pa.array([["cat", "dog", "cow", "é猫"][k % 4] for k in range(count)])}
        columns |= {name: pa.array([rng.random() for _ in range(count)]) for name in "ab"}
        if rng.random() < 0.5:
            columns[rng.choice(("label", "a", "b", "c", "", "split", "x\x1b[2J"))] = column(rng, count)
        names = list(columns)
        if rng.random() < 0.1:
            names[-1] = rng.choice(names)  # twice
        out = io.BytesIO()
        table = pa.Table.from_arrays(list(columns.values()), names=names)
        pq.write_table(table, out, compression=rng.choice(("none", "snappy", "gzip", "zstd")), row_group_size=5)
        file.write_bytes(damaged(out.getvalue(), rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = data.load(file)
        assert len(found.classes) >= 2

    fuzz(case)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run on images, and one on a table of four numbers."""
    out = tmp_path_factory.mktemp("trained")
    labelkin.train("digits", out=out / "images", epochs=1, batch_size=512)
    rows = np.random.default_rng(0).normal(size=(80, 4)).round(3)
    lines = [f"{','.join(map(str, row))},{'xyz'[k % 3]}" for k, row in enumerate(rows.tolist())]
    (out / "t.csv").write_text("\n".join(["a,b,c,d,label", *lines]))
    labelkin.train(out / "t.csv", out=out / "table", epochs=1, batch_size=16)
    return {"images": out / "images", "table": out / "table"}


def array(rng: Random, shape: tuple[int, ...], *, pixels: bool) -> np.ndarray:
    """Inputs for a model, most of them of its own shape."""
    count = rng.choice((0, 1, 1, 2, 3, 7))
    make = np.random.default_rng(rng.randrange(2**32))
    usual = make.integers(0, 256, (count, *shape)).astype(np.uint8) if pixels else make.normal(size=(count, *shape))
    if rng.random() < 0.5:
        return usual if rng.random() < 0.5 else (usual / (255 if pixels else 1)).astype(rng.choice(("f4", "f8", "f2")))
    match rng.randrange(7):
        case 0:
            return usual.reshape(count, int(np.prod(shape)))
        case 1:
            return usual.astype(rng.choice(("i8", "f4", "u2", "c8", "?", "S1", "U1", "M8[s]")))
        case 2:
            return np.where(make.random(usual.shape) < 0.1, rng.choice((np.nan, np.inf, -1.0, 1e38)), usual)
        case 3:
            return usual[..., :-1]
        case 4:
            return np.zeros(rng.choice(((), (3,), (0, 0), (2, *shape, 1))))
        case 5:
            return np.asfortranarray(usual).astype(usual.dtype.newbyteorder(">"))
        case _:
            return usual


def inputs_file(rng: Random, folder: Path, kind: str, shape: tuple[int, ...]) -> Path:
    """A file of inputs, valid or not, of one of the formats that `predict` reads."""
    choices = (".npy", ".npz", ".png") if kind == "images" else (".npy", ".csv", ".jsonl")
    suffix = rng.choice(choices)
    if suffix == ".png":
        name, content = any_picture(rng)
        file = folder / f"in.{name}"
    else:
        file, out = folder / f"in{suffix}", io.BytesIO()
        if suffix == ".npy":
            np.save(out, array(rng, shape, pixels=kind == "images"))
        elif suffix == ".npz":
            np.savez(out, **{rng.choice(("x", "images", "odd")): array(rng, shape, pixels=kind == "images")})
        else:
            rows = [{name: round(rng.random(), 3) for name in "abcd"} for _ in range(rng.randrange(1, 5))]
            rows = changed(rows, rng)
            kept = rows if isinstance(rows, list) else [rows]
            if suffix == ".jsonl":
                out.write("\n".join(json.dumps(row) for row in kept).encode())
            else:
                records = [row for row in kept if isinstance(row, dict)]
                lines = [",".join(map(str, records[0])) if records else "a"]
                lines += [",".join(str(value) for value in row.values()) for row in records]
                out.write("\n".join(lines).encode("utf-8", "replace"))
        content = damaged(out.getvalue(), rng)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("kind", ["images", "table"])
def test_inputs_of_predictions(runs: dict[str, Path], tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch):
    """A prediction for each input, or none and no file."""
    predictor = load_run(runs[kind])
    monkeypatch.setattr("labelkin.runs._write_predictions.load_run", lambda run: predictor)  # once for all cases

    def case(rng: Random) -> None:
        file, out = inputs_file(rng, tmp_path, kind, predictor.shape), tmp_path / f"out{rng.choice(('.csv', '.jsonl'))}"
        before = files(tmp_path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                count = write_predictions(
                    runs[kind], [file], out, decide=rng.choice(("argmax", "crm")), all_probs=rng.random() < 0.3
                )
        except InputError:
            assert files(tmp_path) == before, "a refused input left a file"
            raise
        else:
            assert files(tmp_path) == before | {out.name}
            lines = out.read_text(encoding="utf-8").splitlines()
            assert len(lines) == count + (out.suffix == ".csv")
        finally:
            file.unlink()
            out.unlink(missing_ok=True)

    fuzz(case)


@pytest.mark.long
def test_inputs_of_exported_models(runs: dict[str, Path], tmp_path: Path):
    """What the run accepts, the exported model accepts, with the same probabilities."""
    onnxruntime = pytest.importorskip("onnxruntime")
    export_model(runs["images"], tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (wanted,) = session.get_inputs()
    predictor = load_run(runs["images"])

    def case(rng: Random) -> None:
        given = array(rng, predictor.shape, pixels=True)
        expected = predictor.predict(given).all_probabilities
        assert expected is not None
        assert len(expected) == len(given)
        if given.dtype == np.uint8 and wanted.type == "tensor(uint8)" and len(given):
            pixels = np.moveaxis(np.broadcast_to(given, (len(given), 3, *given.shape[2:])), 1, -1)
            (found,) = session.run(["log_probs"], {wanted.name: np.ascontiguousarray(pixels)})
            assert np.abs(np.exp(found) - expected.numpy()).max() < 1e-3

    fuzz(case)

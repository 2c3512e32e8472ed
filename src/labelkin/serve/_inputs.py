"""Samples from requests: a photo, a text or a row of features, read as `labelkin predict` reads files."""

import csv
import io
import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from torch import Tensor

from labelkin._checks import InputError, counted, listed, near
from labelkin._extras import require
from labelkin.data import UnreadableImage, decoder_errors, read_unlabeled, restored, with_point, without_words
from labelkin.runs import Predictor

Kind = Literal["photo", "text", "features"]
MOST_PIXELS = 50_000_000
MOST_CHARACTERS = 200_000
# Formats that Pillow decodes by itself; others, such as EPS, start programs.
FORMATS = {
    "JPEG": ".jpg",
    "MPO": ".jpg",
    "PNG": ".png",
    "WEBP": ".webp",
    "GIF": ".gif",
    "BMP": ".bmp",
    "TIFF": ".tif",
    "AVIF": ".avif",
    "HEIF": ".heic",
}


class Samples:
    """Read samples for a run.

    Args:
        predictor: The run. One that takes arrays which are neither images nor rows of numbers is refused.
    """

    def __init__(self, predictor: Predictor) -> None:
        self.predictor, self.columns = predictor, predictor.samples.columns
        self.kind: Kind
        self._encoder: Any = None
        if predictor.samples.encoder is not None:
            self.kind, self._encoder = "text", restored(predictor.samples.encoder)
        elif len(predictor.shape) == 3 and predictor.shape[0] in (1, 3) and predictor.samples.pixels:
            self.kind = "photo"
        elif len(predictor.shape) == 1:
            self.kind = "features"
        else:
            raise InputError(
                f"run: expected a run on images, texts or rows of features, got one on arrays of shape {predictor.shape}; "
                "use `labelkin predict` with files of arrays."
            )

    @property
    def values(self) -> int:
        """The number of values in a row of features; a column of categories is several inputs of the network."""
        return self.predictor.shape[0] if self.columns is None else len(self.columns)

    def read(self, given: Mapping[str, Any]) -> tuple[Tensor, str | None]:
        """Return one sample (1, ...) and a remark on it.

        Args:
            given: The fields of the request. Exactly one that the run can take: `photo` (bytes), `text`, `features` (a list, or
                an object by column) or `row` (the same as text).
        """
        known = {"photo": ("photo",), "text": ("text",), "features": ("features", "row")}[self.kind]
        wrong = sorted(set(given) - set(known))
        if wrong or len(given) != 1:
            raise InputError(
                f"request: this run takes {' or '.join(repr(name) for name in known)}, got "
                f"{listed(sorted(given)) if given else 'nothing'}."
            )
        name, value = next(iter(given.items()))
        if name == "photo":
            return self._photo(value), None
        if name == "text":
            return self._text(value)
        return self._features(_parsed_row(value) if name == "row" else value), None

    def _photo(self, content: Any) -> Tensor:
        if not isinstance(content, bytes):
            raise InputError("photo: expected a file; send it as multipart/form-data.")
        suffix = _checked_image(content)
        try:
            return self._from_file(f"photo{suffix}", content)
        except UnreadableImage as error:
            raise InputError(f"photo: the image cannot be read ({error.reason}); send another file.") from None

    def _text(self, text: Any) -> tuple[Tensor, str | None]:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"text: expected some text, got {text!r:.40}.")
        if len(text) > MOST_CHARACTERS:
            raise InputError(f"text: expected at most {MOST_CHARACTERS:,} characters, got {len(text):,}; shorten it.")
        assert self._encoder is not None
        encoded = self._encoder.encode([text])
        remark = (
            "No word of this text is known to the run, so the answer says little." if without_words(encoded) else None
        )
        return encoded, remark

    def _features(self, given: Any) -> Tensor:
        count = self.values
        names = self.columns or [f"x{at}" for at in range(count)]
        if isinstance(given, Mapping):
            if self.columns is None:
                raise InputError(
                    f"features: the columns of this run have no names; expected a list of {counted(count, 'number')}."
                )
            missing = [name for name in names if name not in given]
            if missing:
                raise InputError(f"features: {listed(missing)} missing.{near(missing[0], list(map(str, given)))}")
            values = [given[name] for name in names]
        elif isinstance(given, list):
            values = given
        else:
            raise InputError(f"features: expected a list of values or an object by column, got {given!r:.40}.")
        if len(values) != count:
            raise InputError(f"features: expected {counted(count, 'value')} ({listed(names)}), got {len(values)}.")
        if not all(isinstance(value, (int, float, str, type(None))) for value in values):
            raise InputError("features: expected numbers or texts, got lists or objects.")
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows([names, values])
        return self._from_file("row.csv", table.getvalue().encode("utf-8"))

    def _from_file(self, name: str, content: bytes) -> Tensor:
        """Return the one sample in a file, which exists only while it is read; error messages leave out its path."""
        with TemporaryDirectory(prefix="labelkin-serve-") as folder:
            path = Path(folder, name)
            path.write_bytes(content)
            try:
                parts = read_unlabeled([path], shape=self.predictor.shape, samples=self.predictor.samples)
                return next(iter(parts)).inputs
            except UnreadableImage as error:
                raise UnreadableImage(Path(name), error.reason.replace(str(path), name)) from None
            except InputError as error:
                raise InputError(str(error).replace(f"{path}, line 2", "features").replace(str(path), name)) from None


def _checked_image(content: bytes) -> str:
    """Return the suffix of an image file; refuse other formats and images that are too large, before they are decoded."""
    pil = require("PIL.Image", extra="data", use="reading images")
    pil.init()
    formats = [name for name in FORMATS if name in pil.OPEN]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pil.DecompressionBombWarning)  # a lower limit follows
            with pil.open(io.BytesIO(content), formats=formats) as image:
                size, found = image.size, str(image.format)
    except pil.DecompressionBombError:
        size, found = (MOST_PIXELS, 2), formats[0]
    except decoder_errors() as error:
        raise InputError(f"photo: expected an image file ({', '.join(formats)}), got something else.") from error
    if size[0] * size[1] > MOST_PIXELS:
        raise InputError(
            f"photo: expected at most {MOST_PIXELS // 1_000_000} million pixels, got more; send a smaller image."
        )
    return FORMATS[found]


def _parsed_row(text: Any) -> Any:
    """Return the values in a line of a table, or with a line of column names above it, the values by column."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"row: expected a row of values, got {text!r:.40}.")
    if text.lstrip().startswith(("{", "[")):
        return _parsed_json(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 2:
        raise InputError(f"row: expected one row, or column names and one row, got {counted(len(lines), 'line')}.")
    bare = re.sub(r'"[^"]*"', "", lines[0])  # marks in quotes separate nothing
    separator = next((mark for mark in ("\t", ";", ",") if mark in bare), None)
    cells = [line.split() if separator is None else next(csv.reader([line], delimiter=separator)) for line in lines]
    cells = [[cell.strip() for cell in line] for line in cells]
    if separator == ";":
        cells[-1] = [with_point(cell) for cell in cells[-1]]
    if len(cells) == 1:
        return cells[0]
    if len(cells[0]) != len(cells[1]):
        raise InputError(f"row: expected as many values as column names, got {len(cells[1])} for {len(cells[0])}.")
    return dict(zip(cells[0], cells[1], strict=True))


def _parsed_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("row: expected values, a JSON list or a JSON object, got damaged JSON.") from None

"""Read tables (.csv, .tsv, .jsonl, .parquet) with label columns; the others contain numbers or an image path."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from labelkin._checks import InputError, check_names, counted, listed, near
from labelkin.data._dataset import ArraySplit, FileSplit, RawDataset, Split, class_names, positions
from labelkin.data._partial import BELOW, label_path, with_paths
from labelkin.data._readers.columns import Categories, Columns, find_categories, warn_numbered
from labelkin.data._readers.folders import SPLIT_NAMES
from labelkin.data._readers.images import SUFFIXES, OnError, choose_form
from labelkin.data._readers.rows import ROW_NAMES, read_rows

LABEL, SPLIT = "label", "split"
SHOWN = 30  # columns in an error message


class Roles(NamedTuple):
    """The columns of the labels, coarse to fine, of the image paths and of the features, some of which hold categories."""

    labels: tuple[str, ...]
    image: str | None
    features: tuple[str, ...]
    categories: Categories


class Table(NamedTuple):
    """The samples of one file: either `images` or `features` (n, D), and `parts` if there is a split column."""

    labels: list[str]
    images: list[Path]
    features: npt.NDArray[np.float32]
    parts: list[str]


def read_tables(
    paths: Mapping[str, Path],
    *,
    label: str | Sequence[str] | None = None,
    image: str | None = None,
    features: Sequence[str] | None = None,
    image_size: int | None = None,
    on_error: OnError = "stop",
    encoding: str | None = None,
    categories: Categories | None = None,
) -> RawDataset:
    """Read one table per split, or `{"train": path}` only, which may have a column "split".

    Args:
        paths: Split -> file.
        label: Column of the labels ("label" by default), or several, coarse to fine, that define the taxonomy. Where the finest
            are empty, only a node above the class is known.
        image: Column of the image paths, relative to the table's folder (default: the first column with names of image files).
        features: Numeric columns (default: all others, if there is no column of images).
        image_size: Height and width that images are converted to.
        on_error: What to do with images that cannot be read: "stop" or "skip".
        encoding: The encoding of .csv and .tsv files; by default it is detected.
        categories: The values of the columns that hold categories; by default those in the training table.
    """
    roles = column_roles(paths["train"], label, image, features, encoding, categories)
    tables = {part: _table(path, roles, encoding) for part, path in paths.items()}
    if features is None:
        names = Columns(roles.features, roles.categories, paths["train"]).features
        warn_numbered(paths["train"], names, tables["train"].features)
    if on_error == "stop":
        for part, table in tables.items():
            _check_images(table, paths[part])
    if tables["train"].parts and len(tables) == 1:
        tables = _divided(tables["train"], paths["train"])
    classes = class_names(labels_in({part: t.labels for part, t in tables.items()}, several=is_several(label)))
    form = None
    if tables["train"].images:
        form = choose_form(tables["train"].images, image_size=image_size)
    splits: dict[str, Split] = {}
    for part, table in tables.items():
        targets = positions(table.labels, classes, source=str(paths.get(part, paths["train"])))
        if form is None:
            splits[part] = ArraySplit(torch.from_numpy(table.features), targets)
        else:
            files = tuple(table.images)
            splits[part] = FileSplit(paths=files, targets=targets, form=form, on_error=on_error)
    found = RawDataset(classes, splits["train"], splits.get("test"), splits.get("val"))
    return with_paths(found, [tuple(name.split(BELOW)) for name in classes]) if is_several(label) else found


def label_columns(label: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the label columns that an option names."""
    names = (LABEL,) if label is None else (label,) if isinstance(label, str) else tuple(label)
    check_names("label", names)
    return names


def is_several(label: str | Sequence[str] | None) -> bool:
    """Return whether an option names several label columns."""
    return len(label_columns(label)) > 1


def labels_in(labels: Mapping[str, Sequence[str]], *, several: bool) -> list[str]:
    """Return the labels of the training rows, and the inner nodes among those of other rows if there are several columns."""
    trained = list(labels["train"])
    if not several:
        return trained
    above = {BELOW.join(path[:d]) for path in map(_path, trained) for d in range(1, len(path))}
    return trained + [name for part, own in labels.items() if part != "train" for name in own if name in above]


def _path(label: str) -> list[str]:
    return label.split(BELOW)


def _table(path: Path, roles: Roles, encoding: str | None) -> Table:
    """Read one file."""
    columns, rows = read_rows(path, encoding=encoding)
    _check_columns(path, columns, roles)
    place = {name: i for i, name in enumerate(columns)}
    wanted = [place[name] for name in roles.features]
    divided = SPLIT in place and SPLIT not in (*roles.labels, *roles.features)
    lines: list[str] = []
    table = Table([], [], np.empty((0, len(wanted)), dtype=np.float32), [])
    numbers: list[npt.NDArray[np.float32]] = []
    cells = Columns(roles.features, roles.categories, path)
    for line, row in rows:
        lines.append(f"line {line}")
        table.labels.append(row_labels([row[place[name]] for name in roles.labels], roles.labels, path, line))
        if divided:
            table.parts.append(row_part(row[place[SPLIT]], path, line))
        if roles.image is not None:
            table.images.append(path.parent / str(row[place[roles.image]]))
        else:
            numbers.append(cells.row([row[i] for i in wanted], line))
    if not lines:
        raise InputError(f"{path}: the table has columns but no rows.")
    if roles.image is not None:
        return table
    values = cells.checked(np.stack(numbers), lines)
    cells.warn_missing(values)
    return table._replace(features=values)


def column_roles(
    path: Path,
    label: str | Sequence[str] | None,
    image: str | None,
    features: Sequence[str] | None,
    encoding: str | None = None,
    categories: Categories | None = None,
) -> Roles:
    """Return the roles of the columns of the training table; the other tables use the same."""
    columns, rows = read_rows(path, encoding=encoding)
    labels = label_columns(label)
    if image is None and features is None:
        _, first = next(rows, (0, [""] * len(columns)))
        named = [
            name for name, value in zip(columns, first, strict=True) if Path(str(value)).suffix.lower() in SUFFIXES
        ]
        image = next((name for name in named if name not in (*labels, *ROW_NAMES)), None)
    if image is not None:
        return Roles(labels, image, (), {})
    others = (*labels, SPLIT, *ROW_NAMES)
    rest = tuple(name for name in columns if name not in others) if features is None else tuple(features)
    if not rest:
        raise InputError(f"{path}: expected at least one input column besides the label {listed(labels)}.")
    found = find_categories(path, rest, encoding) if categories is None else categories
    return Roles(labels, None, rest, found)


def missing_column(argument: str, name: str, columns: Sequence[str], path: Path) -> InputError:
    """Return the error for a table without a column: its columns, similar names, and the option that names another."""
    return InputError(
        f"{argument}: {path} has no column {name!r}, only {listed(list(columns), limit=SHOWN)}; name another with "
        f"--{argument} ({argument}= in Python).{near(name, columns, cutoff=0.75)}"
    )


def _check_columns(path: Path, columns: Sequence[str], roles: Roles) -> None:
    wanted = {"label": roles.labels, "image": (roles.image,) if roles.image else (), "features": roles.features}
    for argument, names in wanted.items():
        for name in names:
            if name not in columns:
                raise missing_column(argument, name, columns, path)


def _divided(table: Table, path: Path) -> dict[str, Table]:
    """Split a table by its split column."""
    divided = {}
    for part in sorted(set(table.parts)):
        mine = [i for i, own in enumerate(table.parts) if own == part]
        images = [table.images[i] for i in mine] if table.images else []
        values = table.features[mine] if len(table.features) else table.features
        divided[part] = Table([table.labels[i] for i in mine], images, values, [])
    if "train" not in divided:
        raise InputError(f"{path}: expected rows with 'train' in the column {SPLIT!r}, got none.")
    return divided


def row_label(value: Any, column: str, path: Path, line: int) -> str:
    """Return the label in a cell."""
    text = "" if value is None else str(value).strip()
    if not text:
        raise InputError(
            f"{path}, line {line}: expected a label in column {column!r}, got an empty cell; fill it, remove the row, or name "
            f"coarser label columns as well, as in --label family,{column}."
        )
    return text


def row_labels(values: Sequence[Any], columns: Sequence[str], path: Path, line: int) -> str:
    """Return the label in one cell, or the path in several."""
    if len(columns) == 1:
        return row_label(values[0], columns[0], path, line)
    return label_path(values, columns, f"{path}, line {line}")


def row_part(value: Any, path: Path, line: int) -> str:
    """Return the split in a cell."""
    try:
        return SPLIT_NAMES[str(value).strip().lower()]
    except KeyError:
        raise InputError(
            f"{path}, line {line}: expected 'train', 'val' or 'test' in the split column, got {value!r}."
        ) from None


def _check_images(table: Table, path: Path) -> None:
    missing = [str(file) for file in table.images if not file.is_file()]
    if missing:
        raise InputError(
            f"{path}: lists {counted(len(missing), 'image')} that {'does' if len(missing) == 1 else 'do'} not "
            f"exist: {listed(missing)}."
        )

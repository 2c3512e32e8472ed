"""FOOD101 and AwA2 as their archives unpack."""

from pathlib import Path

import torch

from labelkin._checks import InputError, listed
from labelkin.data.dataset import FileSplit
from labelkin.data.folders import listing
from labelkin.data.images import OnError, choose_form
from labelkin.data.read import Read, positions


def is_food101(folder: Path) -> bool:
    return (folder / "images").is_dir() and (folder / "meta" / "train.txt").is_file()


def read_food101(folder: Path, *, image_size: int | None = None, on_error: OnError = "stop") -> Read:
    """`images/apple_pie/1005649.jpg`, split as `meta/train.txt` and `meta/test.txt` have it."""
    entries = {part: _lines(folder / "meta" / f"{part}.txt") for part in ("train", "test")}
    classes = tuple(sorted({entry.rpartition("/")[0] for entry in entries["train"]}))
    paths = {part: tuple(folder / "images" / f"{entry}.jpg" for entry in found) for part, found in entries.items()}
    form = choose_form(paths["train"], image_size=image_size)

    def split(part: str) -> FileSplit:
        labels = [entry.rpartition("/")[0] for entry in entries[part]]
        targets = positions(labels, classes, source=str(folder))
        return FileSplit(paths=paths[part], targets=targets, form=form, on_error=on_error)

    return Read(classes, train=split("train"), test=split("test"))


def is_awa2(folder: Path) -> bool:
    return (folder / "JPEGImages").is_dir() and (folder / "classes.txt").is_file()


def read_awa2(folder: Path, *, image_size: int | None = None, on_error: OnError = "stop") -> Read:
    """`JPEGImages/grizzly+bear/grizzly+bear_10001.jpg`, classes in the order of `classes.txt`, a plus read as a space.

    The set's own split sets whole classes apart (for zero-shot learning), which is of no use here: all of it is one.
    """
    names = [line.split()[-1] for line in _lines(folder / "classes.txt")]
    folders = [folder / "JPEGImages" / name for name in names]
    files = [listing(path).images if path.is_dir() else () for path in folders]
    empty = [name for name, found in zip(names, files, strict=True) if not found]
    if empty:
        raise InputError(f"{folder}: classes.txt names {listed(empty)}, of which JPEGImages holds no image.")
    paths = tuple(path for found in files for path in found)
    targets = torch.repeat_interleave(torch.tensor([len(found) for found in files]))
    form = choose_form(paths, image_size=image_size)
    split = FileSplit(paths=paths, targets=targets, form=form, on_error=on_error)
    return Read(tuple(name.replace("+", " ") for name in names), split)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise InputError(f"{path}: missing; unpack the archive again.")
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]

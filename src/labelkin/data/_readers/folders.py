"""Image folders: one folder a class, and folders in folders are a tree of classes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from labelkin._checks import InputError, listed
from labelkin.data._dataset import FileSplit, RawDataset
from labelkin.data._readers.images import SUFFIXES, OnError, choose_form
from labelkin.structure import Taxonomy

# What people call the parts of a given split.
SPLIT_NAMES = {"train": "train", "training": "train", "test": "test", "testing": "test"}
SPLIT_NAMES |= dict.fromkeys(("val", "valid", "validation"), "val")


class Listing(NamedTuple):
    """What a folder holds, by name."""

    folders: tuple[Path, ...]
    images: tuple[Path, ...]


class ClassFolder(NamedTuple):
    """A class: the folders that lead to it, its own last, and its images."""

    path: tuple[str, ...]
    files: tuple[Path, ...]


def read_image_folder(root: Path, *, image_size: int | None = None, on_error: OnError = "stop") -> RawDataset:
    """`root/cat/1.jpg` or deeper, `root/animal/pet/cat/1.jpg`, which makes the folders the taxonomy.

    Where `root` holds train and test (or val) folders, they are the splits. Classes come in the order of their paths.
    Files that are not images are left alone.
    """
    given = _given_parts(root)
    parts = {part: _classes(folder) for part, folder in given.items()} or {"train": _classes(_unwrapped(root))}
    paths = [found.path for found in parts["train"]]
    place = {path: k for k, path in enumerate(paths)}
    form = choose_form([file for found in parts["train"] for file in found.files], image_size=image_size)
    splits = {}
    for part, found in parts.items():
        unknown = ["/".join(c.path) for c in found if c.path not in place]
        if unknown:
            raise InputError(f"{root}: {part} has class folders that train lacks: {listed(unknown)}.")
        sizes = torch.tensor([len(c.files) for c in found])
        targets = torch.repeat_interleave(torch.tensor([place[c.path] for c in found]), sizes)
        files = tuple(file for c in found for file in c.files)
        splits[part] = FileSplit(paths=files, targets=targets, form=form, on_error=on_error)
    taxonomy = Taxonomy.from_paths(paths) if len(paths) > 1 and max(map(len, paths)) > 1 else None
    classes = tuple(path[-1] for path in paths) if taxonomy is None else taxonomy.classes
    return RawDataset(classes, splits["train"], splits.get("test"), splits.get("val"), taxonomy)


def listing(folder: Path) -> Listing:
    """One look at a folder; hidden things and what archives of a Mac leave behind are passed over."""
    with os.scandir(folder) as entries:
        visible = sorted((e for e in entries if not e.name.startswith((".", "__MACOSX"))), key=lambda e: e.name)
    folders = tuple(Path(entry.path) for entry in visible if entry.is_dir())
    files = (entry for entry in visible if not entry.is_dir() and os.path.splitext(entry.name)[1].lower() in SUFFIXES)
    return Listing(folders, tuple(Path(entry.path) for entry in files))


def _given_parts(root: Path) -> dict[str, Path]:
    """The folders of a given split by part, or nothing where `root` is not laid out so."""
    found = {folder.name.lower(): folder for folder in listing(root).folders}
    if (
        "train" not in {SPLIT_NAMES.get(name) for name in found}
        or not found.keys() <= SPLIT_NAMES.keys()
        or len(found) < 2
    ):
        return {}
    given = {SPLIT_NAMES[name]: folder for name, folder in found.items()}
    if len(given) < len(found):
        raise InputError(f"{root}: two folders for one part among {listed(sorted(found))}; merge or rename one.")
    return given


def _unwrapped(root: Path) -> Path:
    """Below the wrapping folders that archives leave: where the classes, or the branches above them, lie."""
    inside = listing(root)
    while len(inside.folders) == 1 and not inside.images and listing(inside.folders[0]).folders:
        root, inside = inside.folders[0], listing(inside.folders[0])
    return root


def _classes(root: Path) -> list[ClassFolder]:
    inside = listing(root)
    if not inside.folders:
        holds = "images but no class folders" if inside.images else "no class folders"
        raise InputError(f"{root}: holds {holds}; expected one folder of images for each class.")
    return list(_walk(root, ()))


def _walk(folder: Path, above: tuple[str, ...]) -> Iterator[ClassFolder]:
    inside = listing(folder)
    if inside.images and inside.folders:
        raise InputError(
            f"{folder}: holds images beside the folder {inside.folders[0].name!r}; a class is a folder without folders "
            "in it: move its images into one of their own."
        )
    if not inside.images and not inside.folders:
        raise InputError(f"{folder}: the class folder holds no image; add images or remove it.")
    if inside.images:
        yield ClassFolder(above, inside.images)
    for below in inside.folders:
        yield from _walk(below, (*above, below.name))

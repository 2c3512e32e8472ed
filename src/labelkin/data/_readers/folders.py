"""Read folders of images: one folder per class; nested folders form a taxonomy."""

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from labelkin._checks import InputError, counted, listed
from labelkin.data._dataset import FileSplit, RawDataset
from labelkin.data._partial import with_paths
from labelkin.data._readers.images import SUFFIXES, OnError, choose_form

LEFT_BY_SYSTEMS = frozenset(["thumbs.db", "desktop.ini"])  # which Windows puts into folders of images
# Folder and file names -> split.
SPLIT_NAMES = {"train": "train", "training": "train", "test": "test", "testing": "test"}
SPLIT_NAMES |= dict.fromkeys(("val", "valid", "validation"), "val")


class Listing(NamedTuple):
    """The folders and images in a folder, sorted by name, and its other files."""

    folders: tuple[Path, ...]
    images: tuple[Path, ...]
    others: tuple[str, ...]  # names


class ClassFolder(NamedTuple):
    """A class: the names of its parent folders and its own, its images, and the names of other files in its folder."""

    path: tuple[str, ...]
    files: tuple[Path, ...]
    others: tuple[str, ...]


def read_image_folder(root: Path, *, image_size: int | None = None, on_error: OnError = "stop") -> RawDataset:
    """Read `root/cat/1.jpg`, or deeper, `root/animal/pet/cat/1.jpg`, where the folders define the taxonomy.

    Images beside folders, such as `root/animal/2.jpg`, have an inner node of the taxonomy as label.

    Folders named train and test (or val) in `root` are splits. Classes are sorted by path. Other files than images are skipped,
    with a warning that counts them by kind.
    """
    given = _given_parts(root)
    parts = {part: _classes(folder) for part, folder in given.items()} or {"train": _classes(_unwrapped(root))}
    known = {found.path for found in parts["train"]}
    above = {path[:depth] for path in known for depth in range(1, len(path))}
    other = [c.path for part, found in parts.items() for c in found if part != "train" and c.path in above - known]
    paths = [*(found.path for found in parts["train"]), *dict.fromkeys(other)]
    place = {path: k for k, path in enumerate(paths)}
    form = choose_form([file for found in parts["train"] for file in found.files], image_size=image_size)
    splits = {}
    for part, found in parts.items():
        unknown = ["/".join(c.path) for c in found if c.path not in place]
        if unknown:
            raise InputError(f"{root}: {part} has class folders that train does not have: {listed(unknown)}.")
        sizes = torch.tensor([len(c.files) for c in found])
        targets = torch.repeat_interleave(torch.tensor([place[c.path] for c in found]), sizes)
        files = tuple(file for c in found for file in c.files)
        splits[part] = FileSplit(paths=files, targets=targets, form=form, on_error=on_error)
    warn_other_files(root, [name for found in parts.values() for c in found for name in c.others])
    names = tuple("/".join(path) for path in paths)
    return with_paths(RawDataset(names, splits["train"], splits.get("test"), splits.get("val")), paths)


def listing(folder: Path) -> Listing:
    """List a folder; hidden files and the `__MACOSX` folders of macOS archives are ignored."""
    with os.scandir(folder) as entries:
        visible = sorted((e for e in entries if not e.name.startswith((".", "__MACOSX"))), key=lambda e: e.name)
    folders = tuple(Path(entry.path) for entry in visible if entry.is_dir())
    files = [entry for entry in visible if not entry.is_dir() and entry.name.lower() not in LEFT_BY_SYSTEMS]
    known = [os.path.splitext(entry.name)[1].lower() in SUFFIXES for entry in files]
    images = tuple(Path(entry.path) for entry, is_image in zip(files, known, strict=True) if is_image)
    return Listing(
        folders, images, tuple(entry.name for entry, is_image in zip(files, known, strict=True) if not is_image)
    )


def kinds_of(names: Sequence[str]) -> str:
    """Return how many files there are of each kind, such as `"2 .psd, 1 without suffix"`."""
    counts = Counter(os.path.splitext(name)[1].lower() or "without suffix" for name in names)
    return ", ".join(
        f"{count:,} {kind}" for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )


def warn_other_files(root: Path, names: Sequence[str]) -> None:
    """Warn about files that are skipped because they are not images that labelkin reads."""
    if names:
        warnings.warn(
            f"{root}: {counted(len(names), 'file')} in the folders of the classes "
            f"{'is' if len(names) == 1 else 'are'} skipped, because labelkin does not read such "
            f"images: {kinds_of(names)}.",
            stacklevel=2,
        )


def _given_parts(root: Path) -> dict[str, Path]:
    """Return the folder of each split, or an empty dict if `root` is not divided into splits."""
    found = {folder.name.lower(): folder for folder in listing(root).folders}
    if (
        "train" not in {SPLIT_NAMES.get(name) for name in found}
        or not found.keys() <= SPLIT_NAMES.keys()
        or len(found) < 2
    ):
        return {}
    given = {SPLIT_NAMES[name]: folder for name, folder in found.items()}
    if len(given) < len(found):
        raise InputError(f"{root}: two of the folders {listed(sorted(found))} are the same split; merge or rename one.")
    return given


def _unwrapped(root: Path) -> Path:
    """Descend through folders that contain a single folder, as archives often have, to those of the classes."""
    inside = listing(root)
    while len(inside.folders) == 1 and not inside.images and listing(inside.folders[0]).folders:
        root, inside = inside.folders[0], listing(inside.folders[0])
    return root


def _classes(root: Path) -> list[ClassFolder]:
    """Return the classes below a folder."""
    inside = listing(root)
    if not inside.folders:
        content = "images but no class folders" if inside.images else "no class folders"
        raise InputError(f"{root}: expected one folder of images per class, got {content}.")
    return list(_walk(root, ()))


def _walk(folder: Path, above: tuple[str, ...]) -> Iterator[ClassFolder]:
    """Yield the class folders below a folder, depth first."""
    inside = listing(folder)
    if inside.images and inside.folders and not above:
        raise InputError(
            f"{folder}: contains both images and the folder {inside.folders[0].name!r}, so that the images have no label; "
            "move them into the folder of a class or of a node above it."
        )
    if not inside.images and not inside.folders:
        found = f", but {kinds_of(inside.others)}, which labelkin does not read" if inside.others else ""
        raise InputError(f"{folder}: the class folder contains no images{found}; add some or remove it.")
    if inside.images:
        yield ClassFolder(above, inside.images, inside.others)
    for below in inside.folders:
        yield from _walk(below, (*above, below.name))

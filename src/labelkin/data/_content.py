"""Hashes of the content of samples and image files; they also identify samples that a model was trained on.

Files that did not change are not read again.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b, file_digest, sha256
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from labelkin._files import write_text
from labelkin.data._dataset import ArraySplit, FileSplit, Split
from labelkin.data._locate import derived_folder

Known = dict[str, list[Any]]  # path -> size, modification time, hash
DIGEST = 16  # bytes of the hash of a sample
_splits: "WeakKeyDictionary[Split, list[bytes]]" = WeakKeyDictionary()  # splits are frozen


def content_digests(split: Split) -> list[bytes]:
    """Return a hash of each sample of a split, without its target: of the values, or of the content of the image file.

    Args:
        split: The split.

    Returns:
        One hash of `DIGEST` bytes per sample; samples of the same content have the same hash.
    """
    if split not in _splits:
        if isinstance(split, ArraySplit):
            values = split.inputs.contiguous().numpy(force=True)
            form = f"{split.inputs.dtype} {split.shape}\n".encode()
            _splits[split] = [blake2b(form + sample.tobytes(), digest_size=DIGEST).digest() for sample in values]
        else:
            contents = zip(split.paths, file_digests(split.paths), strict=True)
            texts = [f"{tuple(split.form)} {content or path}".encode() for path, content in contents]
            _splits[split] = [blake2b(text, digest_size=DIGEST).digest() for text in texts]
    return _splits[split]


def file_digests(paths: Sequence[Path]) -> list[str]:
    """Return the SHA-256 of the content of each file.

    Hashes are cached with the size and the modification time of the file, so only new and changed files
    are read. A file that does not exist or cannot be read has the hash "".

    Args:
        paths: The files.
    """
    absolute = [os.path.abspath(path) for path in paths]
    by_folder: dict[str, list[str]] = {}
    for path in absolute:
        by_folder.setdefault(os.path.dirname(path), []).append(path)
    found: dict[str, str] = {}
    for folder, files in by_folder.items():
        found |= _digests_in(folder, files)
    return [found[path] for path in absolute]


def _digests_in(folder: str, files: Iterable[str]) -> dict[str, str]:
    """Return the hashes of files of one folder, and cache them."""
    kept = derived_folder("hashes") / f"{sha256(os.fsencode(folder)).hexdigest()[:32]}.json"
    known = _read(kept)
    current: Known = {}
    changed = []
    for path in files:
        try:
            stat = os.stat(path)
        except OSError:
            current[path] = [0, 0, ""]
            continue
        entry = known.get(os.path.basename(path), [])
        current[path] = [stat.st_size, stat.st_mtime_ns, ""]
        if len(entry) == 3 and entry[:2] == current[path][:2] and isinstance(entry[2], str):
            current[path][2] = entry[2]
        else:
            changed.append(path)
    if changed:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, digest in zip(changed, pool.map(_digest, changed), strict=True):
                current[path][2] = digest
        _keep(kept, {**known, **{os.path.basename(path): entry for path, entry in current.items() if entry[2]}})
    return {path: entry[2] for path, entry in current.items()}


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _read(path: Path) -> Known:
    """Read the hashes of a folder; a damaged file counts as empty, since the hashes can be computed again."""
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return {name: entry for name, entry in known.items() if isinstance(entry, list)} if isinstance(known, dict) else {}


def _keep(path: Path, known: Known) -> None:
    """Cache the hashes of a folder; if the cache cannot be written, they are computed again the next time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(known))
    except OSError:
        return


def sample_digests(*splits: Split) -> dict[str, Any]:
    """Return the digests of the samples of some splits, as `seen_before` takes them.

    Samples in memory are identified by their content, image files that are streamed by their name and size, because reading
    all of them would take as long as an epoch.

    Returns:
        "by", which is "content" or "file", and the sorted "digests".
    """
    by = "content" if all(isinstance(split, ArraySplit) for split in splits) else "file"
    found = [_files(split) if isinstance(split, FileSplit) else _contents(split.inputs) for split in splits]
    return {"by": by, "digests": torch.unique(torch.cat(found))}


def seen_before(split: Split, positions: Tensor, inputs: Tensor, known: Mapping[str, Any]) -> Tensor:
    """Return for each sample of a batch whether it is among those that `sample_digests` was given.

    Args:
        split: The split that the batch is from.
        positions: (n,) positions of the samples in the split.
        inputs: (n, ...) the samples.
        known: The result of `sample_digests`.
    """
    if known["by"] == "content":
        return torch.isin(_contents(inputs), known["digests"])
    if isinstance(split, ArraySplit):
        return torch.zeros(len(positions), dtype=torch.bool)  # image files are identified by name and size only
    return torch.isin(_files(split.take(positions)), known["digests"])


def _contents(inputs: Tensor) -> Tensor:
    rows = inputs.detach().cpu()
    rows = (rows if rows.dtype == torch.uint8 else rows.float()).contiguous().flatten(1)
    return _digests(memoryview(row).cast("B") for row in rows.numpy())


def _files(split: FileSplit) -> Tensor:
    return _digests(f"{path.name} {path.stat().st_size if path.exists() else -1}".encode() for path in split.paths)


def _digests(contents: Iterable[bytes | memoryview]) -> Tensor:
    found = [int.from_bytes(blake2b(one, digest_size=8).digest(), "big", signed=True) for one in contents]
    return torch.tensor(found, dtype=torch.int64)

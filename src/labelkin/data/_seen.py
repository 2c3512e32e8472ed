"""Recognize samples that a model was trained on."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from labelkin.data._dataset import ArraySplit, FileSplit, Split


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
        return torch.zeros(len(positions), dtype=torch.bool)  # image files are known by their names only
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

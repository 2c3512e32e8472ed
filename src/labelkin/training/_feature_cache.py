"""Features of frozen backbones in labelkin's cache, found again by the content of each sample."""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.data import DIGEST, derived_folder
from labelkin.training._packing import load_packed, save_packed

MOST_BYTES = 8 * 2**30  # of all features in the cache; beyond it, those not used for the longest time are deleted


class Features(NamedTuple):
    """Features of samples, which are named by hashes of their content.

    Attributes:
        place: The position of each sample's features in `parts`, counted over all parts.
        parts: (n, F) features.
    """

    place: dict[bytes, int]
    parts: tuple[Tensor, ...] = ()

    def joined(self, names: Sequence[bytes], features: Tensor) -> "Features":
        """Return these features and those of more samples."""
        start = sum(map(len, self.parts))
        more = {name: start + row for row, name in enumerate(names)}
        return Features({**self.place, **more}, (*self.parts, features))


class FeatureCache:
    """The features of one backbone.

    Args:
        backbone: What the features depend on besides the sample, in words.
    """

    def __init__(self, backbone: str) -> None:
        self.root = derived_folder("features")
        self.folder = self.root / sha256(backbone.encode()).hexdigest()[:32]

    def read(self, wanted: set[bytes]) -> Features:
        """Return the features of those samples that are in the cache."""
        place: dict[bytes, int] = {}
        parts: list[Tensor] = []
        count = 0
        for path in sorted(self.folder.glob("*.safetensors")):
            names, features = _read(path)
            rows = [row for row, name in enumerate(names) if name in wanted and name not in place]
            if rows:
                place |= {names[row]: count + i for i, row in enumerate(rows)}
                parts.append(features[rows])
                count += len(rows)
        return Features(place, tuple(parts))

    def add(self, names: Sequence[bytes], features: Tensor) -> None:
        """Keep the features of samples; without a place to write, they are computed again the next time."""
        content = b"".join(names)
        path = self.folder / f"{sha256(content).hexdigest()[:32]}.safetensors"
        samples = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, DIGEST)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            save_packed(path, {"samples": samples, "features": features})
            self._forget(but=path)
        except OSError:
            return

    def _forget(self, *, but: Path) -> None:
        """Delete the files that were not used for the longest time, of all backbones, but not the last one."""
        files = sorted(self.root.rglob("*.safetensors"), key=lambda file: file.stat().st_mtime_ns)
        spare = sum(file.stat().st_size for file in files) - MOST_BYTES
        for file in files:
            if spare > 0 and file != but:
                spare -= file.stat().st_size
                file.unlink(missing_ok=True)


def _read(path: Path) -> tuple[list[bytes], Tensor]:
    """Return the samples and the features of a file; none if it is damaged."""
    try:
        found: dict[str, Tensor] = load_packed(path)
        content, features = found["samples"].numpy().tobytes(), found["features"]
        os.utime(path)  # the order in which files are deleted
    except (InputError, KeyError, OSError, TypeError, AttributeError):
        return [], torch.zeros(0, 0)
    names = [content[start : start + DIGEST] for start in range(0, len(content), DIGEST)]
    return (names, features) if len(names) == len(features) else ([], torch.zeros(0, 0))

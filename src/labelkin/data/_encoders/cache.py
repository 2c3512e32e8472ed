"""Cache of text vectors on disk, so that no text is encoded twice by the same encoder, in any dataset or split.

Each encoder and revision has a folder, with files of at most `PART` texts each. A file is complete or absent, so an
interrupted encoding continues where it stopped. The cache stores a digest of each text, not the text itself.
"""

import io
import os
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError, counted
from labelkin._files import write_bytes
from labelkin._numpy_files import load_numpy
from labelkin.data._locate import cache_folder

VARIABLE = "LABELKIN_CACHE"
PART = 2048
Floats = npt.NDArray[np.float32]


def cache_root() -> Path:
    """Return the folder in LABELKIN_CACHE, or labelkin's folder in the user's cache."""
    given = os.environ.get(VARIABLE)
    return Path(given).expanduser() if given else cache_folder().parent


def features_folder(encoder: str) -> Path:
    """Return the cache folder of an encoder."""
    return cache_root() / "features" / encoder


def cached(texts: Sequence[str], encode: Callable[[Sequence[str]], Floats], *, encoder: str) -> Floats:
    """Return `encode(texts)`, (n, D); only texts that are not in the cache are encoded, and then added to it."""
    folder = features_folder(encoder)
    digests = [_digest(text) for text in texts]
    known = _known(folder, set(digests))
    missing = list({d: text for d, text in zip(digests, texts, strict=True) if d not in known}.items())
    for start in range(0, len(missing), PART):
        part = missing[start : start + PART]
        rows = encode([text for _, text in part])
        _write(folder, [digest for digest, _ in part], rows)
        known.update(zip((digest for digest, _ in part), rows, strict=True))
        _tell(encoder, start + len(part), len(missing))
    return np.stack([known[digest] for digest in digests])


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _known(folder: Path, wanted: set[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
    """Return the cached vectors of the wanted digests."""
    found: dict[bytes, npt.NDArray[np.float32]] = {}
    for file in sorted(folder.glob("*.npz")):
        try:
            part = load_numpy(file)
            digests = [row.tobytes() for row in part["digests"]]
            if not wanted.isdisjoint(digests):
                found.update((d, row) for d, row in zip(digests, part["features"], strict=True) if d in wanted)
        except (InputError, ValueError, KeyError, IndexError, TypeError) as error:
            raise InputError(f"{file}: not a readable file of the feature cache ({error}); remove it.") from error
    return found


def _write(folder: Path, digests: Sequence[bytes], features: Floats) -> None:
    """Write one file of the cache."""
    folder.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    keys = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), -1)
    np.savez(content, digests=keys, features=features)
    write_bytes(folder / f"{sha256(b''.join(digests)).hexdigest()[:16]}.npz", content.getvalue())


def _tell(encoder: str, done: int, count: int) -> None:
    """Print the progress of a long encoding to a terminal."""
    if count > PART and sys.stderr.isatty():
        print(f"\r{encoder}: {done:,} of {counted(count, 'text')}", end="\n" if done == count else "", file=sys.stderr)

"""Files that are named to be predicted: each by itself, or all of a kind below a folder."""

from collections.abc import Collection, Sequence
from pathlib import Path

from labelkin._checks import InputError, listed, near


def files_at(path: Path, *, single: Collection[str], kind: str, others: Sequence[str]) -> list[Path]:
    """The file itself, or all below the folder whose suffix is one of `single`, which are of a `kind`."""
    if path.is_dir():
        inside = (p for p in sorted(path.rglob("*")) if p.suffix.lower() in single and p.is_file())
        found = [p for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts)]
        if not found:
            raise InputError(f"{path}: the folder holds no {kind}.")
        return found
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"there is no file or folder {str(path)!r}.{near(path.name, siblings)}")
    if path.suffix.lower() not in (*single, *others):
        article = "an" if kind == "image" else "a"
        raise InputError(f"{path}: expected {article} {kind}, a folder of {kind}s, or a file {listed(list(others))}.")
    return [path]

"""What a test needs beyond the package: absent, the test is skipped, or fails where LABELKIN_REQUIRE asks for it."""

import lzma
import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def skip_unless(present: bool, what: str, requirement: str) -> None:
    """Skip where `what` is absent; fail where `LABELKIN_REQUIRE`, a comma-separated list, names the requirement."""
    if present:
        return
    if requirement in os.environ.get("LABELKIN_REQUIRE", "").split(","):
        pytest.fail(f"{what} is not here, and LABELKIN_REQUIRE asks for {requirement!r}")
    pytest.skip(f"{what} is not here")


def data_text(name: str) -> str:
    """The text of a research file, plain or .xz, under `LABELKIN_DATA` or a folder shared with the checkout."""
    for folder in (Path(os.environ.get("LABELKIN_DATA", "data")), SHARED):
        if (folder / name).exists():
            return (folder / name).read_text(encoding="utf-8")
        if (folder / f"{name}.xz").exists():
            return lzma.decompress((folder / f"{name}.xz").read_bytes()).decode("utf-8")
    pytest.skip(f"{name} is not here: nobody may pass it on, so no machine is required to have it")


def mnist_folder(into: Path) -> Path:
    """A data folder with MNIST's files: the one at hand, or the shared ones unpacked."""
    own = Path(os.environ.get("LABELKIN_DATA", "data"))
    if (own / "MNIST").is_dir():
        return own
    packed = sorted((SHARED / "mnist").glob("*-ubyte.xz"))
    if not packed:
        pytest.skip("MNIST is not here")
    raw = into / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for file in packed:
        (raw / file.stem).write_bytes(lzma.decompress(file.read_bytes()))
    return into

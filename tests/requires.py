"""What a test needs beyond the package: absent, the test is skipped, or fails where LABELKIN_REQUIRE asks for it."""

import os
from pathlib import Path

import pytest


def skip_unless(present: bool, what: str, requirement: str) -> None:
    """Skip where `what` is absent; fail where `LABELKIN_REQUIRE`, a comma-separated list, names the requirement."""
    if present:
        return
    if requirement in os.environ.get("LABELKIN_REQUIRE", "").split(","):
        pytest.fail(f"{what} is not here, and LABELKIN_REQUIRE asks for {requirement!r}")
    pytest.skip(f"{what} is not here")


def data_file(name: str) -> Path:
    """A file under the folder that `LABELKIN_DATA` names."""
    path = Path(os.environ.get("LABELKIN_DATA", "data"), name)
    skip_unless(path.exists(), f"{name} under LABELKIN_DATA", "data")
    return path

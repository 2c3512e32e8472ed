"""Large libraries that few tests need: imported when a test uses them instead of at collection, which every process repeats."""

import importlib
import importlib.util
from typing import Any

import pytest


class Later:
    """A module that is imported when one of its names is first used."""

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)


def later_or_skip(module: str) -> Later:
    """Return the module of an optional package; without the package, skip the test file that calls this."""
    package = module.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)
    return Later(module)

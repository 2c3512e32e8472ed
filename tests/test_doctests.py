"""Every public name has a docstring with its arguments and an example, and the examples run."""

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest
import torch

import labelkin

ROOMS = [
    "structure",
    "relations",
    "functional",
    "objectives",
    "models",
    "analysis",
    "bench",
    "metrics",
    "decide",
    "data",
    "translate",
    "runs",
    "comparison",
    "papers",
    "audit",
    "report",
    "training",
    "doors",
]


def modules(room: str) -> list[str]:
    package = importlib.import_module(f"labelkin.{room}")
    if not hasattr(package, "__path__"):
        return [package.__name__]
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [package.__name__, *(module.name for module in found if not module.name.endswith("__main__"))]


@pytest.mark.parametrize("module", [module for room in ROOMS for module in modules(room)])
def test_examples_run(module: str):
    if ".triton_" in module:
        pytest.importorskip("triton", reason="Triton is not installed")
    torch.manual_seed(0)
    with pytest.MonkeyPatch.context():
        assert doctest.testmod(importlib.import_module(module)).failed == 0


def public(room: str) -> list[tuple[str, str]]:
    package: ModuleType = importlib.import_module(f"labelkin.{room}")
    names = [name for name in package.__all__ if inspect.isfunction(getattr(package, name))]
    return [(room, name) for name in names]


@pytest.mark.parametrize(("room", "name"), [pair for room in ROOMS for pair in public(room)])
def test_a_public_function_explains_itself(room: str, name: str):
    function = getattr(importlib.import_module(f"labelkin.{room}"), name)
    text = inspect.getdoc(function) or ""
    assert text.splitlines()[0].endswith((".", ")"))
    assert labelkin.__name__ in (function.__module__ or "")

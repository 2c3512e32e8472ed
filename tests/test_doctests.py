"""Public names of the rooms in ROOMS have full docstrings, and the examples of all their modules run."""

import doctest
import importlib
import inspect
import pkgutil
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import labelkin
from support.wordnet import write_database

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
    "serve",
]
SUBPACKAGES = {
    "doors.lightning": "lightning.pytorch",
    "doors.transformers": "transformers",
}  # public, and what they need
NEEDS = {  # modules whose examples or imports need an optional package that the other modules of their room do without
    "labelkin.doors.lightning._module": "lightning.pytorch",
    "labelkin.doors.transformers._trainer": "accelerate",
    "labelkin.serve._app": "fastapi",
    "labelkin.serve._guard": "fastapi",
    "labelkin.serve._server": "fastapi",
}
ESTIMATOR_METHODS = ["fit", "predict", "decision_function", "predict_proba", "predict_log_proba"]


def modules(room: str) -> list[str]:
    package = importlib.import_module(f"labelkin.{room}")
    if not hasattr(package, "__path__"):
        return [package.__name__]
    inner = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [package.__name__, *(module.name for module in inner if not module.name.endswith("__main__"))]


def imported(module: str) -> ModuleType:
    if ".triton_" in module:
        pytest.importorskip("triton", reason="Triton is not installed")
    if module in NEEDS:
        pytest.importorskip(NEEDS[module], reason=f"{NEEDS[module]} is not installed")
    return importlib.import_module(module)


ALL_MODULES = [name for room in ROOMS for name in modules(room)]


def public() -> dict[str, Any]:
    """Return the functions and classes in `__all__` of all rooms, and the methods of the estimator."""
    names: dict[str, Any] = {}
    present = [name for name, needed in SUBPACKAGES.items() if find_spec(needed.partition(".")[0])]
    for room in [*ROOMS, *present]:
        package = importlib.import_module(f"labelkin.{room}")
        names.update({f"{room}.{name}": getattr(package, name) for name in package.__all__})
    names["KinClassifier"] = labelkin.KinClassifier
    for name in ESTIMATOR_METHODS:
        method = labelkin.KinClassifier.__dict__[name]
        names[f"KinClassifier.{name}"] = getattr(method, "fn", method)  # `fn` if it depends on the objective
    return names


FUNCTIONS = {name: value for name, value in public().items() if inspect.isfunction(value)}
CLASSES = {name: value for name, value in public().items() if inspect.isclass(value)}


def needs_no_example(kind: type) -> bool:
    is_named_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return is_named_tuple or issubclass(kind, BaseException)  # a warning is an exception


@pytest.fixture
def small_wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(write_database(tmp_path / "wordnet")))


@pytest.mark.long
@pytest.mark.usefixtures("small_wordnet")
@pytest.mark.parametrize("module", ALL_MODULES)
def test_examples_run(module: str):
    torch.manual_seed(0)
    assert doctest.testmod(imported(module)).failed == 0


@pytest.mark.parametrize("module", ALL_MODULES)
def test_a_module_docstring_says_what_the_module_does(module: str):
    text = (imported(module).__doc__ or "").strip()
    assert text
    assert not text.startswith(("What ", "Where ", "How ", "Which ", "Whether "))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_has_a_full_docstring(name: str):
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    signature = inspect.signature(FUNCTIONS[name])
    arguments = [argument for argument in signature.parameters if argument != "self"]
    missing = [a for a in arguments if not any(f"\n    {stars}{a}: " in text for stars in ("", "*", "**"))]
    assert text.partition("\n")[0].endswith("."), "the first line must be a sentence"
    assert not missing, "these parameters are not in Args"
    assert not arguments or "Args:" in text
    assert "Returns:" in text or signature.return_annotation in (None, "None")
    assert ">>>" in text


@pytest.mark.parametrize("name", CLASSES)
def test_a_public_class_has_a_docstring_with_an_example(name: str):
    text = inspect.getdoc(CLASSES[name]) or ""
    assert text.partition("\n")[0].endswith("."), "the first line must be a sentence"
    assert ">>>" in text or needs_no_example(CLASSES[name])

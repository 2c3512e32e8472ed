"""Docstrings of models, analysis, bench, audit, report, training and the estimator: complete, and their examples run."""

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import pytest

import labelkin.analysis
import labelkin.audit
import labelkin.bench
import labelkin.doors
import labelkin.models
import labelkin.report
import labelkin.report.figures
import labelkin.training

PACKAGES = [
    labelkin.models,
    labelkin.analysis,
    labelkin.bench,
    labelkin.audit,
    labelkin.report,
    labelkin.report.figures,
    labelkin.training,
]
ESTIMATOR = labelkin.KinClassifier
METHODS = ["fit", "predict", "decision_function", "predict_proba", "predict_log_proba"]
PUBLIC: list[tuple[str, Any]] = [
    (f"{package.__name__}.{name}", getattr(package, name))
    for package in PACKAGES
    for name in package.__all__
    if inspect.isclass(getattr(package, name)) or inspect.isfunction(getattr(package, name))
] + [("KinClassifier", ESTIMATOR), *((f"KinClassifier.{name}", ESTIMATOR.__dict__[name]) for name in METHODS)]


def modules() -> list[ModuleType]:
    names = [f"{p.__name__}.{found.name}" for p in PACKAGES for found in pkgutil.iter_modules(p.__path__)]
    return [
        *PACKAGES,
        *(importlib.import_module(name) for name in names),
        importlib.import_module("labelkin.doors._sklearn"),
    ]


@pytest.mark.parametrize(("name", "found"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_a_public_name_has_a_full_docstring(name: str, found: Any):
    function = getattr(found, "fn", found)  # a method that is there for some objectives alone
    text = inspect.getdoc(function) or ""
    assert text.partition("\n")[0].endswith("."), "the first line is one sentence"
    assert "Example:" in text
    assert ">>>" in text
    if inspect.isfunction(function):
        arguments = [name for name in inspect.signature(function).parameters if name != "self"]
        assert [name for name in arguments if f"\n    {name}: " not in text and f"\n    **{name}: " not in text] == []
        assert "Returns:" in text


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_examples_run(module: ModuleType):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_summaries_are_sentences(module: ModuleType):
    text = (module.__doc__ or "").strip()
    assert text
    assert not text.startswith(("What ", "Where ", "How ", "Which "))

"""The examples in the docstrings of the objectives' interface run and print what they say."""

import doctest
from importlib import import_module

import pytest

MODULES = ["base", "batch", "context", "flat", "from_data", "named"]


@pytest.mark.parametrize("module", [*(f"objectives.{name}" for name in MODULES), "training.model"])
def test_examples(module: str):
    found = doctest.testmod(import_module(f"labelkin.{module}"))
    assert found.attempted > 0
    assert found.failed == 0

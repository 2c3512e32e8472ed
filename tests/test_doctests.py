"""Examples in docstrings run, and every public equation and objective has one."""

import doctest
import importlib
import inspect

import pytest
import torch

from labelkin import OBJECTIVES, functional
from labelkin.functional import tree

WRITTEN_ELSEWHERE = {"one-hot", "label-smoothing", "confidence-penalty"}
MODULES = sorted(
    {inspect.getmodule(getattr(functional, name)).__name__ for name in functional.__all__} - {tree.__name__}
    | {kind.__module__ for name, kind in OBJECTIVES.items() if name not in WRITTEN_ELSEWHERE}
)
PUBLIC = {name: getattr(functional, name) for name in functional.__all__}
PUBLIC = {name: thing for name, thing in PUBLIC.items() if thing.__module__ != tree.__name__}
PUBLIC |= {name: kind for name, kind in OBJECTIVES.items() if name not in WRITTEN_ELSEWHERE}


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module: str):
    torch.manual_seed(0)
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_a_docstring_is_whole(name: str):
    thing = PUBLIC[name]
    text = inspect.getdoc(thing) or ""
    assert ">>>" in text
    assert "Example:" in text
    if inspect.isfunction(thing):
        assert "Returns:" in text
        assert not inspect.signature(thing).parameters or "Args:" in text
    elif name in OBJECTIVES:
        options = [option for option in thing.option_names() if option != "weights"]
        assert [option for option in options if f"{option}" not in text] == []

"""The checks of arguments: what their messages show of a value, whatever it is."""

from math import inf, nan

import numpy as np
import pytest
import torch

from labelkin import InputError
from labelkin._checks import (
    brief,
    check_choice,
    check_count,
    check_names,
    check_number,
    is_finite,
    listed,
    refuse_damaged,
)

LONG = {"x": torch.zeros(40, 2)}


@pytest.mark.parametrize(
    "check",
    [
        lambda: check_names("names", ["a", LONG]),
        lambda: check_names("names", LONG),
        lambda: check_number("lr", LONG),
        lambda: check_number("lr", 10**400),
        lambda: check_count("epochs", np.zeros((40, 2))),
        lambda: check_choice("kind", "x" * 10_000, ["logits"]),
    ],
)
def test_a_message_shows_any_value_in_one_short_line(check):
    with pytest.raises(InputError) as told:
        check()
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 200


def test_a_message_keeps_the_spaces_of_a_name():
    assert brief("a  b") == "'a  b'"
    assert brief("a\nb") == r"'a\nb'"
    assert listed([torch.eye(2), "a  b"]) == "tensor([[1., 0.], [0., 1.]]), 'a  b'"


def test_a_damaged_file_is_told_in_one_line():
    with pytest.raises(InputError, match=r"^run: names: two lines$"), refuse_damaged("run"):
        raise InputError("names: two\nlines")


@pytest.mark.parametrize("value", [inf, nan, 10**400, True, None, "1", 1j])
def test_no_finite_number(value: object):
    assert not is_finite(value)


@pytest.mark.parametrize("value", [0, -1.5, 2**70, np.float32(1), np.int8(3)])
def test_a_finite_number(value: object):
    assert is_finite(value)

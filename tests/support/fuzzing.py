"""Fuzzing: valid input that is changed in its structure, in its bytes, or not at all; only an `InputError` may come of it.

`FUZZ_CASES` sets the number of cases of each target; `make fuzz` takes 10,000.
"""

import copy
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from labelkin import InputError

CASES = int(os.environ.get("FUZZ_CASES", "25"))
LEAST_ACCEPTED = 0.15  # of the cases; with fewer, the checks behind the first are not reached
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**70,
    float("nan"),
    "",
    "x",
    "\x1b[2J",
    "../../x",
    "é猫",
    [],
    {},
    [[]],
    [1],
    {"a": 1},
]


def fuzz(case: Callable[[Random], None]) -> Counter[str]:
    """Run a case with random generators; it returns if the input was accepted, and raises `InputError` if refused.

    Any other exception fails the test with the seed that leads to it.
    """
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**48))
    def run(seed: int) -> None:
        try:
            case(Random(seed))
        except InputError as error:
            outcomes["refused"] += 1
            said = str(error)
        else:
            outcomes["accepted"] += 1
            return
        assert said.strip(), "an error without a message"
        assert "\n" not in said

    run()
    share = outcomes["accepted"] / outcomes.total()
    least = LEAST_ACCEPTED if outcomes.total() >= 100 else 1 / outcomes.total()  # few cases vary
    assert share >= least, f"only {share:.0%} of {outcomes.total()} cases were accepted"
    assert outcomes["refused"], "no case was refused"
    return outcomes


def changed(value: Any, rng: Random) -> Any:
    """A copy of nested lists and dicts with up to three parts replaced, removed, repeated or moved."""
    result = copy.deepcopy(value)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        result = _change(result, rng)
    return result


def _change(value: Any, rng: Random) -> Any:
    places = list(_places(value))
    if not places or rng.random() < 0.05:
        return copy.deepcopy(rng.choice(ODD))
    holder, key = rng.choice(places)
    other, another = rng.choice(places)
    match rng.randrange(5):
        case 0:
            holder[key] = copy.deepcopy(rng.choice(ODD))
        case 1:
            del holder[key]
        case 2:
            holder[key] = copy.deepcopy(other[another])
        case 3 if isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
        case 3:
            holder[rng.choice(("", "x", "root", "\x9b", str(key) + " "))] = holder.pop(key)
        case 4:
            holder[key] = [holder[key]]
    return value


def _places(value: Any) -> Any:
    """Every list or dict in a value, with each of its positions or keys."""
    parts = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, part in list(parts):
        yield value, key
        yield from _places(part)


def damaged(content: bytes, rng: Random) -> bytes:
    """Bytes with up to three of them changed, removed or inserted, or a cut end; in half of the cases as they were."""
    result = bytearray(content)
    for _ in range(rng.choice((0, 0, 0, 1, 2, 3))):
        at = rng.randrange(len(result) + 1)
        match rng.randrange(4):
            case 0 if at < len(result):
                result[at] ^= 1 << rng.randrange(8)
            case 1:
                del result[at : at + rng.randrange(1, 9)]
            case 2:
                result[at:at] = rng.choice(
                    (b"\x00", b'"', b",", b"\n", b"[" * 3000, b"{", b"\xff", b"1e999", b";", b"&a *a")
                )
            case 3:
                del result[at:]
    return bytes(result)


def files(folder: Path) -> set[str]:
    """Every file and folder below, relative to it."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}

"""Fuzzing: valid input that is changed in its structure, in its bytes, or not at all; only an `InputError` may come of it.

`FUZZ_CASES` sets the number of cases of each target; `make fuzz` takes 10,000. `FUZZ_REPORT` names a file for the counts.
"""

import copy
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from labelkin import InputError

CASES = int(os.environ.get("FUZZ_CASES", "25"))
LEAST_ACCEPTED, ENOUGH = 1 / 3, 200  # the share of this many cases or more: the checks behind the first are reached
REPORT = os.environ.get("FUZZ_REPORT")  # a file that gets a line of JSON for each target: cases, accepted, seconds
LONGEST = 60  # seconds of the processor for one case, or ten times as many by the clock: a busy machine is no hang
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

    Any other exception fails the test with the seed that leads to it. A case that takes longer than `LONGEST` hangs.
    """
    outcomes: Counter[str] = Counter()
    begun = monotonic()

    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),  # a smaller seed is no smaller input
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**48))
    def run(seed: int) -> None:
        try:
            with limited(LONGEST):
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
    if REPORT is not None:
        _report(outcomes, monotonic() - begun)
    least = LEAST_ACCEPTED if outcomes.total() >= ENOUGH else 1 / outcomes.total()  # few cases vary
    assert share >= least, f"only {share:.0%} of {outcomes.total()} cases were accepted"
    assert outcomes["refused"], "no case was refused"
    return outcomes


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise `Hang` in the main thread if the body takes more processor time, or ten times as long by the clock."""

    def stop(*_: Any) -> None:
        raise Hang(f"the case did not end within {seconds} s")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    former = [signal.signal(number, stop) for number, _, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, former, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


class Hang(Exception):
    """A case that did not end in time."""


def _report(outcomes: Counter[str], seconds: float) -> None:
    name = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2].partition(" ")[0]
    line = {"target": name, "cases": outcomes.total(), "accepted": outcomes["accepted"], "seconds": round(seconds, 1)}
    with open(str(REPORT), "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def changed(value: Any, rng: Random) -> Any:
    """A copy of nested lists and dicts with up to three parts changed; in a third of the cases as it was.

    Half of the changes keep the type of a value, so that they get past the checks of types.
    """
    result = copy.deepcopy(value)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3)) if rng.random() < 0.8 else 0):
        result = _nudge(result, rng) if rng.random() < 0.5 else _change(result, rng)
    return result


def _nudge(value: Any, rng: Random) -> Any:
    """Change one number, text or truth value into another of the same type, or the order of a list or dict."""
    places = list(_places(value))
    if not places:
        return value
    holder, key = rng.choice(places)
    part = holder[key]
    if isinstance(part, bool):
        holder[key] = not part
    elif isinstance(part, int):
        holder[key] = rng.choice((part + 1, part - 1, 2 * part, 0, -part, 10**6))
    elif isinstance(part, float):
        holder[key] = rng.choice((part * 2, part + 1, -part, 0.0, 1e30, 1e-30))
    elif isinstance(part, str):
        texts = [own for inside, at in places if isinstance(own := inside[at], str)]
        holder[key] = rng.choice((*texts, part.upper(), f"{part} ", f"{part}é", part[:1], "<b>&amp;", "=1+1"))
    elif isinstance(part, list):
        rng.shuffle(part)
    elif isinstance(part, dict):
        moved = list(part.items())
        rng.shuffle(moved)
        part.clear()
        part.update(moved)
    return value


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
    """Bytes with up to three of them changed, removed or inserted, or a cut end; in two of three cases as they were."""
    result = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3)) if rng.random() < 1 / 3 else 0):
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

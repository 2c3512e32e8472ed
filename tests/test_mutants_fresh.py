"""The mutants are in step with the code: each can be made, and every part of the package has at least two."""

import os
import time
from pathlib import Path

import pytest

from mutants import MUTANTS
from support import mutating
from support.mutating import EXPECTED_ROOMS, ROOT, Mutant, rooms_of, run, select, stale


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_of_a_mutant_occurs_exactly_once_in_its_file(mutant: Mutant):
    assert not stale(mutant)
    assert mutant.before != mutant.after


def test_a_mutant_names_tests_that_exist():
    missing = {name for m in MUTANTS for name in m.tests.partition(" -k ")[0].split() if not _test(name).is_file()}
    assert not missing


def test_names_are_unique():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)


def test_every_room_has_two_mutants():
    assert {room: count for room, count in rooms_of(MUTANTS).items() if count < 2} == {}
    assert set(rooms_of(MUTANTS)) == set(EXPECTED_ROOMS)


def test_a_mutant_whose_text_is_gone_or_twice_there_is_stale(tmp_path: Path):
    (tmp_path / "src" / "labelkin").mkdir(parents=True)
    (tmp_path / "src" / "labelkin" / "a.py").write_text("one two two")
    found = [stale(Mutant("", file, text, "", ""), tmp_path) for text in ("one", "two", "three") for file in ["a.py"]]
    assert found[0] == ""
    assert ["occurs 2 times" in found[1], "occurs 0 times" in found[2]] == [True, True]
    assert "no file" in stale(Mutant("", "b.py", "", "", ""), tmp_path)


def test_a_subset_is_chosen_by_name_or_room():
    assert {m.room for m in select(MUTANTS, [], ["audit", "cli"])} == {"audit", "cli"}
    assert all("tau" in m.name for m in select(MUTANTS, ["tau"], []))
    assert select(MUTANTS, [], []) == MUTANTS


@pytest.mark.long
def test_a_mutant_counts_only_if_its_control_is_green(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mutating, "control", lambda tests: "green" if tests == "good" else "red without a mutant")
    monkeypatch.setattr(mutating, "outcome", lambda mutant: {"a": "caught", "c": "survived"}[mutant.name])
    mutants = [Mutant(name, "cli/a.py", "", "", tests) for name, tests in (("a", "good"), ("b", "bad"), ("c", "good"))]
    said: list[str] = []
    assert run(mutants, said.append) == 2
    assert said == [
        "control    bad: red without a mutant",
        "1 of 2 controls are green",
        "   1 caught     cli: a",
        "   3 survived   cli: c",
        "3 mutants, 2 not caught or not tried",
    ]
    assert run(mutants, said.append, first=3) == 1
    assert said[-2:] == ["   3 survived   cli: c", "1 mutants, 1 not caught or not tried"]
    assert run(mutants, said.append, last=1) == 0


def test_the_control_of_a_file_runs_all_its_selections_at_once():
    tests = [
        "test_a.py -k one",
        "test_a.py -k two and not three",
        "test_b.py",
        "test_b.py -k one",
        "test_a.py test_b.py -k x",
    ]
    assert mutating.joined(tests) == {
        "test_a.py -k (one) or (two and not three)": tests[:2],
        "test_b.py": tests[2:4],
        "test_a.py test_b.py -k (x)": tests[4:],
    }


@pytest.mark.long
def test_a_red_file_is_looked_at_selection_by_selection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mutating, "control", lambda tests: "red" if "bad" in tests else "green")
    monkeypatch.setattr(mutating, "outcome", lambda mutant: "caught")
    mutants = [Mutant(name, "cli/a.py", "", "", f"test_a.py -k {name}") for name in ("good", "bad")]
    said: list[str] = []
    assert run(mutants, said.append) == 1
    assert said[:3] == ["control    test_a.py -k bad: red", "1 of 2 controls are green", "   1 caught     cli: good"]


@pytest.mark.long
def test_forked_calls_answer_in_order_and_a_process_that_dies_says_so():
    def answer(item: int) -> str:
        if item == 2:
            os._exit(3)
        if item == 3:
            raise ValueError("no three")
        time.sleep(0.05 * (5 - item))
        return f"{item}"

    found = list(mutating.forked(answer, range(5), workers=3))
    assert [found[i] for i in (0, 1, 4)] == ["0", "1", "4"]
    assert "no answer" in found[2]
    assert "ValueError: no three" in found[3]


def _test(name: str) -> Path:
    return next((ROOT / "tests").rglob(name), ROOT / "tests" / name)

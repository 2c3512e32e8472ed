"""The mutants are in step with the code: each can be made, and every part of the package has at least two."""

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


def test_a_mutant_counts_only_if_its_control_is_green(monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    monkeypatch.setattr(mutating, "control", lambda tests: "green" if tests == "good" else "red without a mutant")
    monkeypatch.setattr(mutating, "outcome", lambda mutant: made.append(mutant.name) or "caught")
    said: list[str] = []
    assert run([Mutant("a", "cli/a.py", "", "", "good"), Mutant("b", "cli/b.py", "", "", "bad")], said.append) == 1
    assert made == ["a"]
    assert any("bad" in line for line in said)


def _test(name: str) -> Path:
    return next((ROOT / "tests").rglob(name), ROOT / "tests" / name)

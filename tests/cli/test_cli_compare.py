"""What `labelkin compare` refuses before any training, and how its tables are told apart."""

import numpy as np
import pytest

from labelkin.report._class_sizes import SizeGroup
from labelkin.runs import Store
from support.commands import call, refused

BOTH = ("compare", "--objectives", "one-hot,label-embedding", "--batch-size", "256")
GRID = ("--grid", "label-embedding.tau=1,2")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (GRID, "add one, for example `--validation 0.1`."),
        ((*GRID, "--validation", "0"), "add one, for example `--validation 0.1`."),
        (
            (*GRID, "--validation", "0.2", "--set", "label-embedding.tau=3"),
            "label-embedding.tau: got a value (--set) and",
        ),
        (
            ("--grid", "label-embedding.tau=1,1", "--validation", "0.2"),
            "the grid of 'tau': expected no duplicates, got 1, 1.",
        ),
        (("--html", "nodir/x.html"), "nodir/x.html: there is no folder 'nodir'"),
        (("a.en:a.de", "--html", "x.html"), "a.en:a.de: is a translation run; reports cover classification only"),
        (("--html", "x.pdf"), "x.pdf: expected a name that ends in .html"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_training(given, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(*BOTH, "--epochs", 1, *given, "--out", "runs")
    assert not list(tmp_path.iterdir())


def test_a_plan_refuses_options_by_the_name_that_was_typed(tmp_path):
    (tmp_path / "plan.yaml").write_text("objectives: [one-hot]")
    assert "leave --grid out" in refused("compare", tmp_path / "plan.yaml", *GRID)
    assert "leave --validation out" in refused("compare", tmp_path / "plan.yaml", "--validation", "0.2")


@pytest.mark.long
def test_a_dry_run_shows_the_values_of_a_grid(tmp_path):
    told = call(*BOTH, *GRID, "--validation", "0.2", "--set", "label-embedding.p=2", "--dry-run", "--out", tmp_path)
    titles = [line.split("  ")[2] for line in told.stdout.splitlines()]
    assert titles == ["one-hot seed 0", "label-embedding tau=1 seed 0", "label-embedding tau=2 seed 0"]


@pytest.mark.long
def test_tables_that_differ_in_settings_are_headed_by_them(tmp_path):
    for given in (("--epochs", 1), ("--epochs", 2), ("--epochs", 2, "--subset", 0.5, "--augment", "flip,shift:0.1")):
        assert call(*BOTH, *given, "--out", tmp_path).exit_code == 0
    told = call("runs", "compare", tmp_path).stdout
    headings = [line for line in told.splitlines() if line.startswith("digits, tiny-cnn, the tree built")]
    assert sorted(line.partition("because none was given, ")[2] for line in headings) == [
        "epochs 1, augment none, subset default:",
        "epochs 2, augment flip+shift:0.1, subset 0.5:",
        "epochs 2, augment none, subset default:",
    ]


@pytest.mark.parametrize("option", ["--set", "--grid"])
def test_an_option_that_is_set_twice_is_refused(option: str, tmp_path):
    twice = (option, "label-embedding.tau=1", option, "label-embedding.tau=2")
    told = refused(
        "compare", "digits", "--objectives", "label-embedding", *twice, "--validation", 0.1, "--out", tmp_path
    )
    assert f"{option}: label-embedding.tau is given twice" in told


@pytest.mark.long
def test_one_run_is_told_in_the_singular(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelkin.comparison._work.Work._has_time", lambda self: False)
    command = ("compare", "--objectives", "one-hot", "--seeds", "0", "--epochs", 1, "--subset", 0.1)
    told = call(*command, "--budget", "90s").stderr
    assert "digits: 1 run, 0 finished, 1 to do in runs." in told
    assert "1 of 1 run was skipped, because it would not have finished within" in told
    assert "run the same command again to train it." in told
    monkeypatch.setattr("labelkin.comparison._work.Work._has_time", lambda self: self.done < 1)
    told = call(*command[:3], "--seeds", "0,1", *command[5:], "--budget", "90s")
    assert "1 run of the plan has not started and is not in the table." in told.stdout
    assert call("runs", "export", "-o", "r.json").stdout == "Wrote 1 run to r.json\n"
    assert call("runs", "pack", "-o", "r.zip").stdout.startswith("Wrote 1 run to r.zip")
    assert call("runs", "unpack", "r.zip").stdout == "Wrote 0 runs to runs; 1 was already there\n"
    assert call("runs", "list").stderr == "1 run, 1 finished\n"
    (run,) = Store("runs").records()
    (run.path / "notes.txt").touch()
    assert "kept 1 file that labelkin did not write: 'notes.txt'" in call("runs", "rm", run.id, "--yes").stderr


@pytest.mark.parametrize(
    ("least", "most", "name"), [(0, 0, "0 samples"), (1, 1, "1 sample"), (1, 1200, "1 to 1,200 samples")]
)
def test_sizes_of_classes_are_told_in_the_singular_and_the_plural(least: int, most: int, name: str):
    assert SizeGroup(np.arange(2), least, most).name == name

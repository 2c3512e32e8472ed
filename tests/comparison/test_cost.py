"""The cost of decisions: differences crossed over seeds and samples, the verdict on them, and what may not decide."""

import json
from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest

from labelkin import InputError
from labelkin.comparison import Comparison, Row, crossed, decides_on_cost, paired, summarize
from labelkin.comparison._table import comparison_as_csv, comparison_as_markdown, comparison_notes, terminal_columns
from labelkin.runs import Outcomes, Record
from labelkin.runs._decisions import packed_outcomes, unpacked_outcomes
from support.outcomes import earlier_run, run_with_costs

SEEDS, SAMPLES = 4, 300


def made(shift: float, *, seeds: int = SEEDS, samples: int = SAMPLES, **given: object) -> list[Record]:
    """Runs of one-hot and of "other", whose decisions are wrong more often by `shift`."""
    generator = np.random.default_rng(0)
    hard = generator.random(samples)
    runs = []
    for seed in range(seeds):
        for label, more in (("one-hot", 0.0), ("other", shift)):
            wrong = generator.random(samples) < hard * 0.6 + more
            runs.append(run_with_costs(label, seed, np.where(wrong, generator.integers(1, 4, samples), 0), **given))  # type: ignore[arg-type]
    return runs


def costs(runs: list[Record], label: str) -> np.ndarray:
    return np.stack([found.cost for run in runs if run.label == label and (found := run.outcomes()) is not None])


def test_the_difference_is_that_of_pairs_of_runs_on_each_sample():
    runs = made(-0.1)
    row = summarize(runs).rows[1]
    ours, theirs = costs(runs, "other"), costs(runs, "one-hot")
    expected = crossed(ours - theirs)
    assert (row.cost, row.cost_difference) == pytest.approx((ours.mean(), (ours - theirs).mean()))
    assert (row.cost_low, row.cost_high) == pytest.approx((expected.low, expected.high))
    relative = (row.cost_change_low, row.cost_change, row.cost_change_high)
    assert relative == pytest.approx([value / theirs.mean() for value in (expected.low, expected.mean, expected.high)])
    assert (row.basis, row.test_samples) == ("calibrated", SAMPLES)
    right = crossed((ours == 0).astype(float) - (theirs == 0))
    assert (row.difference_low, row.difference_high) == pytest.approx((right.low, right.high))
    assert row.difference_high - row.difference_low > np.ptp(paired((ours == 0).mean(1) - (theirs == 0).mean(1))[2:4])


def verdict_of(*rows: Row, **given: object) -> str:
    verdict = comparison(*rows, **given).verdict
    return f"{verdict.advice}: {verdict}" + "".join(f" {detail}" for detail in verdict.details)


def comparison(*rows: Row, built_tree: bool = False, reference: str | None = "one-hot") -> Comparison:
    return Comparison(list(rows), reference, "animals", "given", Path(), {}, [], built_tree=built_tree)


def row(label: str, low: float, high: float, **given: object) -> Row:
    middle = (low + high) / 2
    base = Row(label, label, 3, (0, 1, 2), 0.76, 0.01, basis="calibrated", test_samples=1000, decided_accuracy=0.75)
    base = base._replace(
        cost=0.5 * (1 + middle), cost_difference=0.5 * middle, cost_low=0.5 * low, cost_high=0.5 * high
    )
    return base._replace(cost_change=middle, cost_change_low=low, cost_change_high=high, **given)  # type: ignore[arg-type]


ONE_HOT = row("one-hot", 0.0, 0.0, decided_accuracy=0.74)
SIZE = "n = 3 seeds x 1,000 test samples"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [row("a", -0.15, -0.05)],
            "Use a: Decisions by a cost 10.0 % less than those by one-hot, at an accuracy of 75.00 % against 74.00 % "
            f"(95 % interval −15.0 to −5.0 %, {SIZE}).",
        ),
        (
            [row("a", -0.15, -0.05), row("b", -0.4, 0.02)],
            "Use a: Decisions by a cost 10.0 % less than those by one-hot, at an accuracy of 75.00 % against 74.00 % "
            f"(95 % interval −15.0 to −5.0 %, {SIZE}). Of 2 objectives, 1 is shown to cost less than one-hot (a) and none is "
            "shown to cost more.",
        ),
        (
            [row("a", -0.05, 0.03, cost_seeds_to_settle=9)],
            "Keep one-hot: Decisions by a are not shown to cost less than those by one-hot (−1.0 %, 95 % interval −5.0 to "
            f"+3.0 %, {SIZE}). About 9 seeds would show the difference of a if it is this large.",
        ),
        (
            [row("a", -0.05, 0.03, cost_seeds_to_settle=2), row("b", 0.01, 0.03)],
            "Keep one-hot: No objective's decisions are shown to cost less than those by one-hot (cheapest: a, −1.0 %, 95 % "
            f"interval −5.0 to +3.0 %, {SIZE}). Of 2 objectives, 1 is shown to cost more (b).",
        ),
        (
            [row("a", 0.02, 0.06)],
            "Keep one-hot: Decisions by a cost 4.0 % more than those by one-hot, at an accuracy of 75.00 % against 74.00 % "
            f"(95 % interval +2.0 to +6.0 %, {SIZE}).",
        ),
        (
            [row("a", 0.02, 0.06), row("b", 0.03, 0.07)],
            "Keep one-hot: Decisions by a, the cheapest other objective, cost 4.0 % more than those by one-hot, at an accuracy "
            f"of 75.00 % against 74.00 % (95 % interval +2.0 to +6.0 %, {SIZE}). Of 2 objectives, 2 are shown to cost more "
            "(a, b).",
        ),
    ],
)
def test_the_first_sentence_says_which_objective_how_much_and_at_what_accuracy(rows: list[Row], expected: str):
    assert verdict_of(ONE_HOT, *rows) == expected


def test_accuracies_are_compared_over_the_same_seeds():
    """The reference has a seed that the other lacks, and it was easier."""
    easy, hard = [0] * 1000, [0] * 600 + [2] * 400
    runs = [run_with_costs("one-hot", seed, hard) for seed in range(4)] + [run_with_costs("one-hot", 4, easy)]
    runs += [
        run_with_costs("kin", seed, [0] * (1000 - wrong) + [2] * wrong)
        for seed, wrong in enumerate((190, 200, 200, 210))
    ]
    compared = summarize(runs)
    kin = next(row for row in compared.rows if row.label == "kin")
    assert kin.decided_accuracy_change == pytest.approx(0.2)
    assert "at an accuracy of 80.00 % against 60.00 %" in str(compared.verdict)


def test_chance_is_mentioned_for_several_objectives_only():
    many = [row(f"o{i}", -0.1, -0.01 if i == 0 else 0.1) for i in range(12)]
    assert "By chance alone, about 0.3 would look better." in verdict_of(ONE_HOT, *many)
    for count in (1, 2, 4):
        assert "chance" not in verdict_of(ONE_HOT, *many[:count])


def test_it_says_whether_seeds_or_test_data_are_needed():
    seeds = row("a", -0.05, 0.03, cost_seeds_to_settle=9, cost_samples_to_settle=5000)
    assert verdict_of(ONE_HOT, seeds).endswith("About 9 seeds would show the difference of a if it is this large.")
    samples = row("a", -0.05, 0.03, cost_samples_to_settle=5000)
    assert "more test data is what is needed: about 5,000 test samples with 3 seeds" in verdict_of(ONE_HOT, samples)
    exact = row("a", -0.05, 0.03, cost_samples_to_settle=18473)
    assert "about 19,000 test samples" in verdict_of(ONE_HOT, exact)  # an estimate has no five digits
    neither = "Neither more seeds nor more test data alone would show a difference like that of a; use both."
    assert verdict_of(ONE_HOT, row("a", -0.05, 0.03)).endswith(neither)


def test_what_is_needed_concerns_the_objective_that_the_verdict_names():
    """One that is closer to being shown, but costs more, answered a question that nobody had asked."""
    cheapest = row("a", -0.05, 0.01, cost_samples_to_settle=5000)
    said = verdict_of(ONE_HOT, cheapest, row("b", -0.04, 0.03, cost_seeds_to_settle=9))
    assert "cheapest: a" in said
    assert "More seeds would not show the difference of a;" in said
    assert "difference of b" not in said


def test_a_single_sample_that_makes_the_difference_is_named():
    said = verdict_of(ONE_HOT, row("a", -0.15, -0.05, cost_largest_share=0.6))
    assert "One test sample makes up 60 % of the difference of a; test on more samples" in said
    assert "One test sample" not in verdict_of(ONE_HOT, row("a", -0.15, -0.05, cost_largest_share=0.4))


def test_one_seed_decides_nothing():
    alone = [each._replace(runs=1) for each in (ONE_HOT, row("a", nan, nan, cost=0.4, cost_difference=-0.1))]
    assert verdict_of(*alone).startswith(
        "Run more seeds: One seed cannot show whether a difference is due to chance; decisions by a cost least, 0.400 on "
        "average, those by one-hot 0.500 (n = 1 seed x 1,000 test samples)."
    )


def test_a_tree_built_from_the_data_decides_no_verdict():
    winner = row("a", -0.15, -0.05, difference=0.001, difference_low=-0.01, difference_high=0.012)
    said = verdict_of(ONE_HOT._replace(difference=0.0), winner, built_tree=True)
    assert said.startswith("Keep one-hot: a is not shown to be more accurate than one-hot")
    assert said.endswith(
        "Costs decide no verdict here, because the tree was built from the data; give one with --taxonomy."
    )
    assert decides_on_cost(comparison(ONE_HOT, winner))
    assert summarize(made(-0.1, tree="built")).built_tree
    assert not decides_on_cost(summarize(made(-0.1, tree="built")))


def test_uncalibrated_temperatures_are_said():
    assert "not calibrated" in verdict_of(ONE_HOT, row("a", -0.15, -0.05, basis="not calibrated"))
    assert summarize(made(-0.1, calibrated=0)).rows[1].basis == "not calibrated"


def test_what_is_left_out_is_named():
    others = [
        row("old", nan, nan, basis="uncalibrated, seeds only"),
        row("static", nan, nan, basis="", cost=nan, cost_difference=nan),
        row("apart", nan, nan, cost_difference=nan),
    ]
    said = verdict_of(ONE_HOT, row("a", -0.15, -0.05), *others)
    assert "Left out, because their decisions on the test samples are not stored: old." in said
    assert "Left out, because their scores are not probabilities: static." in said
    assert "Left out, because they share no seed with the reference: apart." in said
    assert "Of " not in said  # one objective is left


def test_earlier_runs_are_compared_over_seeds_and_decide_nothing():
    runs = [earlier_run("one-hot", seed, accuracy=0.9, severity=2.0 + 0.01 * seed) for seed in range(3)]
    runs += [earlier_run("other", seed, accuracy=0.92, severity=1.0) for seed in range(3)]
    found = summarize(runs)
    other = found.rows[1]
    assert (other.basis, other.test_samples) == ("uncalibrated, seeds only", None)
    assert other.cost == pytest.approx(0.08)
    alone = paired([0.08 - 0.1 * (2.0 + 0.01 * seed) for seed in range(3)])
    assert (other.cost_difference, other.cost_low, other.cost_high) == pytest.approx(
        (alone.mean, alone.low, alone.high)
    )
    assert other.cost_high < 0  # it would win
    assert not decides_on_cost(found)
    assert found.verdict.details[-1].startswith("Costs decide no verdict here, because these runs are uncalibrated")
    assert "| uncalibrated, seeds only |" in comparison_as_markdown(found)


def test_calibrated_and_earlier_runs_are_not_compared():
    runs = [run_with_costs("one-hot", seed, [0.0, 1.0, 2.0]) for seed in range(3)]
    runs += [earlier_run("other", seed, accuracy=0.92, severity=1.0) for seed in range(3)]
    assert isnan(summarize(runs).rows[1].cost_difference)


@pytest.mark.parametrize("given", [{"stored": False}, {"tested": "others"}])
def test_without_the_same_test_samples_only_seeds_are_compared(given: dict):
    runs = made(-0.1)[::2] + made(-0.1, **given)[1::2]
    found = summarize(runs)
    ours, theirs = ([(run.final or {})["decided_cost"] for run in runs if run.label == x] for x in ("other", "one-hot"))
    alone = paired([a - b for a, b in zip(ours, theirs, strict=True)])
    assert found.rows[1].basis == "calibrated, seeds only"
    assert (found.rows[1].cost_low, found.rows[1].cost_high) == pytest.approx((alone.low, alone.high))
    assert not decides_on_cost(found)


def test_all_forms_show_the_cost():
    found = summarize(made(-0.2))
    assert found.verdict.kind == "winner"
    assert comparison_notes(found)[0].startswith("Decisions by other cost ")
    assert terminal_columns(found)[:3] == ["objective", "cost", "cost against {reference} %"]
    assert "cost against one-hot %" in str(found)
    assert "1.000 (+0.200)" in comparison_as_markdown(found)  # AHD@5 and its distance above the floor
    assert "cost_change_low" in comparison_as_csv(found).splitlines()[0]
    value = json.loads(json.dumps(found.as_dict()))
    assert value["verdict"]["winner"] == "other"
    assert value["rows"][1]["cost_difference"] == found.rows[1].cost_difference
    assert f"on the test set of {SAMPLES} samples" in " ".join(comparison_notes(found))


def test_the_notes_say_whether_scores_were_calibrated():
    calibrated, raw = (" ".join(comparison_notes(summarize(made(-0.2, **given)))) for given in ({}, {"calibrated": 0}))
    assert "after the scores are divided by a temperature" in calibrated
    assert "Costs are comparable only" not in calibrated
    assert "temperature" not in raw
    assert "by unscaled scores, because the runs are not calibrated" in raw
    assert "Costs are comparable only if they are calibrated." in raw  # nothing about earlier runs: there are none


# What a results file stores


@pytest.mark.parametrize(
    "cost",
    [np.array([0.0, 2.0, 1.0, 2.0, 0.5]), np.random.default_rng(0).random(1000), np.full(9, np.nan), np.zeros(0)],
)
def test_outcomes_are_read_as_they_were_written(cost: np.ndarray):
    given = Outcomes(cost, np.arange(len(cost)) % 3 == 0, "digest", 7)
    found = unpacked_outcomes(json.loads(json.dumps(packed_outcomes(given))))
    assert np.allclose(found.cost, cost, rtol=1e-6, equal_nan=True)
    assert (found.correct == given.correct).all()
    assert found[2:] == ("digest", 7)


def test_ten_thousand_costs_take_a_few_kilobytes():
    generator = np.random.default_rng(0)
    cost = np.where(generator.random(10_000) < 0.25, generator.integers(1, 6, 10_000), 0).astype(float)
    assert len(json.dumps(packed_outcomes(Outcomes(cost, cost == 0, "digest", 7)))) < 6_500


@pytest.mark.parametrize("damage", [{"cost": "AAAA"}, {"n": 4}, {"cost": "%"}])
def test_damaged_outcomes_are_an_error(damage: dict):
    packed = packed_outcomes(Outcomes(np.zeros(3), np.ones(3, bool), "digest", 7))
    with pytest.raises(ValueError, match=r"outcomes|base64"):
        unpacked_outcomes({**packed, **damage})


# Cross-validation


def folds(label: str, seed: int, given: list[list[float]]) -> list[Record]:
    return [
        run_with_costs(label, seed, costs, tested=f"fold {k}", data_options={"folds": len(given), "fold": k})
        for k, costs in enumerate(given)
    ]


def test_folds_are_pooled_so_that_each_sample_is_tested_once():
    parts = {("one-hot", 0): [[0, 1, 2], [0, 3]], ("one-hot", 1): [[0, 0, 2], [3, 3]]}
    parts |= {("a", 0): [[0, 0, 2], [0, 1]], ("a", 1): [[0, 0, 0], [3, 1]]}
    runs = [run for (label, seed), given in parts.items() for run in folds(label, seed, given)]
    found = summarize(runs[::-1])
    rows = {each.label: each for each in found.rows}
    whole = {key: np.concatenate([np.array(part, float) for part in given]) for key, given in parts.items()}
    expected = crossed(np.stack([whole["a", seed] - whole["one-hot", seed] for seed in (0, 1)]))
    assert (rows["a"].runs, rows["a"].test_samples) == (2, 5)
    assert rows["a"].cost == pytest.approx(np.mean([whole["a", 0].mean(), whole["a", 1].mean()]))
    assert (rows["a"].cost_low, rows["a"].cost_high) == pytest.approx((expected.low, expected.high))
    wrong = [cost[cost > 0].mean() for cost in (whole["a", 0], whole["a", 1])]
    assert rows["a"].decided_severity == pytest.approx(np.mean(wrong))
    assert rows["a"].seconds == 2.0
    assert len(found.records["a"][0].history()) == 2


def test_a_seed_without_all_folds_is_left_out_and_named():
    runs = [*folds("one-hot", 0, [[0, 1], [0, 2]]), *folds("one-hot", 1, [[0, 1], [0, 2]])[:1]]
    found = summarize(runs)
    assert found.rows[0].seeds == (0,)
    assert found.incomplete == ["one-hot seed 1 (1 of 2 folds)"]
    assert "Left out, because folds are missing: one-hot seed 1 (1 of 2 folds)." in comparison_notes(found)


def test_damaged_outcomes_of_a_results_file_are_named(tmp_path: Path):
    from labelkin.runs import read_results

    run = run_with_costs("one-hot", 0, [0.0, 1.0])
    plain = {"label": run.label, "final": run.final, "seconds": 1.0, "backbone": "mlp", **run.config}
    content = {"machine": "here", "date": "today", "runs": [plain]}
    (tmp_path / "some.json").write_text(json.dumps(content))
    assert read_results(tmp_path)[0].runs[0].outcomes() is not None
    plain["outcomes"] = {**run.config["outcomes"], "cost": "AAAA"}
    (tmp_path / "some.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"some\.json: not written by `labelkin runs export`"):
        read_results(tmp_path)

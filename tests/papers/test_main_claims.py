"""The table of claims: verdicts on hand-worked cases, and every claim of a paper with its published pair or a reason."""

import json
import re
from pathlib import Path
from shutil import copyfile

import pytest
import yaml

from labelkin._checks import InputError
from labelkin.comparison import paired, seeds_to_settle
from labelkin.papers import documents, recipe, recipe_ids
from labelkin.papers._claims_table import judge_claim, slug
from labelkin.papers._coverage import coverage_file, known_coverage
from labelkin.papers._documents import coverage_of
from labelkin.papers._evidence import evidence, read_untrained
from labelkin.papers._leaderboard import deciding_settings
from labelkin.papers._main_claims import FAILS, HOLDS, UNMEASURED, UNTOLD, main_claims, rule
from labelkin.papers._published import Figure
from labelkin.papers._settings import settings_of
from labelkin.runs._results_file import read_results
from support.documents import line_of, run, written

ROOT = Path(__file__).resolve().parents[2]
RELEASED = {"weights": "released"}


# Verdicts by hand. Student's quantile of three seeds is 4.303: a spread of .1 gives a half-width of .248.


@pytest.mark.parametrize(
    ("differences", "better", "verdict"),
    [
        ((0.9, 1.0, 1.1), "higher", HOLDS),
        ((0.9, 1.0, 1.1), "lower", FAILS),
        ((-0.9, -1.0, -1.1), "lower", HOLDS),
        ((-0.9, -1.0, -1.1), "higher", FAILS),
        ((0.1, 0.2, 0.3), "higher", UNTOLD),  # .2 - .248 < 0
        ((0.2, 0.3, 0.4), "higher", HOLDS),  # .3 - .248 > 0
        ((), "higher", UNMEASURED),
        ((5.0,), "higher", UNTOLD),
    ],
)
def test_a_claim_that_one_is_better(differences, better, verdict):
    assert rule(paired(differences), len(differences), better=better).verdict == verdict


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ((-0.1, 0.0, 0.1), HOLDS),  # [-.248, .248] lies within 1
        ((0.7, 0.8, 0.9), UNTOLD),  # [.552, 1.048] does not
        ((-0.7, -0.8, -0.9), UNTOLD),
        ((1.4, 1.5, 1.6), FAILS),  # [1.252, 1.748] lies outside
        ((-1.4, -1.5, -1.6), FAILS),
        ((0.1,), UNTOLD),
    ],
)
def test_a_claim_that_two_are_alike(differences, verdict):
    for better in ("higher", "lower"):
        assert rule(paired(differences), len(differences), better=better, within=1.0).verdict == verdict


def test_what_cannot_be_told_says_how_many_seeds_would_tell():
    differences = (0.1, 0.2, 0.3)
    needed = seeds_to_settle(0.2, 0.1)
    assert needed == 5  # the least n with (t(n - 1) + .84) .1 <= .2 sqrt n: 2.78 + .84 <= 4.47; 3.18 + .84 > 4
    ruling = rule(paired(differences), 3)
    assert ruling.reason == "the interval contains both outcomes; about 5 seeds would settle it"
    assert ruling.as_claimed is True
    assert rule(paired(differences), 3, better="lower").as_claimed is False
    alike = rule(paired((0.7, 0.8, 0.9)), 3, within=1.0)  # .2 to the limit: as many
    assert alike.reason == ruling.reason


def test_a_difference_of_nothing_is_not_settled_by_any_number():
    assert "more than 1,000 seeds" in rule(paired((-0.1, 0.0, 0.1)), 3).reason


def test_one_seed_says_so():
    assert rule(paired((5.0,)), 1).reason == "one seed has no interval"
    assert rule(paired((5.0,)), 1).as_claimed is True
    assert rule(paired((5.0,)), 1, within=1.0).as_claimed is False


# The claims that ship


def test_every_paper_has_three_to_six_claims():
    counts = [sum(claim.paper == paper for claim in main_claims()) for paper in ("000", "001", "002", "003", "004")]
    assert all(3 <= count <= 6 for count in counts), counts


@pytest.mark.parametrize("claim", main_claims(), ids=lambda claim: f"{claim.recipe}-{claim.words[:30]}")
def test_a_claim_has_a_published_pair_or_a_reason(claim):
    assert (claim.published is None) == (claim.no_pair is not None)
    assert claim.words.endswith(".")
    assert claim.recipe.startswith(claim.paper)
    if claim.checked is not None:
        assert claim.of is claim.than is claim.measure is None
        assert claim.checked in [entry["claim"] for entry in recipe(claim.recipe).claims]
        return
    places = {(part.column, row) for part in recipe(claim.recipe).parts for row in part.plan.get("objectives", {})}
    published = recipe(claim.recipe).published
    if not isinstance(published, Figure):
        places |= {(column, row) for column, row, _, _ in published.numbers()}
    assert {claim.of, claim.than} <= places
    assert claim.measure.better in ("higher", "lower")


@pytest.mark.parametrize(
    "claim", [claim for claim in main_claims() if claim.published], ids=lambda claim: claim.words[:30]
)
def test_the_published_pair_is_as_the_claim_says(claim):
    first, second = (cell.value for cell in claim.published)
    assert first > second if claim.measure.better == "higher" else first < second


# The page


def claim_line(told, words):
    return line_of(told, words, "| **")[2:]


def test_the_page_starts_with_the_claims(tmp_path):
    runs = [run("one-hot", 0.72 + seed / 1000, seed) for seed in range(3)]
    runs += [
        run("label-embedding", 0.76 + seed / 1000 + (seed == 2) / 1000, seed, options=RELEASED) for seed in range(3)
    ]
    told = written(tmp_path, *runs, recipe="003-table2")["reproduction.md"]
    assert (
        told.index("## The claims and their verdicts") < told.index("| paper | claim |") < told.index("## 003-table2")
    )
    verdict, published, measured, count, why, link = claim_line(told, "lowers the error on CIFAR-100")
    assert (verdict, published, count, why) == ("**holds**", "23.97 against 27.35 %", "3", "–")
    assert measured.startswith("23.87 against 27.90 %; difference -4.03 [-4.18, -3.89]")
    assert link == "[003-table2](#003-table2-label-embedding-on-images)"
    verdict, _, _, count, why, link = claim_line(told, "lowers the error on MNIST")
    assert (verdict, count, link) == ("**not measured**", "0", "[003-table2](#all-tables-and-figures)")
    command = '`labelkin reproduce 003-table2 --seeds 3 --jobs 8 --columns "MNIST" --rows "CNN-LabelEmb,CNN"`'
    assert why == f"6 runs, about 0.05 GPU hours (2 s an epoch): {command}"  # 6 x 15 x 2 s
    assert claim_line(told, "English to Vietnamese")[4] == "the training text of IWSLT2015 is not available"
    assert "Holds: 1; fails: 0; cannot be told: 0; not measured: 28." in told


def test_the_page_says_why_a_direction_is_not_reproduced(tmp_path):
    options = {"mixing": "shared", "eps": 0.2}
    training = {"batch_size": 250, "optimizer": "sgd", "lr": 0.1, "weight_decay": 1e-4, "schedule": "exponential"}
    training |= {"gamma": 0.1, "milestones": [], "augment": ["pad-crop:4", "rotation:15", "flip"], "epochs": 50}
    where = {"backbone": "resnet-32", "data": "cifar10", **training}
    runs = [run("one-hot", 0.9, **where), run("mixed-cross-entropy", 0.89, options=options, **where)]
    told = written(tmp_path, *runs, recipe="004-table3")["reproduction.md"]
    verdict, _, measured, count, why, _ = claim_line(told, "(MCEL) raises the accuracy on CIFAR-10")
    assert (verdict, measured, count) == ("**cannot be told**", "89.00 against 90.00 %; difference -1.00", "1")
    assert why.startswith(
        "50 of the paper's 500 epochs; one seed has no interval; possible cause: the printed momentum"
    )
    assert (
        "- 1 direction is not reproduced. Possible causes: 50 of the paper's 500 epochs; one seed; the printed" in told
    )


def test_chance_is_a_cause_if_the_interval_contains_zero(tmp_path):
    runs = [run("one-hot", 0.72, seed) for seed in range(2)]
    runs += [run("label-embedding", 0.71 + seed / 100, seed, options=RELEASED) for seed in range(2)]
    told = written(tmp_path, *runs, recipe="003-table2")["reproduction.md"]
    cause = "chance, because the interval of the difference contains zero"
    assert f"- 1 direction is not reproduced. Possible causes: {cause}." in told
    runs[2:] = [run("label-embedding", 0.62 + seed / 1000, seed, options=RELEASED) for seed in range(2)]
    told = written(tmp_path, *runs, recipe="003-table2")["reproduction.md"]  # shown to be worse
    assert "- 1 direction is not reproduced. No cause is known." in told
    assert claim_line(told, "lowers the error on CIFAR-100")[4] == "no cause is known"


def test_every_link_of_the_page_leads_to_a_heading():
    told = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    anchors = {slug(line.lstrip("# ")) for line in told.splitlines() if line.startswith("#")}
    links = re.findall(r"\]\(#([^)]+)\)", told)
    assert len(links) == len(main_claims())
    assert set(links) <= anchors


def test_a_claim_decided_by_a_check_that_was_not_made_is_not_measured():
    (claim,) = [claim for claim in main_claims() if claim.checked == "truck"]
    assert judge_claim(claim, None)[0].verdict == UNMEASURED


def untrained(folder, **changed):
    claims = [{"claim": words, "holds": True, "found": "so", "settled": True} for words in ("truck", "halves")]
    content = {
        "id": "004-figure2",
        "machine": "a machine",
        "date": "2026-11-18",
        "cells": [],
        "claims": claims,
        **changed,
    }
    (folder / "untrained").mkdir(exist_ok=True)
    (folder / "untrained" / "004-figure2.json").write_text(json.dumps(content))
    return documents(folder)["reproduction.md"]


def test_what_needs_no_training_is_read_from_its_file(tmp_path):
    told = untrained(tmp_path)
    verdict, _, measured, count, _, link = claim_line(told, "automobile is most similar to truck")
    assert (verdict, measured, count) == ("**holds**", "so", "nothing is random")
    assert link == "[004-figure2](#004-figure2-the-lda-similarity-matrix-of-cifar-10)"
    assert (
        "- `results/untrained/004-figure2.json`: a machine, 2026-11-18. `labelkin reproduce 004-figure2 --json`" in told
    )
    no = [
        {"claim": words, "holds": words != "truck", "found": "not so", "settled": True} for words in ("truck", "halves")
    ]
    assert claim_line(untrained(tmp_path, claims=no), "automobile is most")[0] == "**fails**"


def test_a_damaged_file_of_what_needs_no_training_is_named(tmp_path):
    with pytest.raises(InputError, match=r"004-figure2\.json: not the output of `labelkin reproduce ID --json`"):
        untrained(tmp_path, cells=[{}])


def test_claims_that_need_the_outputs_of_runs_are_read_from_their_file(tmp_path):
    """Results files have neither weights nor outputs. The cells of the table still come from the results."""
    copyfile(ROOT / "results" / "002-cifar10.json", tmp_path / "002-cifar10.json")
    words = "The most frequent mistakes lie between siblings"
    assert claim_line(documents(tmp_path)["reproduction.md"], words)[0] == "**not measured**"
    (tmp_path / "checked").mkdir()
    copyfile(ROOT / "results" / "checked" / "002-figure3.json", tmp_path / "checked" / "002-figure3.json")
    told = documents(tmp_path)["reproduction.md"]
    verdict, _, measured, count, *_ = claim_line(told, words)
    assert (verdict, count) == ("**holds**", "1")
    assert measured.startswith("automobile as truck 81 times (published: 100)")
    assert claim_line(told, "The hierarchical loss ends at about")[3] == "3"
    assert "(only claims that need the weights or outputs of runs)" in told


def test_a_row_says_how_its_runs_differ_from_the_papers():
    told = documents(ROOT / "results")["reproduction.md"]
    line = claim_line(told, "Labels that are learned during training (LwAL) end at a higher accuracy")
    assert line[4].startswith("random initial weights instead of ImageNet's")
    assert "In 3 of those that hold or fail, the runs differ from the paper's; the row says how." in told


def test_what_one_seed_decides_is_said_where_verdicts_are_explained():
    told = documents(ROOT / "results")["reproduction.md"]
    line = claim_line(told, "The most frequent mistakes lie between siblings of the tree")
    assert (line[0], line[3]) == ("**holds**", "1")
    assert "decided by the run with the first seed, without an interval; n is then 1." in told.replace("\n  ", " ")


def test_runs_that_repeat_a_papers_table_decide_no_comparison(tmp_path):
    file = tmp_path / "repeated.json"
    content = json.loads((ROOT / "results" / "002-cifar10.json").read_text())
    deciding = {}
    for repeated in (content["recipe"], None):
        file.write_text(json.dumps({**content, "recipe": repeated}))
        deciding[repeated] = len(deciding_settings(settings_of(read_results(tmp_path))))
    assert deciding == {content["recipe"]: 0, None: 4}
    file.write_text(json.dumps(content))
    told = documents(tmp_path)["leaderboard.md"]
    assert told.count("| repeats a paper's table with its settings |") == 4


# What is measured, for the list


def test_the_committed_coverage_follows_from_the_results():
    assert coverage_file().read_text(encoding="utf-8") == coverage_of(ROOT / "results"), "run `make docs`"


def test_the_list_knows_every_table():
    assert tuple(known_coverage()) == recipe_ids()


def test_the_rest_is_what_three_seeds_lack(tmp_path):
    runs = [run("one-hot", 0.72, seed) for seed in range(2)]
    runs += [run("label-embedding", 0.76, seed, options=RELEASED, epochs=30) for seed in range(3)]
    runs = [{**one, "curve": [0.5] * one["settings"]["epochs"]} for one in runs]
    written(tmp_path, *runs, recipe="003-table2")
    covered = json.loads(coverage_of(tmp_path))["003-table2"]
    # CIFAR-100: one run of one-hot and three of the embedding, which were shorter; six runs each of CIFAR-10 and MNIST
    assert covered["left_runs"] == 1 + 3 + 6 + 6
    assert covered["left_hours"] == round((4 * 100 * 4.8 + 6 * 100 * 3 + 6 * 15 * 2) / 3600, 2)
    assert covered["shorter"]
    assert (covered["numbers"], covered["published"], covered["seeds"]) == (4, 12, [2, 3])


@pytest.mark.parametrize("name", recipe_ids())
def test_no_key_of_a_recipe_is_given_twice(name):
    """YAML keeps the last one without a word."""
    text = (Path(coverage_file()).parents[1] / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")

    def check(node):
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            assert len(keys) == len(set(keys)), keys
            for _, value in node.value:
                check(value)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                check(value)

    check(yaml.compose(text, Loader=yaml.SafeLoader))


def test_the_evidence_of_the_repository_is_complete():
    known = evidence(read_results(ROOT / "results"), read_untrained(ROOT / "results"))
    assert {"002-appendix", "004-figure2", "003-table2"} <= set(known)

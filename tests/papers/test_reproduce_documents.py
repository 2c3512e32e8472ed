"""Documents are what the results say: hand-worked results in, sentences out, and nothing typed by hand in between."""

from pathlib import Path

import numpy as np
import pytest

from labelkin._checks import InputError
from labelkin.comparison import compare, paired
from labelkin.papers import documents, write_documents
from labelkin.papers._settings import settings_of
from labelkin.runs._results_file import export_runs, read_results
from support.documents import line_of, run, written
from support.outcomes import run_with_costs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_committed_documents_follow_from_the_results():
    for name, text in documents(ROOT / "results").items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, f"run `make docs`: {name} is out of date"


def test_published_against_measured(tmp_path):
    told = written(
        tmp_path,
        run("one-hot", 0.7254),
        run("label-embedding", 0.7677, options={"weights": "released"}),
        run("label-smoothing", 0.75),
        recipe="003-table2, 003-figure2",
        missing=["CIFAR-10 was not reached."],
    )["reproduction.md"]
    assert line_of(told, "| ResNet-18 |", "error")[3:] == ["27.35 ± 0.4", "27.46", "1", "within spread"]
    embedding = line_of(told, "| ResNet-LabelEmb-18 |", "error")
    assert embedding[3:] == ["23.97 ± 0.33", "23.23", "1", "better by 0.74; direction as published, not significant"]
    assert line_of(told, "converges faster", "| no |")[2].startswith("CIFAR-100 ResNet-LabelEmb-18")
    assert "3 runs, seeds 0; one H200, 2026-11-15; protocol clean." in told
    assert "Limitations: CIFAR-10 was not reached." in told
    assert "`labelkin compare plan.yaml`" in told
    assert "but not in the table: label-smoothing." in told
    assert "| MNIST |" not in told  # what was not run is counted, not listed
    assert "Published numbers that were not measured: 8." in told


def test_files_of_one_table_are_told_as_one(tmp_path):
    written(tmp_path, run("one-hot", 0.7254), recipe="003-table2", name="here", missing=["The rest."])
    embedding = run("label-embedding", 0.7677, options={"weights": "released"})
    told = written(tmp_path, embedding, recipe="003-table2", name="there")["reproduction.md"]
    assert told.count("## 003-table2") == 1
    assert line_of(told, "| ResNet-LabelEmb-18 |", "error")[-1].endswith("direction as published, not significant")
    assert (
        told.index("`results/here.json`: 1 run")
        < told.index("Limitations: The rest.")
        < told.index("`results/there.json`")
    )


def imdb_run(objective: str, accuracy: float, seed: int, *, as_published: bool, options: dict | None = None) -> dict:
    """Return a run of 001's Table 3 under one of the two protocols."""
    settings = {"epochs": 10, "batch_size": 100, "optimizer": "adam", "lr": 1e-4, "schedule": "constant", "augment": []}
    settings |= {"report": "best-test", "evaluation": "batch-statistics"} if as_published else {}
    found = run(objective, accuracy, seed, data="imdb", backbone="text-head", options=options, **settings)
    return {**found, "data_options": {"encoder": "minilm"}}


def test_both_protocols_stand_side_by_side(tmp_path):
    lwal = {
        "warmup": 0,
        "every": 1,
        "detach": False,
        "momentum": 0.0,
        "memory": 0.0,
        "leave_one_out": False,
        "scale": 1.0,
    }
    choosing = {}
    for name, as_published, options in (
        ("clean", False, lwal),
        ("published", True, {**lwal, "eval_labels": "last"}),
    ):
        level = 0.83 if as_published else 0.80
        ours = -0.002 if as_published else 0.001
        runs = [imdb_run("one-hot", level, seed, as_published=as_published) for seed in (12, 123, 1234)]
        runs += [
            imdb_run("adaptive-labels", level + ours + seed / 1e7, seed, as_published=as_published, options=options)
            for seed in (12, 123, 1234)
        ]
        pages = written(tmp_path, *runs, recipe="001-table3", name=name)
        told, choosing[name] = pages["reproduction.md"], pages["choosing.md"]
    assert choosing["published"] == choosing["clean"]  # epochs that the test set chose recommend nothing
    clean, published = told.split("### 001-table3, evaluated as in the paper")
    assert "; protocol clean" in clean
    assert "; protocol as-published" not in clean
    assert "; protocol as-published" in published
    assert "not in the table" not in told  # the labels of the last batch are an option of the published protocol
    for section, difference in ((clean.split("## 001-table3")[1], "reproduced"), (published, "reversed")):
        assert difference in line_of(section.split("## All tables")[0], "| LwAL |", "accuracy")[-1]
    claim = line_of(clean, "learned labels are more accurate than one-hot")
    assert claim[2] == "**holds**"
    assert "evaluated as in the paper: " in claim[6]
    assert "difference -0.20" in claim[6]


def test_a_shorter_run_is_judged_by_direction_alone(tmp_path):
    runs = [run("one-hot", 0.70, seed, epochs=30) for seed in (0, 1)]
    released = {"weights": "released"}
    runs += [run("label-embedding", 0.74 + seed / 1000, seed, epochs=30, options=released) for seed in (0, 1)]
    told = written(tmp_path, *runs, recipe="003-table2")["reproduction.md"]
    assert line_of(told, "ResNet-LabelEmb-18", "error")[-1] == "direction reproduced"
    assert "CIFAR-100: 30 of the paper's 100 epochs." in told


@pytest.mark.parametrize("first", ["longer", "shorter"])
def test_runs_of_different_lengths_are_not_mixed(tmp_path, first):
    """Those nearest to the paper's count: a cell with both had some seeds of the one and some of the other."""
    released = {"weights": "released"}
    both = {
        "shorter": [
            *(run("one-hot", 0.60, seed, epochs=30) for seed in (0, 1)),
            *(run("label-embedding", 0.50, seed, epochs=30, options=released) for seed in (0, 1)),
        ],
        "longer": [
            *(run("one-hot", 0.72 + seed / 1000, seed) for seed in (0, 1, 2)),
            *(run("label-embedding", 0.76 + seed / 1000, seed, options=released) for seed in (0, 1, 2)),
        ],
    }
    second = "longer" if first == "shorter" else "shorter"
    written(tmp_path, *both[first], recipe="003-table2", name="a")
    told = written(tmp_path, *both[second], recipe="003-table2", name="b")["reproduction.md"]
    assert line_of(told, "| ResNet-18 |", "error")[4:6] == ["27.90 ± 0.10", "3"]
    assert line_of(told, "ResNet-LabelEmb-18", "error")[4:6] == ["23.90 ± 0.10", "3"]
    assert "CIFAR-100: 30 of the paper's 100 epochs." not in told
    assert (
        "Also in the file, but not in the table: label-embedding weights=released (30 of the paper's 100 epochs), one-hot "
        "(30 of the paper's 100 epochs)."
    ) in told


def test_a_single_row_that_is_nearer_to_the_papers_replaces_no_comparison(tmp_path):
    runs = [run("one-hot", 0.70, seed, epochs=30) for seed in (0, 1)] + [run("one-hot", 0.72)]
    runs += [run("label-embedding", 0.74, seed, epochs=30, options={"weights": "released"}) for seed in (0, 1)]
    told = written(tmp_path, *runs, recipe="003-table2")["reproduction.md"]
    assert line_of(told, "ResNet-LabelEmb-18", "error")[-1].startswith("direction")
    assert "but not in the table: one-hot." in told


@pytest.mark.parametrize(
    "other",
    [
        {"options": {"weights": "paper"}},
        {"backbone": "resnet-18"},
        {"data": "cifar10"},
        {"lr": 0.1},
    ],
)
def test_runs_of_something_else_stand_for_no_cell(tmp_path, other):
    told = written(
        tmp_path, run("label-embedding", 0.7, **{"options": {"weights": "released"}, **other}), recipe="003-table2"
    )["reproduction.md"]
    assert "| ResNet-LabelEmb-18 |" not in told
    assert "but not in the table" in told


def test_every_table_is_listed_measured_or_not(tmp_path):
    told = written(tmp_path, run("one-hot", 0.7), recipe="003-table2")["reproduction.md"]
    assert line_of(told, "| 003-table2 |")[2:4] == ["2 of 12 numbers, n = 1", "`results/some.json`"]
    rest = ["18 runs, about 8.8 GPU hours (3.5 s an epoch)", "`labelkin reproduce 004-table3 --seeds 3 --jobs 8`"]
    assert line_of(told, "| 004-table3 |")[2:] == ["no", "-", *rest]
    assert line_of(told, "| 003-table4 |")[2:] == ["no: the training text of IWSLT2015 is not available", "-", "-", "-"]


def test_the_guide_says_what_was_shown(tmp_path):
    runs = []
    for seed, accuracy in enumerate((0.90, 0.91, 0.92)):
        runs.append(run("one-hot", accuracy, seed, final={"ahd5": 2.0, "crm_ahd5": 1.0, "ece": 0.05}))
        off = 0.001 * (seed - 1)  # a spread of .1 points: Student's half-width of three is .25
        runs.append(
            run("label-embedding", accuracy + 0.01 + off, seed, final={"ahd5": 1.5, "crm_ahd5": 0.9, "ece": 0.06})
        )
        runs.append(
            run("adaptive-labels", accuracy - 0.02 + off, seed, final={"ahd5": 0.8, "crm_ahd5": 0.7, "ece": 0.02})
        )
        runs.append(run("label-smoothing", accuracy + (0.01, -0.01, 0.0)[seed], seed, final={"ece": 0.05}))
    runs.append(run("mixed-cross-entropy", 0.93))
    told = written(tmp_path, *runs)["choosing.md"]
    by_need = told.partition("## By need")[2]

    def line(name: str) -> list[str]:
        return line_of(
            by_need.partition("### I know nothing")[2].partition("###")[0], f"[`{name}`](methods/{name}.md)"
        )[1:]

    assert line("label-embedding") == ["1", "1 (+1.00)", "–", "–", "–"]
    assert line("adaptive-labels") == ["1", "–", "1 (-2.00)", "–", "–"]
    assert line("label-smoothing") == ["1", "–", "–", "1", "–"]
    assert line("mixed-cross-entropy") == ["1", "–", "–", "–", "1"]
    assert "`hierarchical`, `convex-hierarchical`, `semantic-smoothing`: not measured.\n" in by_need
    assert "`semantic-smoothing`: not measured with `relation: ordinal`." in by_need
    assert "`confidence-penalty`: not measured under label noise." in by_need
    few_epochs = by_need.partition("### I have time for few epochs")[2]
    assert line_of(few_epochs, "`label-embedding`")[1:] == ["1", "1", "0 %"]
    assert "below that of one-hot in 2 of 2 comparisons; with CRM for both, which is uncalibrated here, in 2." in told
    assert "lowest with `adaptive-labels` (-0.030 on average over its settings)" in told
    assert "highest with `label-embedding` (+0.010)" in told
    showed = told.partition("## What each objective showed")[2].partition("## By need")[0]
    assert line_of(showed, "`label-embedding`")[1:] == ["1", "1 (+1.00)", "–", "–", "–", "0 % in 1"]


def test_costs_are_compared_with_the_same_rule(tmp_path):
    """By argmax hierarchical would win; decided alike, it does not."""
    one_hot = {"severity": 3.0, "crm_accuracy": 0.9, "crm_severity": 1.0}
    other = {"severity": 1.5, "crm_accuracy": 0.9, "crm_severity": 1.2}
    told = written(tmp_path, run("one-hot", 0.9, final=one_hot), run("hierarchical", 0.9, final=other))["choosing.md"]
    assert line_of(told.partition("## By need")[2], "`hierarchical`")[-1] == "0 of 1"


def decided(objective, seed, cost, *, data="cifar100", tree="own", calibrated=500):
    """A run as a results file stores it, with the outcomes on each test sample."""
    made = run_with_costs(objective, seed, cost, calibrated=calibrated)
    final = {**made.final, "argmax_cost": 2 * made.final["decided_cost"]}
    plain = run(objective, made.final["accuracy"], seed, data=data, final=final)
    return {**plain, "tree": tree, "outcomes": made.config["outcomes"]}


def three_sets(shift, **given):
    generator = np.random.default_rng(0)
    runs = []
    for data in ("cifar100", "clinc150", "naics"):
        hard = generator.random(400) * 0.6
        for seed in range(3):
            for objective, more in (("one-hot", 0.0), ("label-embedding", shift)):
                wrong = generator.random(400) < hard + more
                cost = np.where(wrong, generator.integers(1, 4, 400), 0)
                runs.append(decided(objective, seed, cost, data=data, **given))
    return runs


@pytest.mark.long
def test_the_leaderboard_pools_the_costs_of_data_sets(tmp_path):
    told = written(tmp_path, *three_sets(-0.15))
    objective, sets, change, settings, _ = line_of(told["leaderboard.md"], "| label-embedding | 3 |", "3 / 0 / 0")
    assert (objective, sets, settings) == ("label-embedding", "3", "3 / 0 / 0")
    compared = [setting.compared for setting in settings_of(read_results(tmp_path))]
    changes = [next(row for row in each.rows if row.label == objective).cost_change for each in compared]
    expected = paired(changes)
    assert change == f"{100 * expected.mean:+.1f} [{100 * expected.low:+.1f}, {100 * expected.high:+.1f}]"
    assert "## Results that decide nothing" not in told["leaderboard.md"]
    assert told["leaderboard.md"].count("| one-hot | 3 |") == 3
    _, action, evidence = line_of(told["choosing.md"], "I train a model and have a tree")
    assert action == "train `label-embedding`"
    assert evidence.startswith(f"`label-embedding`: cost {change} % against one-hot over 3 data sets")
    assert line_of(told["choosing.md"], "I have a trained model")[2] == (
        "cost of one-hot's decisions -50.0 % against argmax, lower in 3 of 3 comparisons"
    )


def test_each_data_set_counts_once_in_accuracy_as_well(tmp_path):
    """A set with two settings counts as much as one with a single setting."""
    gains = {("clinc150", "mlp-500"): 0.01, ("cifar100", "resnet-18"): 0.03, ("cifar100", "wrn-28-8"): 0.08}
    runs = []
    for (data, backbone), gain in gains.items():
        for seed in range(2):
            for objective, more in (("one-hot", 0.0), ("kin", gain)):
                one = decided(objective, seed, np.array([0.0, 1.0, 2.0, 0.0]), data=data)
                one["final"]["decided_accuracy"] = 0.5 + more
                runs.append({**one, "backbone": backbone})
    told = written(tmp_path, *runs)
    assert line_of(told["leaderboard.md"], "| kin | 2 |", "0 / 3 / 0")[4] == "+3.25"  # of 1 and of the mean of 3 and 8


@pytest.mark.long
def test_what_is_shown_to_cost_less_in_some_settings_may_be_tried(tmp_path):
    runs = [one for one in three_sets(-0.3) if one["data"] == "cifar100"]
    runs += [one for one in three_sets(0.0) if one["data"] != "cifar100"]
    told = written(tmp_path, *runs)
    assert line_of(told["leaderboard.md"], "| label-embedding | 3 |", "/")[3] == "1 / 2 / 0"
    _, action, evidence = line_of(told["choosing.md"], "I train a model and have a tree")
    assert action == "try `label-embedding`"
    assert "shown lower in 1 of 3 comparisons and higher in 0" in evidence


@pytest.mark.long
def test_what_is_not_shown_to_cost_less_is_not_recommended(tmp_path):
    told = written(tmp_path, *three_sets(0.0))
    assert line_of(told["choosing.md"], "I train a model and have a tree")[1] == "stay with `one-hot`"


@pytest.mark.parametrize(
    ("given", "reason"), [({"tree": "built"}, "the tree was built from the data"), ({}, "uncalibrated, seeds only")]
)
def test_what_may_not_decide_is_listed_with_its_reason(tmp_path, given, reason):
    runs = three_sets(-0.15, **given)
    if not given:  # as files of earlier versions have them
        for one in runs:
            del one["outcomes"]
            one["final"] = {"accuracy": one["final"]["accuracy"], "crm_accuracy": 0.9, "crm_severity": 1.0}
    told = written(tmp_path, *runs)
    assert "No results have calibrated decisions yet." in told["leaderboard.md"]
    assert line_of(told["leaderboard.md"], "| clinc150,")[2] == reason
    assert line_of(told["choosing.md"], "I train a model and have a tree")[2] == "no calibrated results yet"


@pytest.mark.long
def test_objectives_with_different_labels_decide_nothing(tmp_path):
    runs = three_sets(-0.15)
    for one in runs:
        one["data_options"] = {"coarse_labels": 0.5}
    told = written(tmp_path, *runs)
    assert line_of(told["leaderboard.md"], "| clinc150,", "coarse labels 0.5")[2] == "objectives use different labels"
    assert line_of(told["choosing.md"], "I train a model and have a tree")[2] == "no calibrated results yet"


@pytest.mark.long
def test_a_follow_up_is_listed_and_decides_nothing(tmp_path):
    """It was planned after results on the same data had been seen, which may be why it was planned."""
    told = written(tmp_path, *three_sets(-0.15), follow_up=True)
    assert line_of(told["leaderboard.md"], "| clinc150,")[2] == "planned after results on the same data had been seen"
    assert line_of(told["choosing.md"], "I train a model and have a tree")[2] == "no calibrated results yet"
    told = written(tmp_path, *three_sets(0.0), name="planned")  # the follow-up does not change the verdict
    assert line_of(told["leaderboard.md"], "| label-embedding | 3 |", "/")[3] == "0 / 3 / 0"
    assert line_of(told["choosing.md"], "I train a model and have a tree")[1] == "stay with `one-hot`"


def test_settings_are_kept_apart(tmp_path):
    told = written(
        tmp_path,
        run("one-hot", 0.9),
        run("label-smoothing", 0.91),
        run("one-hot", 0.8, backbone="resnet-18"),
        run("label-smoothing", 0.79, backbone="resnet-18"),
    )["choosing.md"]
    assert line_of(told.partition("## By need")[2], "`label-smoothing`")[1:] == ["2", "–", "–", "–", "2"]


def test_without_results_nothing_is_claimed(tmp_path):
    told = documents(tmp_path / "nowhere")
    assert "No results yet" in told["choosing.md"]
    assert "No results yet" in told["reproduction.md"]
    assert "| 003-table2 |" in told["reproduction.md"]


@pytest.mark.parametrize("content", ["{", "[]", '{"runs": 3}', '{"runs": [{}]}'])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(InputError, match=r"bad\.json: not written by `labelkin runs export`"):
        documents(tmp_path)


@pytest.mark.long
def test_real_runs_through_the_whole_way(tmp_path):
    compared = compare(
        "digits",
        objectives=["one-hot", "label-smoothing"],
        seeds=(0, 1),
        out=tmp_path / "runs",
        epochs=1,
        backbone="mlp",
    )
    (tmp_path / "results").mkdir()
    export_runs(tmp_path / "runs", tmp_path / "results" / "digits.json")
    (tmp_path / "docs").mkdir()
    paths = write_documents(tmp_path / "results", tmp_path / "docs")
    told = {path.name: path.read_text(encoding="utf-8") for path in paths}
    row = next(row for row in compared.rows if row.label == "label-smoothing")
    assert line_of(told["results.md"], "| label-smoothing | 2 |", f"{100 * row.accuracy:.2f}")
    assert f"{100 * row.difference:+.2f} [" in told["results.md"]
    assert line_of(told["choosing.md"].partition("## By need")[0], "[`label-smoothing`]")[1] == "1"


def test_a_setting_names_the_encoder_of_its_texts(tmp_path):
    runs = [run(objective, 0.7, seed) for objective in ("one-hot", "label-smoothing") for seed in (0, 1)]
    encoded = [{**one, "data_options": {"encoder": "minilm"}} for one in runs]
    written(tmp_path, *runs, name="default")
    written(tmp_path, *encoded, name="minilm")
    assert {setting.name for setting in settings_of(read_results(tmp_path))} == {
        "cifar100, resnet-18-double, 100 epochs",
        "cifar100, resnet-18-double, 100 epochs, encoder minilm",
    }

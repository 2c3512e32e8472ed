"""Runs that translate: kept, gone on with, loaded, and asked which labels they found alike."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from labelkin import InputError
from labelkin.cli._corpus_options import CorpusOptions
from labelkin.report import check_classifies, read_comparisons
from labelkin.runs import RunFolder, RunSpec
from labelkin.runs import train_run as train
from labelkin.training import Interrupted, Settings
from labelkin.translate import load_translator, nearest_labels, translate_file
from support.commands import call, refused
from support.sentences import ENGLISH, write_corpus

FOR_SENTENCES = (
    "one-hot",
    "label-smoothing",
    "confidence-penalty",
    "label-embedding",
    "compressed-label-embedding",
    "adaptive-labels",
    "online-label-smoothing",
)
NET = "lstm-512x2:embedding=16,hidden=16,layers=1,dropout=0.1"


def spec(data: str, objective: str = "compressed-label-embedding", epochs: int = 3, **data_options) -> RunSpec:
    options = {"rank": 8, "start_after": 4} if objective.startswith("compressed") else {}
    return RunSpec(
        data=data,
        objective=objective,
        backbone=NET,
        settings=Settings(epochs=epochs, batch_size=5, lr=0.02, clip=5.0),
        data_options={"validation_fraction": 0.1, "beam": 2, **data_options},
        options=options,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    train(spec(write_corpus(folder)), folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    train(spec(write_corpus(folder), "one-hot", epochs=1), folder / "run")
    return folder / "run"


def test_a_run_keeps_what_it_was_and_how_it_did(run: Path):
    config, final = (json.loads((run / name).read_text()) for name in ("config.json", "final.json"))
    assert (config["kind"], config["resolved_backbone"]) == ("translation", NET)
    assert {"epoch", "accuracy", "bleu", "bleu_tokens", "greedy_bleu"} == set(final)
    history = RunFolder(run).history()
    assert len(history) == 3
    assert {"val_bleu", "test_bleu", "val_accuracy", "loss"} <= set(history[0])
    assert RunFolder(run).outputs()["words"].shape[0] == 2


def test_a_run_goes_on_after_an_interruption(run: Path, tmp_path: Path):
    def stop(row):
        if row["epoch"] == 2:
            raise Interrupted

    asked = spec(write_corpus(tmp_path))
    with pytest.raises(Interrupted):
        train(asked, tmp_path / "run", log=stop)
    train(asked, tmp_path / "run", resume=True)
    whole, again = RunFolder(run), RunFolder(tmp_path / "run")
    assert again.history() == whole.history()
    for name, value in whole.model_state().items():
        assert torch.equal(again.model_state()[name], value), name


def test_a_loaded_run_writes_as_it_was_measured(run: Path):
    translator = load_translator(run)
    texts = translator.translate(ENGLISH[:6])
    assert texts == translator.translate(ENGLISH[:6], beam=2)
    assert [translator.translate([text])[0] for text in ENGLISH[:6]] == texts  # alone as among others
    assert RunFolder(run).model_state()["objective.a"].equal(translator.model.objective.a)


def test_a_file_is_translated_line_by_line(run: Path, tmp_path: Path):
    (tmp_path / "in.txt").write_text("\n".join(ENGLISH[:3]), encoding="utf-8")
    found = translate_file(run, tmp_path / "in.txt", tmp_path / "out.txt", beam=1)
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "".join(f"{line}\n" for line in found)
    shown = call("translate", run, tmp_path / "in.txt", "--beam", "1")
    assert shown.stdout.splitlines() == found
    told = call("translate", run, tmp_path / "in.txt", "-o", tmp_path / "other.txt")
    assert told.stdout.strip() == f"Wrote 3 translations to {tmp_path / 'other.txt'}"


def test_a_translation_does_not_take_the_place_of_what_it_is_made_from(run: Path, tmp_path: Path):
    (tmp_path / "in.txt").write_text("\n".join(ENGLISH[:3]), encoding="utf-8")
    (tmp_path / "link.txt").symlink_to("in.txt")
    before = (tmp_path / "in.txt").read_text()
    trained = run.parent / "train.de"
    for output, what in (
        (tmp_path / "in.txt", "one of the inputs"),
        (tmp_path / "link.txt", "one of the inputs"),
        (trained, "a file that the run was trained on"),
        (run / "config.json", "a file of the run itself"),
    ):
        told = refused("translate", run, tmp_path / "in.txt", "-o", output)
        assert f"{output}: this is {what}, which would be overwritten" in told
    assert (tmp_path / "in.txt").read_text() == before
    assert "hund" in trained.read_text()


@pytest.mark.parametrize("taxonomy", [(), ("--taxonomy", "tree.yaml")])
@pytest.mark.parametrize("objective", ["hierarchical", "semantic-smoothing", "retrospection", "static-labels"])
def test_an_objective_that_is_not_for_sentences_names_those_that_are(objective: str, taxonomy: tuple, tmp_path: Path):
    told = refused("train", write_corpus(tmp_path), "--objective", objective, *taxonomy, "--out", tmp_path / "run")
    assert f"objective: '{objective}' cannot be used for translation: it" in told
    assert told.endswith(f"Use one of: {', '.join(FOR_SENTENCES)}.\n")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("objective", FOR_SENTENCES)
def test_the_others_train_on_sentences(objective: str, tmp_path: Path):
    trained = train(spec(write_corpus(tmp_path), objective, epochs=1))
    assert 0 <= trained.metrics["bleu"] <= 100


def test_a_page_is_made_of_classifiers(run: Path, plain: Path, tmp_path: Path):
    told = refused("report", run, "-o", tmp_path / "page.html")
    assert "is a translation run; reports cover classification only" in told
    assert not (tmp_path / "page.html").exists()
    with pytest.raises(InputError, match=r"a\.en:a\.de: is a translation run; reports cover"):
        check_classifies("digits", "a.en:a.de")
    check_classifies("digits", str(tmp_path))
    (tmp_path / "plan.yaml").write_text("data: multi30k:en-de\nobjectives: [one-hot]\n")
    assert "multi30k:en-de: is a translation run" in refused("report", tmp_path / "plan.yaml")


@pytest.mark.long
def test_among_classifiers_a_run_that_translates_is_left_out_and_named(run: Path, tmp_path: Path):
    shutil.copytree(run, tmp_path / "runs/translation")
    train(RunSpec(settings=Settings(epochs=1, batch_size=500)), tmp_path / "runs/digits")
    found = read_comparisons(tmp_path / "runs")
    assert [comparison.data for comparison in found.comparisons] == ["digits"]
    assert found.problems == [f"{tmp_path / 'runs/translation'}: is a translation run and is left out."]


def test_nearest_labels_have_the_largest_entries(run: Path):
    """003 Eq. 16, an entry at a time."""
    state, words = RunFolder(run).model_state(), RunFolder(run).setup["target"]["words"]
    a, b = state["objective.a"], state["objective.b"]
    (found,) = nearest_labels(run, ["hund"], top=4)
    entries = {
        words[i]: max(0.0, float(a[words.index("hund")] @ b[:, i]))
        for i in range(len(words))
        if words[i] not in ("</s>", "<unk>", "hund")
    }
    expected = sorted(entries.values(), reverse=True)[:4]
    assert found.label == "hund"
    assert found.scores == pytest.approx(expected, abs=1e-6)
    assert [entries[word] for word in found.nearest] == pytest.approx(expected, abs=1e-6)
    shown = call("inspect", run, "--label", "hund", "--label", "ball", "--top", "4")
    assert shown.stdout.splitlines()[1].split(maxsplit=1) == ["hund", ", ".join(found.nearest)]
    told = json.loads(call("inspect", run, "--label", "hund", "--top", "4", "--json").stdout)
    assert told[0]["nearest"] == found.nearest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("inspect", "RUN", "--label", "hunt"),
            "label: the run has no label 'hunt' among its .* labels. Did you mean 'hund'",
        ),
        (("inspect", "RUN", "--label", "hund", "--top", "500"), "top: expected at most"),
        (
            ("inspect", "PLAIN", "--label", "hund"),
            "expected a run with the objective label-embedding or compressed-label-embedding",
        ),
        (("translate", "RUN", "foreign.txt"), "foreign.txt: expected sentences in the source language"),
        (("translate", "RUN", "bad.txt"), "bad.txt: expected UTF-8, got byte 0xff at byte offset 2"),
        (("translate", "RUN", "none.txt"), "there is no file 'none.txt'"),
        (("translate", "RUN", "good.txt", "-o", "no/out.txt"), "there is no folder 'no'; create it first"),
        (("translate", "RUN", "good.txt", "--beam", "0"), "beam: expected a whole number of at least 1"),
    ],
)
def test_mistakes_are_said_in_a_sentence(
    run: Path, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple, message: str
):
    monkeypatch.chdir(tmp_path)
    Path("good.txt").write_text("a dog runs .\n")
    Path("foreign.txt").write_text("жжж ььь\nщщщ\n", encoding="utf-8")
    Path("bad.txt").write_bytes(b"a \xff dog\n")
    places = {"RUN": run, "PLAIN": plain}
    told = refused(*(places.get(a, a) for a in arguments))
    assert re.search(message, told), told


@pytest.mark.long
def test_the_command_line_trains_on_two_files(tmp_path: Path):
    data = write_corpus(tmp_path)
    options = ("--epochs", 1, "--batch-size", 10, "--backbone", NET, "--validation", 0.2, "--beam", 2, "--min-count", 2)
    done = call("train", data, "--objective", "one-hot", *options, "--out", tmp_path / "run", "--json")
    assert {"bleu", "bleu_tokens", "greedy_bleu"} <= set(json.loads(done.stdout))
    config = RunFolder(tmp_path / "run").config
    assert config["data_options"] == {"validation_fraction": 0.2, "beam": 2, "min_count": 2}
    again = refused("train", data, "--objective", "one-hot", *options, "--out", tmp_path / "run")
    assert "this run is finished; use it with `labelkin translate" in again
    assert "is a translation run; use `labelkin translate`" in refused(
        "predict", tmp_path / "run", tmp_path / "train.en", "-o", tmp_path / "out.csv"
    )


def test_a_run_that_classifies_is_not_asked_to_translate(tmp_path: Path):
    RunFolder.create(tmp_path / "run", {"data": "digits"}, {})
    with pytest.raises(
        InputError, match="expected a translation run, got a classification run on 'digits'; use `labelkin predict`"
    ):
        load_translator(tmp_path / "run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_cuont": 2}, "min_cuont: does not apply to translation.*Did you mean 'min_count'"),
        ({"tokens": "syllables"}, "tokens: expected one of 'words', 'space', 'characters'"),
        ({"measure": "meteor"}, "measure: expected one of 'bleu', 'rouge'"),
        ({"beam": 0}, "beam: expected a whole number"),
        ({"min_count": 99}, "no word occurs 99 times"),
        ({"max_length": 1}, "max_length: no training pair has at most 1 token"),
    ],
)
def test_wrong_data_options_leave_no_folder(tmp_path: Path, options: dict, message: str):
    with pytest.raises(InputError, match=message):
        train(spec(write_corpus(tmp_path), **options), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_summaries_are_measured_by_rouge(tmp_path: Path):
    asked = spec(write_corpus(tmp_path), "one-hot", epochs=1, tokens="characters", measure="rouge")
    trained = train(asked, tmp_path / "run")
    assert set(trained.metrics) == {"accuracy", "rouge1", "rouge2", "rougeL", "greedy_rougeL"}


def test_options_on_the_command_line_are_those_of_a_run():
    given = CorpusOptions(tokens="space", cased=True, min_count=2, beam=5, length_penalty=0.0)
    assert given.chosen() == {"tokens": "space", "lower": False, "min_count": 2, "beam": 5, "length_penalty": 0.0}
    assert CorpusOptions().chosen() == {}

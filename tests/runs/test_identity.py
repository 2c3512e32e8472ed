"""Data that changed are other data, and the same data are the same run, wherever they lie."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import labelkin
from labelkin import OBJECTIVES, InputError
from labelkin.data import _fingerprint as fingerprint
from labelkin.runs import RunSpec
from labelkin.runs._compatibility import RENAMED_OPTIONS
from labelkin.runs._identity import _id, data_changed, data_id, run_id
from labelkin.training import Settings
from support.commands import FOUND, PIXELS, call, write_images
from support.sentences import write_corpus

PLACES = {0: "round/0", 8: "round/8", 1: "straight/1"}
SOME = FOUND.target < 3


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    write_images(tmp_path / "photos", PLACES)
    return tmp_path / "photos"


def of(data: Path | str, **options: object) -> str:
    return run_id(RunSpec(data=str(data), data_options=options))


def grown(folder: Path) -> None:
    """As another program would save it: beside, then renamed."""
    (folder / "new.png").write_bytes((folder / "round/0/0.png").read_bytes() + b" ")
    (folder / "new.png").replace(folder / "round/0/0.png")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "round/0/0.png").unlink(),
        lambda folder: (folder / "straight/1").rename(folder / "straight/7"),
        lambda folder: (folder / "round/0/0.png").rename(folder / "round/8/zero.png"),
        lambda folder: (folder / "round/8/new.JPG").write_bytes(b"an image"),
        grown,
    ],
)
def test_a_folder_counts_by_what_is_in_it(change, photos: Path):
    before = of(photos)
    change(photos)
    assert of(photos) != before


def test_what_is_no_data_of_a_folder_counts_for_nothing(photos: Path, tmp_path: Path):
    before = of(photos)
    (photos / ".DS_Store").write_text("hidden")
    (photos / "round/.hidden").mkdir()
    (photos / "round/.hidden/1.png").write_bytes(b"hidden")
    (photos / "report.html").write_text("a page")
    assert of(photos) == before
    photos.rename(tmp_path / "elsewhere")
    assert of(tmp_path / "elsewhere") == before


def test_a_folder_is_looked_through_once(photos: Path, monkeypatch: pytest.MonkeyPatch):
    looks = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looks.append(path) or real(path))
    monkeypatch.setattr(fingerprint, "_is_published", lambda folder: False)
    monkeypatch.setattr(fingerprint, "part_tables", lambda folder: {})
    ids = {of(photos, seed=0) for _ in range(45)}
    assert len(ids) == 1
    assert sorted(looks) == sorted(str(p) for p in [photos, *photos.rglob("*")] if p.is_dir())


@pytest.mark.parametrize("name", ["dy.npy", "y.npy"])
def test_labels_count_by_content_named_or_beside(name: str, tmp_path: Path):
    np.save(tmp_path / "dx.npy", PIXELS[SOME])
    np.save(tmp_path / name, FOUND.target[SOME])
    options = {"labels": str(tmp_path / name)} if name == "dy.npy" else {}
    before = of(tmp_path / "dx.npy", **options)
    np.save(tmp_path / name, FOUND.target[SOME][::-1])
    assert of(tmp_path / "dx.npy", **options) != before


def test_tables_and_sentences_of_a_folder_count_by_content(tmp_path: Path):
    (tmp_path / "train.csv").write_text("a,label\n1,x\n2,y\n")
    write_corpus(tmp_path)
    table, sentences = of(tmp_path), of(f"{tmp_path}:en-de")
    (tmp_path / "runs/one").mkdir(parents=True)
    (tmp_path / "runs/one/config.json").write_text("{}")
    assert (of(tmp_path), of(f"{tmp_path}:en-de")) == (table, sentences)
    (tmp_path / "train.csv").write_text("a,label\n1,x\n3,y\n")
    (tmp_path / "train.de").write_text((tmp_path / "train.de").read_text().replace("hund", "hand"))
    assert of(tmp_path) != table
    assert of(f"{tmp_path}:en-de") != sentences


def test_files_of_options_count_by_content(tmp_path: Path):
    (tmp_path / "v.csv").write_text("class,x\n0,1\n")
    asked = [
        RunSpec(objective="static-labels", options={"vectors": str(tmp_path / "v.csv")}),
        RunSpec(objective="semantic-smoothing", options={"relation": f"embedding:{tmp_path / 'v.csv'}"}),
    ]
    before = [run_id(spec) for spec in asked]
    (tmp_path / "v.csv").write_text("class,x\n0,2\n")
    assert all(run_id(spec) != old for spec, old in zip(asked, before, strict=True))


BEFORE = Settings(calibration=0.0)  # of runs from before they were calibrated


@pytest.mark.parametrize(
    ("spec", "known"),
    [
        (RunSpec(settings=BEFORE), "8cfedb8c3919"),
        (RunSpec(data="cifar10", settings=BEFORE), "88309e0767b2"),
        (RunSpec(data="a.csv", data_options={"label": "y", "data_dir": "/x"}, settings=BEFORE), "98a197fc5ed2"),
        (RunSpec(data="a.en:a.de", settings=BEFORE), "6f4a96ff7ae4"),
        (RunSpec(data="multi30k:en-de", settings=BEFORE), "3c9466be506d"),
        (RunSpec(data="20-newsgroups", data_options={"encoder": "minilm"}, settings=BEFORE), "c1fd32cc70b3"),
        (RunSpec(objective="static-labels", options={"vectors": "minilm"}, settings=BEFORE), "14a01ebdb94e"),
    ],
)
def test_ids_that_were_given_stay_and_know_no_neighbour(spec, known, tmp_path, monkeypatch):
    """The ids that results were published with; folders that are called like a set are not it."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.csv": "a,b\n", "a.en": "x\n", "a.de": "y\n"}.items():
        Path(name).write_text(text)
    for name in ("digits", "cifar10", "multi30k", "minilm", "y", "20-newsgroups"):
        Path(name).mkdir()
        Path(name, "1.png").write_bytes(b"")
    assert run_id(spec) == known


@pytest.mark.long
def test_a_comparison_is_made_anew_where_its_data_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write_images(Path("photos"), {0: "0", 1: "1", 2: "2"}, count=20)
    asked = ("compare", "photos", "--objectives", "one-hot", "--epochs", "1", "--batch-size", "16", "--json")
    first = json.loads(call(*asked).stdout)
    assert json.loads(call(*asked).stdout)["rows"] == first["rows"]
    assert len(list(Path("runs").iterdir())) == 1
    for file in Path("photos/2").iterdir():
        file.unlink()
    Path("photos/2").rmdir()
    call(*asked)
    assert len(list(Path("runs").iterdir())) == 2


def test_what_a_run_recorded_of_its_data(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a,label\n1,x\n2,y\n")
    (tmp_path / "v.csv").write_text("class,x\nx,1\ny,2\n")
    spec = RunSpec(
        data=str(tmp_path / "t.csv"), objective="static-labels", options={"vectors": str(tmp_path / "v.csv")}
    )
    recorded = {**spec.as_dict(), "id": run_id(spec), "revision": 1, "data_id": data_id(spec)}
    (tmp_path / "v.csv").unlink()
    assert not data_changed(recorded)
    (tmp_path / "t.csv").write_text("a,label\n1,x\n2,z\n")
    assert data_changed(recorded)
    (tmp_path / "t.csv").unlink()
    assert not data_changed(recorded)  # gone, which reading it says


def test_a_published_set_in_a_folder_counts_by_all_its_files_but_not_by_runs(tmp_path: Path):
    (tmp_path / "data_batch_1").write_bytes(b"1234")
    before = of(tmp_path)
    (tmp_path / "runs/one").mkdir(parents=True)
    for name in ("config.json", "metrics.csv"):
        (tmp_path / "runs/one" / name).write_text("{}")
    assert of(tmp_path) == before
    (tmp_path / "test_batch").write_bytes(b"1234")
    assert of(tmp_path) != before


def test_an_encoders_folder_counts_by_what_is_in_it(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    before = of("imdb", encoder=str(tmp_path))
    (tmp_path / "weights.bin").write_bytes(b"1")
    assert of("imdb", encoder=str(tmp_path)) != before


# Computed before `weights` was renamed to `preset`.
FORMER = {
    ("label-embedding", "released"): "7e10576786b4",
    ("label-embedding", "paper"): "e0f498e370d2",
    ("compressed-label-embedding", "released"): "6d8aa0df4120",
}


@pytest.mark.parametrize(("objective", "preset"), FORMER)
@pytest.mark.parametrize("name", ["weights", "preset"])
def test_a_renamed_option_keeps_the_id_and_is_read_under_both_names(objective: str, preset: str, name: str):
    spec = RunSpec(objective=objective, options={name: preset}, settings=BEFORE)
    assert dict(spec.options) == {"preset": preset}
    assert run_id(spec) == FORMER[objective, preset]
    assert RunSpec.from_dict(spec.as_dict()) == spec


def test_both_names_of_an_option_are_refused():
    with pytest.raises(InputError, match="weights: this is the former name of 'preset'"):
        RunSpec(objective="label-embedding", options={"weights": "paper", "preset": "paper"})


def test_the_former_names_are_those_of_the_objectives():
    known = {name: dict(getattr(kind, "renamed_options", {})) for name, kind in OBJECTIVES.items()}
    assert {(name, old): new for name, names in known.items() for old, new in names.items()} == RENAMED_OPTIONS


def test_adaptive_labels_of_before_presets_keep_their_ids_and_their_rule():
    """Revision 2 without options was what is "memory" now; with options it means what it meant."""

    def at(**options: object) -> RunSpec:
        return RunSpec(objective="adaptive-labels", options=options, settings=BEFORE)

    former = _id(at().as_dict(), 2)
    assert run_id(at(preset="memory")) == former != run_id(at())
    read = RunSpec.from_dict({**at().as_dict(), "settings": {}, "revision": 2, "id": former})
    assert read.options == {"preset": "memory"}
    assert run_id(read) == former
    plain = at(memory=0.0, leave_one_out=False, scale=1.0)
    assert run_id(plain) == _id(plain.as_dict(), 2)
    read = RunSpec.from_dict({**plain.as_dict(), "settings": {}, "revision": 2})
    assert read.options == plain.options
    assert RunSpec.from_dict({**at().as_dict(), "settings": {}, "revision": 3}).options == {}
    first = RunSpec.from_dict({**at(momentum=0.5).as_dict(), "settings": {}, "revision": 1})
    assert first.options == {"preset": "paper", "eval_labels": "epoch", "momentum": 0.5}


def test_tree_terms_that_are_not_set_are_no_part_of_an_id():
    plain, added = RunSpec(objective="one-hot"), RunSpec(objective="one-hot", options={"ancestors": 0.1})
    assert plain.options == {}
    assert run_id(plain) != run_id(added)


def test_values_that_a_run_cannot_record_are_refused_with_a_remedy():
    tree = labelkin.Taxonomy.from_nested({"low": ["zero", "one"], "high": ["two"]})
    saved = r"taxonomy: expected a name, or nothing for the default, got Taxonomy\(.*tree.json"
    for start in (labelkin.train, labelkin.compare):
        with pytest.raises(InputError, match=saved):
            start("digits", taxonomy=tree)
        with pytest.raises(InputError, match=r"data: expected a name, got a value of type ndarray\..*KinClassifier"):
            start(np.zeros((99, 9)))


def test_a_tree_is_given_as_a_path(tmp_path: Path):
    names = labelkin.data.load("digits").classes
    labelkin.Taxonomy.from_nested({"low": names[:5], "high": names[5:]}).save(tmp_path / "tree.json")
    given = {"taxonomy": tmp_path / "tree.json", "epochs": 1, "batch_size": 256}
    run = labelkin.train("digits", out=tmp_path / "run", **given)
    assert run.spec.taxonomy == str(tmp_path / "tree.json")
    found = labelkin.compare("digits", objectives=["one-hot"], out=tmp_path / "store", **given)
    assert found.tree.startswith(f"'{tmp_path / 'tree.json'}'")

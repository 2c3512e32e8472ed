"""What follows from the data is made once, and only where an objective asks for it."""

from pathlib import Path

import pytest
import torch

from labelkin import OBJECTIVES, Context, InputError, load_run, relations
from labelkin.runs import DataWorkspace, RunFolder, RunSpec, evaluate
from labelkin.runs import train_run as train
from labelkin.training import Settings

QUICK = Settings(epochs=1, batch_size=64)


@pytest.fixture
def analyses(monkeypatch) -> list[int]:
    """A line for every discriminant analysis."""
    made: list[int] = []
    real = relations.lda

    def counted(inputs, *given, **named):
        made.append(len(inputs))
        return real(inputs, *given, **named)

    monkeypatch.setattr(relations, "lda", counted)
    return made


def spec(objective: str, **more) -> RunSpec:
    return RunSpec(objective=objective, settings=QUICK, data_options={"subset": 0.2}, **more)


@pytest.mark.long
def test_an_objective_that_needs_no_discriminant_analysis_makes_none(analyses, tmp_path: Path):
    train(spec("one-hot"), tmp_path / "run")
    assert not analyses
    assert RunFolder(tmp_path / "run").setup["context"]["similar"] is None


@pytest.mark.long
def test_one_that_needs_it_makes_it_once_and_keeps_it(analyses, tmp_path: Path):
    bench = DataWorkspace(spec("one-hot"))
    for number, options in enumerate([{}, {"relation": "lda"}]):
        train(spec("mixed-cross-entropy", options=options), tmp_path / f"{number}", workspace=bench)
    assert len(analyses) == 1
    kept = RunFolder(tmp_path / "0").setup["context"]["similar"]
    assert torch.equal(kept, bench.context.similarity())
    assert load_run(tmp_path / "0").model.objective.num_classes == 10  # built anew without the data


@pytest.mark.long
def test_what_is_kept_does_not_depend_on_what_ran_before(analyses, tmp_path: Path):
    bench = DataWorkspace(spec("one-hot"))
    for name in ("one-hot", "mixed-cross-entropy", "one-hot"):
        train(spec(name), tmp_path / f"{len(analyses)}-{name}", workspace=bench)
    first, last = (tmp_path / f"{n}-one-hot" / "setup.safetensors" for n in (0, 1))
    assert first.read_bytes() == last.read_bytes()


def test_copies_for_a_net_share_what_was_made(analyses):
    draw = torch.Generator().manual_seed(0)
    targets = torch.arange(60) % 3
    inputs = torch.randn(60, 4, generator=draw) + targets[:, None]
    context = Context(classes=("a", "b", "c"), inputs=inputs, targets=targets)
    for features in (4, 5):
        OBJECTIVES["mixed-cross-entropy"].build(context.with_features(features))
    assert len(analyses) == 1
    assert context.features is None
    assert context.with_features(5).tree() is context.tree()


def test_a_tree_from_the_data_counts_the_weights():
    """The samples of "b" lie near "a" and near "c": their weights say which of the two is its sibling."""
    inputs, targets = torch.tensor([[10.0], [11.0], [21.0], [22.0]]), torch.tensor([0, 1, 1, 2])
    for weights, siblings in (([1, 9, 1, 1], (0, 1)), ([1, 1, 9, 1], (1, 2))):
        context = Context(("a", "b", "c"), inputs=inputs, targets=targets, weights=torch.tensor(weights).float())
        first, second = siblings
        assert context.tree().distance("height", [first], [second]).item() == 1


def test_without_data_or_tree_there_is_no_tree():
    with pytest.raises(InputError, match=r"a tree of the classes needs a taxonomy or training data"):
        Context(classes=("a", "b")).tree()


@pytest.mark.long
def test_a_run_may_be_told_where_data_lie_by_a_path(tmp_path: Path):
    asked = RunSpec(data="digits", settings=QUICK, data_options={"data_dir": tmp_path, "subset": 0.2})
    assert asked.data_options["data_dir"] == str(tmp_path)
    train(spec("one-hot"), tmp_path / "run")
    assert evaluate(tmp_path / "run", data_options={"data_dir": tmp_path}).samples == 359

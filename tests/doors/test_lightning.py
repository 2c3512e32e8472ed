"""The Lightning door: the weights, state and metrics of labelkin's own loop, on one process and on two."""

import copy
import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from labelkin import (
    AdaptiveLabels,
    ConditionalSoftmax,
    InputError,
    LabelEmbedding,
    OneHot,
    StaticLabels,
    Taxonomy,
    metrics,
)
from labelkin.data import ArraySplit, Batches
from labelkin.doors._epochs import check_trainable, end_epoch
from labelkin.doors.lightning._batch import given, metrics_for, update_metrics
from labelkin.objectives import Objective
from support import lightning_runs
from support.lightning_runs import OBJECTIVES, by_lightning, by_own_loop
from support.requires import skip_unless

TREE = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})


def need_lightning() -> None:
    found = any(importlib.util.find_spec(name) for name in ("lightning", "pytorch_lightning"))
    skip_unless(found, "lightning", "lightning")


# Without Lightning: the parts that its hooks call


def test_the_common_forms_of_a_batch():
    x, y, places = torch.randn(3, 2), torch.tensor([0, 1, 2]), torch.tensor([5, 6, 7])
    assert given((x, y)).others == {}
    assert given([x, y, places]).others["index"] is places
    batch = {"inputs": x, "target": y, "weight": torch.tensor([1.0, 0.0, 2.0])}
    assert given(batch).others == {"weight": batch["weight"]}
    assert given(batch).counted(-100).tolist() == [True, False, True]
    for odd in (x, (x,), (x, y, x, y), {"inputs": x}, {"inputs": x, "target": y, "mask": x}):
        with pytest.raises(InputError, match=r"batch: expected \(inputs, target\)"):
            given(odd)


def test_a_minibatch_has_weights_only_where_they_matter():
    split = ArraySplit(torch.zeros(5, 2), torch.tensor([0, 1, 0, 1, 1]))
    full, padded = (list(Batches(split, batch_size=4, rank=1, world=2).epoch(0)) for _ in range(2))
    assert set(given(full[0]).others) == {"index"}
    assert set(given(padded[1]).others) == {"index", "weight"}


@pytest.mark.parametrize(
    "objective",
    [OneHot(TREE.classes), StaticLabels(TREE.classes, vectors=torch.eye(3))],
    ids=lambda o: type(o).__name__,
)
def test_metrics_are_those_of_the_functions_without_padding(objective: Objective):
    outputs = torch.randn(20, objective.width, generator=torch.Generator().manual_seed(0))
    target, weight = torch.arange(20) % 3, (torch.arange(20) % 4 > 0).float()
    found = metrics_for(objective, TREE)
    for rows in torch.arange(20).split(7):
        part = {"inputs": outputs[rows], "target": target[rows], "weight": weight[rows]}
        update_metrics(found, objective, outputs[rows], given(part))
    kept = weight > 0
    scores, target = objective.scores(outputs)[kept], target[kept]
    wanted = {
        "accuracy": metrics.accuracy(scores.argmax(-1), target).mean,
        "severity": metrics.mistake_severity(scores.argmax(-1), target, TREE).mean,
        "cost": metrics.average_distance(scores, target, TREE).mean,
        "hierarchical_f1": metrics.hierarchical_f1(scores.argmax(-1), target, TREE).mean,
    }
    if objective.has_probabilities:
        probs = objective.probs(outputs)[kept]
        wanted["calibration_error"] = metrics.expected_calibration_error(probs, target).mean
    assert {name: float(metric.compute()) for name, metric in found.items()} == pytest.approx(wanted)
    assert set(metrics_for(OneHot(3), None)) == {"accuracy", "calibration_error"}


def test_metrics_are_in_the_order_of_the_objectives_classes():
    classes = ("car", "cat", "dog")
    target = torch.tensor([2, 2])
    for objective in (OneHot(classes), ConditionalSoftmax(TREE, classes=classes)):
        outputs = torch.eye(objective.width)[[1, 0]]
        found = metrics_for(objective, TREE)
        update_metrics(found, objective, outputs, given((outputs, target)))
        scores, tree = objective.scores(outputs), TREE.reorder(classes)
        assert float(found["severity"].compute()) == metrics.mistake_severity(scores.argmax(-1), target, tree).mean
        assert float(found["cost"].compute()) == metrics.average_distance(scores, target, tree).mean
        wanted = metrics.hierarchical_f1(scores.argmax(-1), target, tree).mean
        assert float(found["hierarchical_f1"].compute()) == wanted
    assert metrics_for(OneHot(3), TREE)["cost"].taxonomy == TREE
    with pytest.raises(InputError, match="the taxonomy has no class 'cow'"):
        metrics_for(OneHot(["cow", "cat", "dog"]), TREE)


def test_samples_without_a_class_are_in_no_metric():
    objective = OneHot(TREE.classes, ignore_index=-7)
    outputs = torch.eye(3)[[0, 1, 2, 1, 0]]
    target, node = torch.tensor([0, 1, -7, 0, 2]), torch.tensor([-1, -1, -1, 1, -1])
    found = metrics_for(objective, TREE)
    update_metrics(found, objective, outputs, given({"inputs": outputs, "target": target, "node": node}))
    assert float(found["accuracy"].compute()) == pytest.approx(2 / 3)  # the third has no class, and the fourth a node
    update_metrics(found, objective, outputs[:2], given((outputs[:2], torch.full((2,), -7))))
    assert float(found["accuracy"].compute()) == pytest.approx(2 / 3)


def test_the_end_of_an_epoch_refreshes_in_evaluation_mode_and_then_exchanges():
    calls: list[Any] = []
    net = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5).eval())

    class Listening(AdaptiveLabels):
        def refresh(self, batches: Any) -> None:
            calls.append(("refresh", [net[0].training, torch.is_grad_enabled()], list(batches)))

        def synchronize(self) -> None:
            calls.append("synchronize")

    def outputs() -> list[tuple[Tensor, Tensor]]:
        return [(torch.zeros(1, 3), torch.tensor([0]))]

    end_epoch(net, Listening(3, preset="memory"), outputs)
    assert calls[0][:2] == ("refresh", [False, False])
    assert len(calls[0][2]) == 1
    assert calls[1:] == ["synchronize"]
    assert (net[0].training, net[1].training) == (True, False)
    end_epoch(net, OneHot(3), lambda: pytest.fail("one-hot needs no pass over the training set"))


def test_what_cannot_be_trained_is_refused():
    check_trainable(OneHot(3), 4)
    with pytest.raises(InputError, match="expected 1 batch per step for LabelEmbedding"):
        check_trainable(LabelEmbedding(3), 2)
    with pytest.raises(InputError, match="training expects 'mean', got 'sum'"):
        check_trainable(OneHot(3, reduction="sum"), 1)


# With Lightning


@pytest.mark.long
@pytest.mark.parametrize("name", OBJECTIVES)
def test_one_process_trains_as_labelkins_own_loop(name: str):
    need_lightning()
    ours, figures, _ = by_lightning(name, 1)
    wanted, history, _ = by_own_loop(name, 1)
    torch.testing.assert_close(ours.state_dict(), wanted.state_dict(), rtol=1e-9, atol=1e-9)
    assert figures["val_accuracy"] == pytest.approx(history["test_accuracy"], abs=1e-9)


def test_weights_and_inner_nodes_train_as_a_plain_loop():
    need_lightning()
    from lightning.pytorch import Trainer

    from labelkin.doors.lightning import KinModule

    draw = torch.Generator().manual_seed(0)
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "ship"]})
    batches = [
        {
            "inputs": torch.randn(6, 5, generator=draw),
            "target": torch.randint(4, (6,), generator=draw),
            "weight": torch.rand(6, generator=draw),
            "node": torch.tensor([-1, -1, -1, -1, tree.node("animal"), -1]),
        }
        for _ in range(3)
    ]
    backbone, head = nn.Linear(5, 8), ConditionalSoftmax(tree, features=8)
    plain = copy.deepcopy(nn.ModuleList([backbone, head]))
    module = KinModule(backbone, head, optimizer=partial(torch.optim.SGD, lr=0.5))
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    Trainer(max_epochs=2, accelerator="cpu", **quiet).fit(module, DataLoader(batches, batch_size=None))
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.5)
    for batch in batches * 2:
        optimizer.zero_grad()
        plain[1](plain[0](batch["inputs"]), batch["target"], weight=batch["weight"], node=batch["node"]).backward()
        optimizer.step()
    torch.testing.assert_close(nn.ModuleList([backbone, head]).state_dict(), plain.state_dict())


@pytest.mark.long
def test_a_saved_checkpoint_holds_what_the_objective_learned(tmp_path: Path):
    need_lightning()
    from lightning.pytorch import Trainer
    from torch.utils.data import DataLoader, TensorDataset

    from labelkin.doors.lightning import KinModule

    samples = TensorDataset(torch.randn(12, 4), torch.arange(12) % 3)
    module = KinModule(nn.Linear(4, 5), AdaptiveLabels(3, features=5, preset="memory"), taxonomy=TREE)
    trainer = Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, default_root_dir=tmp_path
    )
    trainer.fit(module, DataLoader(samples, batch_size=4), DataLoader(samples, batch_size=4))
    assert {"train_loss", "val_loss", "val_accuracy", "val_cost"} <= set(trainer.logged_metrics)
    trainer.save_checkpoint(tmp_path / "model.ckpt")
    loaded = KinModule.load_from_checkpoint(
        tmp_path / "model.ckpt",
        backbone=nn.Linear(4, 5),
        objective=AdaptiveLabels(3, features=5, preset="memory"),
        taxonomy=TREE,
    )
    torch.testing.assert_close(loaded.state_dict(), module.state_dict())
    assert torch.cat(trainer.predict(loaded, DataLoader(samples, batch_size=4))).shape == (12, 3)


def test_the_loss_of_an_epoch_is_that_of_all_its_samples():
    need_lightning()
    from lightning.pytorch import Trainer

    from labelkin.doors.lightning import KinModule

    draw = torch.Generator().manual_seed(0)
    outputs, target = torch.randn(12, 3, generator=draw), torch.arange(12) % 3
    weight, node = torch.rand(12, generator=draw), torch.full((12,), -1)
    weight[8:], node[5] = 0, TREE.node("animal")  # the last batch is padding
    ignored = torch.where(torch.arange(12) % 12 < 5, -100, target)  # all of the first batch, and one of the second
    objective = ConditionalSoftmax(TREE, features=3)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    for parts in ({"target": target}, {"target": ignored}, {"target": ignored, "weight": weight, "node": node}):
        batches = [
            {"inputs": outputs[rows], **{name: part[rows] for name, part in parts.items()}}
            for rows in torch.arange(12).split(4)
        ]
        loader = DataLoader(batches, batch_size=None)
        found = Trainer(accelerator="cpu", **quiet).test(KinModule(nn.Identity(), objective), loader, verbose=False)
        assert found[0]["test_loss"] == pytest.approx(float(objective.eval()(outputs, **parts)))
    assert given((outputs, outputs.softmax(-1))).size(-100) == 12


@pytest.mark.filterwarnings("ignore")
def test_several_loaders_have_metrics_of_their_own():
    """Lightning gives their place to each step; a module that does not take it was stopped."""
    need_lightning()
    from lightning.pytorch import Trainer

    from labelkin.doors.lightning import KinModule

    draw = torch.Generator().manual_seed(0)
    sets = [(torch.randn(n, 4, generator=draw), torch.randint(3, (n,), generator=draw)) for n in (30, 50, 7)]
    loaders = [DataLoader(torch.utils.data.TensorDataset(*samples), batch_size=8) for samples in sets]
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    module = KinModule(nn.Linear(4, 5), OneHot(TREE.classes, features=5), taxonomy=TREE)
    trainer = Trainer(max_epochs=2, enable_model_summary=False, **quiet)
    trainer.fit(module, loaders[0], loaders[:2])
    logged = dict(trainer.logged_metrics)
    for part, run in (("val", trainer.validate), ("test", trainer.test)):
        together = run(module, loaders, verbose=False)
        for place, loader in enumerate(loaders):
            (alone,) = run(module, loader, verbose=False)
            assert {f"{part}_loss", f"{part}_accuracy", f"{part}_cost", f"{part}_severity"} <= set(alone)
            assert together[place] == {f"{name}/dataloader_idx_{place}": value for name, value in alone.items()}
            if part == "val" and place < 2:
                assert logged[f"val_cost/dataloader_idx_{place}"] == pytest.approx(alone["val_cost"])
    predicted = trainer.predict(module, loaders)
    assert [sum(len(rows) for rows in part) for part in predicted] == [30, 50, 7]


def test_a_trainer_without_a_number_of_epochs_is_refused():
    need_lightning()
    from lightning.pytorch import Trainer

    from labelkin.doors.lightning import KinModule

    module = KinModule(nn.Linear(4, 5), OneHot(3, features=5))
    trainer = Trainer(max_epochs=-1, max_steps=2, accelerator="cpu", logger=False, enable_checkpointing=False)
    with pytest.raises(InputError, match="max_epochs: expected the number of epochs"):
        trainer.fit(module, [(torch.randn(4, 4), torch.tensor([0, 1, 2, 0]))])


def on_two_processes(loop: str, names: Sequence[str], folder: Path, *left_out: str) -> dict[str, Any] | None:
    """What process 0 has at the end of each objective; None if a process failed."""
    command = [sys.executable, lightning_runs.__file__, loop, ",".join(names), "2", str(folder), *left_out]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    if ended.returncode:
        assert left_out, ended.stderr
        return None
    return {name: torch.load(folder / f"{loop}.{name}.0", weights_only=True) for name in names}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every objective trained by labelkin's own loop on two processes."""
    need_lightning()
    found = on_two_processes("own", OBJECTIVES, tmp_path_factory.mktemp("own"))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def with_lightning(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same by Lightning."""
    need_lightning()
    found = on_two_processes("lightning", OBJECTIVES, tmp_path_factory.mktemp("lightning"))
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTIVES)
def test_two_processes_train_as_labelkins_own_loop(name: str, own: dict[str, Any], with_lightning: dict[str, Any]):
    ours, wanted = with_lightning[name], own[name]
    torch.testing.assert_close(ours["state"], wanted["state"], rtol=1e-9, atol=1e-9)
    assert ours["metrics"]["val_accuracy"] == pytest.approx(wanted["metrics"]["test_accuracy"], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hook"), [("retrospection", "on_train_epoch_start"), ("adaptive-labels", "_end_epoch")], ids=str
)
def test_without_a_hook_two_processes_train_differently(name: str, hook: str, own: dict[str, Any], tmp_path: Path):
    broken = on_two_processes("lightning", [name], tmp_path, hook)
    if broken is not None:
        with pytest.raises(AssertionError):
            torch.testing.assert_close(broken[name]["state"], own[name]["state"], rtol=1e-9, atol=1e-9)

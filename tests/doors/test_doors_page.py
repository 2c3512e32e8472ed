"""The examples of docs/doors.md, run: against a plain loop where they train, with the library where it is installed."""

import copy
import re
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from labelkin import Model, OneHot, Taxonomy, data, models
from support.requires import skip_unless

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "doors.md").read_text(encoding="utf-8")
TREE = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "ship"]})


def blocks(heading: str) -> list[str]:
    """The Python blocks of a section."""
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)


def loader() -> DataLoader[Any]:
    draw = torch.Generator().manual_seed(0)
    target = torch.arange(32) % 4
    return DataLoader(TensorDataset(torch.randn(32, 6, generator=draw) + target[:, None], target), batch_size=8)


def backbone() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh())


def test_every_python_block_is_run_by_a_test():
    ran = [
        "scikit-learn",
        "Hugging Face transformers",
        "PyTorch Lightning",
        "torchmetrics",
        "MLflow",
        "Weights & Biases",
    ]
    counted = sum(len(blocks(heading)) for heading in [*ran, "timm, torchvision and loops of your own"])
    assert counted == PAGE.count("```python") == 12


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


@pytest.mark.long
def test_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import joblib

    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    first, second = blocks("scikit-learn")
    exec(first, names)
    assert 0 > names["after"] > names["before"]
    exec(second, names)
    assert names["search"].best_score_ >= names["after"]
    loaded = joblib.load("model.joblib")
    assert (loaded.predict(names["X"]) == names["search"].predict(names["X"])).all()
    assert names["network"].score(names["X"], names["y"]) > 0.9


def test_the_loop_with_the_loss_swapped_is_the_plain_loop():
    *_, code = blocks("timm, torchvision and loops of your own")
    assert code.count("Hierarchical(taxonomy, features=features)") == 1
    plain = nn.Sequential(backbone(), nn.Linear(5, 4))
    head = OneHot(4, features=5)
    head.head.load_state_dict(plain[1].state_dict())
    names = {"backbone": copy.deepcopy(plain[0]), "given": head, "loader": loader(), "epochs": 3}
    exec(code.replace("Hierarchical(taxonomy, features=features)", "given"), names)
    optimizer, criterion = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9), nn.CrossEntropyLoss()
    for _ in range(3):
        for images, target in loader():
            optimizer.zero_grad()
            criterion(plain(images), target).backward()
            optimizer.step()
    torch.testing.assert_close(dict(names["backbone"].named_parameters()), dict(plain[0].named_parameters()))
    torch.testing.assert_close(head.head.weight, plain[1].weight)
    assert torch.equal(names["predicted"], plain(images).argmax(-1))


@pytest.mark.long
def test_the_loop_as_it_stands():
    *_, code = blocks("timm, torchvision and loops of your own")
    names = {"backbone": backbone(), "features": 5, "taxonomy": TREE, "loader": loader(), "epochs": 20}
    exec(code, names)
    images, target = next(iter(DataLoader(loader().dataset, batch_size=32)))
    predicted = names["head"].predict(names["head"](names["backbone"](images)))
    assert (predicted == target).float().mean() > 0.5


class Classifier(nn.Module):
    """A network in the place of timm's and torchvision's: features, and a layer `fc` unless timm is asked for none."""

    def __init__(self, *, num_classes: int = 1000) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.num_features = nn.Sequential(nn.Linear(6, 5), nn.Tanh()), 5
        self.fc: nn.Module = nn.Linear(5, num_classes) if num_classes else nn.Identity()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.fc(self.body(inputs))


def stand_in(library: str) -> ModuleType:
    """The one function of a library that its example calls, with the arguments that it takes there."""
    module: Any = ModuleType(library)
    if library == "timm":
        module.create_model = lambda name, pretrained, num_classes: Classifier(num_classes=num_classes)
    else:
        module.models = ModuleType("torchvision.models")
        module.models.resnet18 = Classifier
    return module


@pytest.mark.parametrize(("place", "library"), [(0, "timm"), (1, "torchvision")])
def test_an_example_and_the_loop_train_as_the_plain_loop(place: int, library: str, monkeypatch: pytest.MonkeyPatch):
    """The example of a library with a stand-in for it, then the loop: the weights of cross entropy on the whole network."""
    *examples, loop = blocks("timm, torchvision and loops of your own")
    monkeypatch.setitem(sys.modules, library, stand_in(library))
    names: dict[str, Any] = {"loader": loader(), "epochs": 3}
    exec(examples[place], names)
    plain = Classifier(num_classes=4)
    head = OneHot(4, features=names["features"])
    head.head.load_state_dict(plain.fc.state_dict())
    exec(loop.replace("Hierarchical(taxonomy, features=features)", "given"), names | {"given": head})
    optimizer, criterion = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9), nn.CrossEntropyLoss()
    for _ in range(3):
        for images, target in loader():
            optimizer.zero_grad()
            criterion(plain(images), target).backward()
            optimizer.step()
    torch.testing.assert_close(names["backbone"].body.state_dict(), plain.body.state_dict())
    torch.testing.assert_close(head.head.state_dict(), plain.fc.state_dict())


@pytest.mark.parametrize(("place", "library"), [(0, "timm"), (1, "torchvision")])
def test_backbones_of_other_libraries(place: int, library: str):
    pytest.importorskip(library)
    names: dict[str, Any] = {}
    exec(blocks("timm, torchvision and loops of your own")[place], names)
    assert names["backbone"].eval()(torch.zeros(1, 3, 64, 64)).shape == (1, names["features"])


@pytest.mark.long
def test_lightning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    skip_unless(find_spec("lightning") is not None, "lightning", "lightning")
    monkeypatch.chdir(tmp_path)
    train, load = blocks("PyTorch Lightning")
    names: dict[str, Any] = {"backbone": backbone(), "features": 5, "taxonomy": TREE, "loader": loader()}
    exec(train, names)
    assert {"train_loss", "val_loss", "val_accuracy", "val_severity", "val_cost"} <= set(names["found"])
    trained = names["module"].eval()
    with torch.no_grad():
        expected = torch.cat([trained.objective.probs(trained(inputs)) for inputs, _ in loader()])
    names["backbone"] = nn.Sequential(nn.Linear(6, 5), nn.Tanh())  # other weights, which the checkpoint replaces
    exec(load, names)
    torch.testing.assert_close(names["probs"], expected)


def test_torchmetrics():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    skip_unless(find_spec("torchmetrics") is not None, "torchmetrics", "torchmetrics")
    (code,) = blocks("torchmetrics")
    by_epoch = [torch.tensor([0, 2, 2, 0]), torch.tensor([0, 0, 2, 3])]
    names = {"taxonomy": TREE, "predicted_by_epoch": by_epoch, "target": torch.arange(4)}
    exec(code, names)
    assert [float(values["accuracy"]) for values in names["epochs"]] == [0.5, 0.75]
    assert names["axes"].get_lines()[0].get_ydata().tolist() == [
        2.0,
        1.0,
    ]  # cat for ship and dog for car, then cat for dog


@pytest.mark.long
def test_transformers(tmp_path: Path):
    skip_unless(find_spec("accelerate") is not None, "accelerate", "transformers")
    from transformers import BertModel

    from support.tiny_bert import TREE as ANIMALS
    from support.tiny_bert import WORDS, config, tokenizer

    BertModel(config()).save_pretrained(tmp_path / "bert")
    tokenizer().save_pretrained(tmp_path / "bert")
    names = {
        "name": str(tmp_path / "bert"),
        "folder": str(tmp_path / "trained"),
        "taxonomy": ANIMALS,
        "texts": list(WORDS.values()),
        "labels": list(range(4)),
        "new_texts": ["the cat sleeps", "a ship at sea", "the car"],
    }
    train, decide = blocks("Hugging Face transformers")
    exec(train, names)
    assert {"eval_accuracy", "eval_severity", "eval_cost"} <= set(names["found"])
    torch.testing.assert_close(names["loaded"].model.state_dict(), names["trainer"].model.model.state_dict())
    exec(decide, names)
    expected = names["probs"].double() @ torch.from_numpy(ANIMALS.distance()).double()
    assert names["decisions"].shape == (3,)
    assert torch.equal(names["decisions"], expected.argmin(-1))


def own_training() -> dict[str, Any]:
    dataset = data.load("digits", subset=0.1)
    net = models.build("mlp", dataset.shape)
    return {"dataset": dataset, "model": Model(net, OneHot(dataset.classes, features=net.features))}


@pytest.mark.parametrize(("heading", "library"), [("MLflow", "mlflow"), ("Weights & Biases", "wandb")])
def test_a_tracker_gets_every_epoch(heading: str, library: str, monkeypatch: pytest.MonkeyPatch):
    """With a recorder in the library's place, which has the three functions that the example calls."""
    rows: list[tuple[dict[str, float], int]] = []
    recorder: Any = ModuleType(library)
    recorder.start_run = recorder.init = lambda **options: nullcontext()
    recorder.log_metrics = recorder.log = lambda values, step: rows.append((values, step))
    monkeypatch.setitem(sys.modules, library, recorder)
    names, (code,) = own_training(), blocks(heading)
    exec(code, names)
    assert [step for _, step in rows] == [1, 2]
    assert [values["test_accuracy"] for values, _ in rows] == [row["test_accuracy"] for row in names["trained"].history]


def test_mlflow_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    names, (code,) = own_training(), blocks("MLflow")
    exec(code, names)
    assert mlflow.last_active_run().data.metrics["test_accuracy"] == names["trained"].history[-1]["test_accuracy"]


@pytest.mark.slow
def test_wandb_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    (code,) = blocks("Weights & Biases")
    exec(code, own_training())
    assert list(tmp_path.rglob("run-*.wandb"))

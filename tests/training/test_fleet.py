"""A fleet trains each member as it would be trained alone: the same samples, losses, weights, results and saved states."""

from collections.abc import Iterator
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from labelkin import Model, OneHot, data, models
from labelkin.training import (
    Classify,
    Diverged,
    Interrupted,
    Settings,
    State,
    Trainer,
    build_model,
    context_for,
)
from labelkin.training import _fleet as fleets
from labelkin.training import _fleet_check as checks
from labelkin.training import _fleet_convolution as convolution
from labelkin.training._captured_steps import CapturedSteps
from labelkin.training._fleet import Fleet, FleetMember
from labelkin.training._fleet_autocast import as_outside
from labelkin.training._fleet_batches import FleetBatches
from labelkin.training._fleet_check import NotBatched
from labelkin.training._fleet_convolution import by_kernel, by_product, convolutions
from labelkin.training._fleet_model import FleetModel
from labelkin.training._task import Place
from support.requires import skip_unless
from support.steps import CountedSteps
from support.stopping import PressCtrlC

Member = tuple[str, dict[str, Any], int]  # objective, options, seed
GIVEN: dict[str, Any] = {"epochs": 2, "batch_size": 32, "optimizer": "sgd", "lr": 0.02, "momentum": 0.5}


@pytest.fixture(autouse=True)
def same_kernels() -> Iterator[None]:
    """On a GPU: convolutions without TF32, whose rounding differs from kernel to kernel."""
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.allow_tf32
    cudnn.deterministic, cudnn.allow_tf32 = True, False
    yield
    cudnn.deterministic, cudnn.allow_tf32 = before


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load("digits", subset=0.1, validation_fraction=0.2)


class Memory:
    """A checkpoint in memory."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.final: dict[str, float] | None = None

    def save(self, state: State) -> None:
        self.state = deepcopy(state)  # optimizers change their tensors in place

    def load(self, *, clean: bool) -> State | None:
        return deepcopy(self.state)

    def record(self, history: Any) -> None:
        pass

    def finish(self, model: Any, metrics: Any, outputs: Any, *, seconds: float) -> None:
        self.final = dict(metrics)


def model_of(digits: data.Dataset, member: Member, net: str = "tiny-cnn") -> Model:
    objective, options, seed = member
    return build_model(objective, options, net, digits.shape, context_for(digits, digits.taxonomy), seed=seed)


def task_of(digits: data.Dataset) -> Classify:
    return Classify(digits, context_for(digits, digits.taxonomy).tree())


def settings_of(member: Member, **settings: Any) -> Settings:
    return Settings(**{**GIVEN, **settings, "seed": member[2]})


def kind_of(member: Member) -> str:
    return f"{member[0]} {member[1]}"


def fleet_of(
    digits: data.Dataset, members: list[Member], net: str = "tiny-cnn", memories: Any = None, **settings: Any
) -> Fleet:
    task = task_of(digits)
    made = [
        FleetMember(
            model_of(digits, member, net),
            task,
            settings_of(member, **settings),
            checkpoint=None if memories is None else memories[place],
        )
        for place, member in enumerate(members)
    ]
    return Fleet(made, [kind_of(member) for member in members])


def alone(digits: data.Dataset, member: Member, net: str = "tiny-cnn", **settings: Any) -> Any:
    return Trainer(model_of(digits, member, net), task_of(digits), settings_of(member, **settings)).fit()


def assert_same(ours: Any, theirs: Any, *, atol: float = 2e-5, rtol: float = 1e-4) -> None:
    assert not isinstance(ours, Exception), ours
    atol = atol * 20 if torch.cuda.is_available() else atol
    rtol = rtol * 20 if torch.cuda.is_available() else rtol
    own = ours.model.state_dict()
    for name, value in theirs.model.state_dict().items():
        if isinstance(value, Tensor):
            torch.testing.assert_close(own[name], value, atol=atol, rtol=rtol, msg=lambda text, n=name: f"{n}: {text}")
    assert [row["epoch"] for row in ours.history] == [row["epoch"] for row in theirs.history]
    for row, expected in zip(ours.history, theirs.history, strict=True):
        assert row.keys() == expected.keys()
        assert row["lr"] == expected["lr"]
        assert row["loss"] == pytest.approx(expected["loss"], rel=10 * rtol)
        assert row["test_accuracy"] == pytest.approx(expected["test_accuracy"], abs=0.006)  # two of 359 samples
    assert ours.epoch == theirs.epoch
    assert ours.metrics.keys() == theirs.metrics.keys()
    torch.testing.assert_close(ours.outputs["scores"], theirs.outputs["scores"], atol=50 * atol, rtol=10 * rtol)


MIXED: list[Member] = [
    ("one-hot", {}, 0),
    ("one-hot", {}, 3),
    ("label-smoothing", {"smoothing": 0.1}, 0),
    ("label-smoothing", {"smoothing": 0.3}, 1),
    ("kin", {}, 1),
    ("kin", {}, 2),
]
STATEFUL: list[Member] = [
    ("online-label-smoothing", {}, 0),
    ("online-label-smoothing", {}, 1),
    ("adaptive-labels", {"preset": "paper", "eval_labels": "epoch"}, 0),
    ("adaptive-labels", {"preset": "paper", "eval_labels": "epoch"}, 2),
    ("bilt", {}, 0),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("members", "net", "settings"),
    [
        (MIXED, "tiny-cnn", {"augment": ("shift:0.2",), "clip": 0.5, "weight_decay": 0.01, "schedule": "cosine"}),
        (MIXED[:3], "mlp", {"optimizer": "adam", "lr": 1e-3}),
        (STATEFUL, "tiny-cnn", {"nesterov": True}),
        (MIXED[1:3], "resnet-3-0", {"balanced": 4, "batch_size": 40, "lr": 0.005}),  # batch norm
    ],
    ids=["mixed", "adam", "stateful", "batch norm"],
)
def test_members_are_trained_as_they_are_alone(digits, members: list[Member], net: str, settings: dict[str, Any]):
    found = fleet_of(digits, members, net, **settings).fit()
    for member, ours in zip(members, found, strict=True):
        assert_same(ours, alone(digits, member, net, **settings))


@pytest.mark.long
def test_in_double_precision_hardly_anything_differs(digits):
    members = MIXED[1:4]
    found = fleet_of(digits, members, precision="64-true", clip=0.5).fit()
    for member, ours in zip(members, found, strict=True):
        assert next(ours.model.parameters()).dtype == torch.float64
        assert_same(ours, alone(digits, member, precision="64-true", clip=0.5), atol=1e-9, rtol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(("net", "most"), [("tiny-cnn", 0.1), ("resnet-3-0", 0.5)])  # deeper, so rounding adds up
def test_mixed_precision_is_within_its_rounding(digits, net: str, most: float):
    """Weights move as they do alone, up to a small part of the way, and products are computed in bfloat16."""
    members, given = [MIXED[1], ("kin", {}, 1), ("label-smoothing", {}, 2)], {"precision": "bf16-mixed", "lr": 0.005}
    fleet, seen = fleet_of(digits, members, net, **given), set()
    layers = [part for part in fleet.members[0].model.modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    for layer in layers:
        layer.register_forward_hook(lambda layer, inputs, output: seen.add(output.dtype))
    starts = [[p.detach().clone() for p in member.model.parameters()] for member in fleet.members]
    found = fleet.fit()
    assert seen == {torch.bfloat16}
    for member, ours, start in zip(members, found, starts, strict=True):
        theirs = alone(digits, member, net, **given)
        own, other = ([p.detach().cpu() for p in one.model.parameters()] for one in (ours, theirs))
        way = sum((b - a).square().sum() for a, b in zip(start, other, strict=True)).sqrt()
        gap = sum((b - a).square().sum() for a, b in zip(own, other, strict=True)).sqrt()
        assert all(p.dtype == torch.float32 for p in own)
        assert 0 < gap < most * way
        assert ours.history[-1]["loss"] == pytest.approx(theirs.history[-1]["loss"], rel=0.02)


R = torch.ones
CAST: dict[str, tuple[Any, tuple[Tensor, ...]]] = {
    "linear": (nn.functional.linear, (R(2, 5, 4), R(2, 3, 4), R(2, 3))),
    "conv1d": (nn.functional.conv1d, (R(2, 5, 1, 8), R(2, 3, 1, 3))),
    "conv2d": (nn.functional.conv2d, (R(2, 5, 1, 8, 8), R(2, 3, 1, 3, 3), R(2, 3))),
    "addmm": (torch.addmm, (R(2, 5, 3), R(2, 5, 4), R(2, 4, 3))),
    "matmul": (torch.matmul, (R(2, 5, 4), R(2, 4, 3))),
    "operator": (lambda a, b: a @ b, (R(2, 5, 4), R(2, 4, 3))),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), (R(2, 5, 4), R(2, 4, 3))),
    "float64": (torch.matmul, (R(2, 5, 4).double(), R(2, 4, 3).double())),
    "loss": (lambda x: nn.functional.cross_entropy(x, torch.zeros(5).long()), (R(2, 5, 4).bfloat16(),)),
    "sum": (lambda x: x.sum(-1), (R(2, 5, 4).bfloat16(),)),
    "batch norm": (
        lambda x, mean, weight: nn.functional.batch_norm(x, mean, mean + 1, weight),
        (R(2, 5, 4).bfloat16(), R(2, 4) / 3, R(2, 4)),
    ),
    "layer norm": (
        lambda x, w: nn.functional.layer_norm(x, (4,), w),
        (torch.arange(40.0).view(2, 5, 4).bfloat16(), R(2, 4)),
    ),
}


@pytest.mark.parametrize("operation", CAST)
def test_operations_have_the_precision_that_autocast_gives_them(operation: str):
    function, inputs = CAST[operation]

    def inside(*given: Tensor) -> Tensor:
        with as_outside(torch.device("cpu")):
            return function(*given)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = torch.stack([function(*given) for given in zip(*inputs, strict=True)])
        found = torch.func.vmap(inside)(*inputs)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected)
    assert isinstance(as_outside(torch.device("cpu")), nullcontext)  # without autocast nothing is cast


@pytest.mark.parametrize("way", ["products", "kernel"])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(3, 1, 1), (3, 1, "same"), (5, 2, 0), ((1, 3), (2, 1), (0, 1))]
)
def test_other_ways_to_convolve(way: str, kernel: Any, stride: Any, padding: Any):
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 4, kernel, stride, padding).double()
    images = torch.randn(2, 3, 9, 8, dtype=torch.float64, requires_grad=True)
    expected = layer(images)
    with convolutions(way):
        found = layer(images)
    torch.testing.assert_close(found, expected)
    for value in (images, layer.weight, layer.bias):
        ours, theirs = (torch.autograd.grad(out.square().sum(), value, retain_graph=True) for out in (found, expected))
        torch.testing.assert_close(ours, theirs)
    other = nn.Conv2d(4, 4, 3, padding="same", groups=2, dilation=2)
    with convolutions(way):
        torch.testing.assert_close(other(torch.ones(1, 4, 9, 9)), other(torch.ones(1, 4, 9, 9)))


def test_which_convolutions_the_kernel_computes():
    def taken(inputs: int, outputs: int, size: int = 3, **options: Any) -> bool:
        return by_kernel(torch.ones(1, inputs, 6, 6), torch.ones(outputs, inputs, size, size), **options) is not None

    assert taken(1, 4, padding=1)
    assert taken(16, 16, padding="same", bias=torch.ones(16))
    assert taken(2, 2, padding=(1, 1))
    others: list[dict[str, Any]] = [{}, {"padding": "valid"}, {"padding": 2}, {"padding": 1, "stride": 2}]
    assert not any(taken(2, 2, **options) for options in [*others, {"padding": 2, "dilation": 2}])
    assert not taken(1, 17, padding=1)
    assert not taken(17, 1, padding=1)
    assert not taken(2, 2, 5, padding="same")
    assert by_product(torch.ones(1, 2, 6, 6), torch.ones(2, 2, 3, 3), padding="same") is None


@pytest.mark.long
@pytest.mark.parametrize("fastest", ["grouped", "products", "kernel"])
def test_a_fleet_convolves_in_the_fastest_way(digits, monkeypatch: pytest.MonkeyPatch, fastest: str):
    seen: list[str] = []
    fleet = fleet_of(digits, MIXED[1:3])

    def seconds(step: Any, device: torch.device) -> float:
        seen.append(fleet.model.backbone.way)
        return 1.0 if seen[-1] == fastest else 2.0

    monkeypatch.setattr(convolution, "replay_seconds", seconds)
    monkeypatch.setattr(convolution, "has_member_convolution", lambda images: True)
    measure = convolution.fastest_way
    monkeypatch.setattr(checks, "fastest_way", lambda net, step, device: measure(net, step, torch.device("cuda")))
    found = fleet.fit()
    assert seen == ["grouped", "products", "kernel"]
    assert fleet.model.backbone.way == fastest
    for member, ours in zip(MIXED[1:3], found, strict=True):
        assert_same(ours, alone(digits, member))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"compile": True}, "are compiled"),
        ({"compile": "auto"}, "may be compiled"),
        ({"accumulate": 2}, "accumulated"),
        ({"strategy": "ddp"}, "strategy"),
    ],
)
def test_settings_that_a_fleet_cannot_have(digits, settings: dict[str, Any], reason: str):
    with pytest.raises(NotBatched, match=reason):
        fleet_of(digits, MIXED[:2], **settings).fit()


@pytest.mark.long
def test_members_do_not_depend_on_each_other(digits):
    whole = fleet_of(digits, MIXED).fit()
    part = fleet_of(digits, MIXED[3:5]).fit()
    for ours, theirs in zip(whole[3:5], part, strict=True):
        assert_same(ours, theirs)


@pytest.mark.long
def test_the_form_that_cuda_captures_takes_the_same_steps(digits, monkeypatch: pytest.MonkeyPatch):
    plain = fleet_of(digits, MIXED[1:4], clip=0.5).fit()
    monkeypatch.setattr(
        fleets, "make_steps", lambda bench, objective: CapturedSteps(bench, objective, required=False, warm_up=10**9)
    )
    captured = fleet_of(digits, MIXED[1:4], clip=0.5).fit()
    for ours, theirs in zip(captured, plain, strict=True):
        assert_same(ours, theirs)


@pytest.mark.parametrize("balanced", [None, 4])
def test_each_member_gets_its_own_batches(digits, balanced: int | None):
    given: dict[str, Any] = {"batch_size": 40, "augment": ("shift:0.2",), "balanced": balanced}
    place, task = Place(torch.device("cpu")), task_of(digits)
    together = FleetBatches(task.batches(Settings(**given), place), [0, 5])
    assert len(together) == len(task.batches(Settings(**given), place))
    for row, seed in enumerate([0, 5]):
        own = task.batches(Settings(**given, seed=seed), place)
        for ours, theirs in zip(together.epoch(1, start=2), own.epoch(1, start=2), strict=True):
            assert not ours.weighted
            for field, expected in zip(ours, theirs, strict=True):
                assert torch.equal(field[row], expected)


class SeenByNorms(TorchDispatchMode):
    """Collects the channels of the inputs of batch normalization, and whether cuDNN was enabled."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, bool]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "batch_norm" in func.name() and "backward" not in func.name():
            self.found.append((args[0].shape[1], torch.backends.cudnn.enabled))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("channels", [1, 2])
def test_batch_normalization_of_one_channel_is_computed_without_cudnn(channels: int):
    """cuDNN refuses the view that vmap makes of gray images; this network normalizes its inputs first."""
    nets = [models.build("resnet-3-0", (channels, 8, 8)) for _ in range(3)]
    members = [Model(net, OneHot(4, features=net.features)) for net in nets]
    fleet, images = FleetModel(members, ["one-hot"] * 3), torch.rand(3, 5, channels, 8, 8)
    with SeenByNorms() as seen:
        fleet(images, torch.zeros(3, 5, dtype=torch.int64))
        for member in members:
            member.eval()
        scores = fleet.scores(images[0])
    assert seen.found[0] == (3 * channels, channels > 1)  # the channels of the three members
    assert all(enabled for count, enabled in seen.found if count > 6)
    assert torch.backends.cudnn.enabled
    for member, own in zip(members, scores.unbind(1), strict=True):
        alone = member.objective.scores(member(images[0]))
        torch.testing.assert_close(alone, own, atol=1e-5, rtol=1e-5)


def test_clipping_is_by_member(digits):
    """Each member's norm and gradients are those that torch computes for it alone; also where nothing is clipped."""
    members = [("one-hot", {}, 0), ("kin", {}, 1), ("kin", {}, 2)]
    models = [model_of(digits, member) for member in members]
    fleet = FleetModel([model_of(digits, member) for member in members], [member[0] for member in members])
    inputs = digits.normalize(digits.train.inputs[:32])
    targets = digits.train.targets[:32]
    scale = torch.tensor([1.0, 0.01, 1.0])
    (fleet(inputs.expand(3, *inputs.shape), targets.expand(3, -1)) * scale).sum().backward()
    norms = fleet.clip(0.3)
    for row, model in enumerate(models):
        (model(inputs, targets) * scale[row]).backward()
        torch.testing.assert_close(norms[row], nn.utils.clip_grad_norm_(model.parameters(), 0.3))
        own = {id(part.own): part.stacked.grad[part.row] for part in fleet.parts_of(row)}
        for clipped, parameter in zip(fleet.models[row].parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(own[id(clipped)], parameter.grad, atol=1e-6, rtol=1e-4)
    assert float(norms[1]) < 0.3 < float(norms[0])


@pytest.mark.long
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_an_interrupted_fleet_goes_on_together_or_one_by_one(digits, optimizer: str):
    members, exact = MIXED[1:4], {"atol": 1e-8, "rtol": 1e-5}
    given = {"optimizer": optimizer, "lr": 1e-3, "batch_size": 40, "precision": "64-true"}
    expected = fleet_of(digits, members, **given).fit()
    memories = [Memory() for _ in members]
    fleet = fleet_of(digits, members, memories=memories, **given)
    fleet.progress = lambda steps: PressCtrlC(1, 2)
    with pytest.raises(Interrupted):
        fleet.fit()
    assert [memory.state.progress["epoch"] for memory in memories if memory.state] == [1, 1, 1]
    assert [memory.state.progress["step"] for memory in memories if memory.state] == [2, 2, 2]
    assert all(memory.final is None for memory in memories)
    for member, memory, theirs in zip(members, memories, expected, strict=True):
        resumed = Trainer(model_of(digits, member), task_of(digits), settings_of(member, **given), checkpoint=Memory())
        resumed.checkpoint.state = memory.state
        assert_same(resumed.fit(resume=True), theirs, **exact)
    for ours, theirs in zip(
        fleet_of(digits, members, memories=memories, **given).fit(resume=True), expected, strict=True
    ):
        assert_same(ours, theirs, **exact)
    assert all(memory.final is not None for memory in memories)


@pytest.mark.long
def test_a_saved_state_is_that_of_a_run_alone(digits):
    """The same names, shapes and random state, so that either resumes the other."""
    for given in ({"optimizer": "adam", "lr": 1e-3}, {"optimizer": "sgd"}):
        memories, own = [Memory(), Memory(), Memory()], Memory()
        fleet_of(digits, MIXED[3:6], memories=memories, **given).fit()
        Trainer(model_of(digits, MIXED[5]), task_of(digits), settings_of(MIXED[5], **given), checkpoint=own).fit()
        ours, theirs = memories[2].state, own.state
        assert ours is not None
        assert theirs is not None
        assert ours.progress.keys() == theirs.progress.keys()
        assert ours.tensors["optimizer"]["param_groups"] == theirs.tensors["optimizer"]["param_groups"]
        for part in ("optimizer", "random"):
            torch.testing.assert_close(ours.tensors[part], theirs.tensors[part], atol=1e-4, rtol=1e-3)


@pytest.mark.long
def test_members_at_different_steps_are_not_joined(digits):
    memories = [Memory(), Memory()]
    fleet_of(digits, MIXED[:1], memories=memories[:1]).fit()
    with pytest.raises(NotBatched, match="different steps"):
        fleet_of(digits, MIXED[:2], memories=memories).fit(resume=True)


@pytest.mark.long
def test_a_member_that_diverges_leaves_the_others_alone(digits):
    fleet = fleet_of(digits, MIXED[:3])
    with torch.no_grad():
        next(fleet.members[1].model.parameters()).fill_(float("inf"))
    fleet._check = lambda epoch, start: None  # NaN is close to nothing
    found = fleet.fit()
    assert isinstance(found[1], Diverged)
    for place in (0, 2):
        assert_same(found[place], alone(digits, MIXED[place]))


def custom(digits: data.Dataset, objectives: list[OneHot], net: Any = None) -> Fleet:
    task, members = task_of(digits), []
    for seed, objective in enumerate(objectives):
        torch.manual_seed(seed)
        made = nn.Sequential(nn.Flatten(), nn.Linear(64, 16)) if net is None else net()
        members.append(FleetMember(Model(made, objective), task, Settings(**GIVEN, seed=seed)))
    return Fleet(members, ["custom"] * len(members))


class Scaled(OneHot):
    """An objective with a number that is no tensor, and differs between members."""

    scale = 1.0

    def compute(self, outputs: Any, batch: Any) -> Any:
        return super().compute(outputs * self.scale, batch)


class Reads(OneHot):
    def compute(self, outputs: Any, batch: Any) -> Any:
        assert float(outputs.sum()) < 1e9
        return super().compute(outputs, batch)


@pytest.mark.long
def test_models_that_cannot_be_batched_are_refused_before_any_step(digits):
    def heads(kind: type[OneHot]) -> list[Any]:
        return [kind(digits.classes, features=16) for _ in range(2)]

    assert len(custom(digits, heads(OneHot)).fit()) == 2
    with pytest.raises(NotBatched, match="outside of tensors"):
        custom(digits, heads(CountedSteps)).fit()
    with pytest.raises(NotBatched, match="item"):
        custom(digits, heads(Reads)).fit()
    scaled = heads(Scaled)
    scaled[1].scale = 2.0
    with pytest.raises(NotBatched, match="losses of the batched model differ"):
        custom(digits, scaled).fit()
    with pytest.raises(NotBatched, match="random"):
        custom(digits, heads(OneHot), lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Dropout(0.5))).fit()


@pytest.mark.long
def test_evaluation_falls_back_to_one_by_one(digits, monkeypatch: pytest.MonkeyPatch):
    expected = fleet_of(digits, MIXED[:2]).fit()
    monkeypatch.setattr(fleets, "MOST_SCORES", 10)
    fleet = fleet_of(digits, MIXED[:2])
    for ours, theirs in zip(fleet.fit(), expected, strict=True):
        assert_same(ours, theirs)
    assert fleet.evaluations("test") is None


class TestOnAGpu:
    """What only a GPU can show."""

    @pytest.fixture(autouse=True)
    def gpu(self) -> None:
        skip_unless(torch.cuda.is_available(), "a GPU", "gpu")

    @pytest.mark.parametrize("net", ["tiny-cnn", "mlp", "resnet-3-0"])
    def test_captured_fleets_train_like_runs_alone(self, digits, net: str):
        """With an augmentation, clipping and batches of two sizes; steps of runs alone are not captured."""
        given: dict[str, Any] = {"epochs": 8, "augment": ("shift:0.2",), "clip": 1.0, "lr": 0.005, "schedule": "cosine"}
        members = [*MIXED, *STATEFUL[:2]]
        fleet = fleet_of(digits, members, net, **given, graph="on")
        found = fleet.fit()
        assert fleet.steps.not_captured is None
        assert len(fleet.steps._graphs) == 2  # type: ignore[attr-defined]
        for member, ours in zip(members, found, strict=True):
            theirs = alone(digits, member, net, **given, graph="off")
            for row, expected in zip(ours.history, theirs.history, strict=True):
                assert row["loss"] == pytest.approx(expected["loss"], rel=5e-3)
            assert ours.metrics["accuracy"] == pytest.approx(theirs.metrics["accuracy"], abs=0.03)

    def test_all_ways_to_convolve_are_measured(self, digits):
        fleet = fleet_of(digits, MIXED[:2])
        fleet._prepare(False)
        batch = next(iter(fleet.batches.epoch(0)))

        def step() -> None:
            fleet.fabric.backward(fleet.task.loss(fleet.forward, batch).sum())

        for way in ("grouped", "products", "kernel"):
            fleet.model.backbone.way = way
            assert 0 < convolution.replay_seconds(step, fleet.place.device) < float("inf")

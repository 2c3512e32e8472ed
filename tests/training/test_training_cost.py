"""What a training step may cost: no wait for the device, no message between processes beyond what the loss needs."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from test_training import model_for
from torch.utils._python_dispatch import TorchDispatchMode

from labelkin import KinClassifier, data
from labelkin.functional import _collectives as collectives
from labelkin.objectives import _validation as inputs
from labelkin.training import Classify, Diverged, Settings, Trainer
from labelkin.training._steps import LossSum

# Operators that make the host wait for a GPU: reading a number, and results whose size depends on values.
SYNCS = {"_local_scalar_dense", "is_nonzero", "nonzero", "masked_select", "equal", "unique", "_unique2"}


class Counted(TorchDispatchMode):
    """Counts host syncs and operators in float64, as an accelerator would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in SYNCS or (name == "index" and any(i is not None and i.dtype == torch.bool for i in args[1])):
            self.found["syncs"] += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Within it, values are not looked at, as on an accelerator, and what a step does is counted."""
    mode = Counted()
    reduce, mask = collectives._reduce, inputs.without_padding

    def counting_reduce(values: torch.Tensor) -> torch.Tensor:
        mode.found["all-reduces"] += 1
        return reduce(values)

    def counting_mask(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        mode.found["masks"] += 1
        return mask(rows, weight)

    with monkeypatch.context() as patched:
        patched.setattr(inputs, "reads_values", lambda values: False)
        patched.setattr(inputs, "without_padding", counting_mask)
        patched.setattr(collectives, "_reduce", counting_reduce)
        with mode:
            yield mode.found


@pytest.fixture
def two_processes() -> Iterator[None]:
    """A process group of two in which the other one always agrees."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load("digits", subset=0.5)


def cost_of_a_step(digits: data.Dataset, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> dict[str, float]:
    """The difference of an epoch of many steps and one of few; what an epoch costs cancels out."""
    found, steps = [], []
    for batch_size in (320, 10):
        trainer = Trainer(
            model_for(digits),
            Classify(digits),
            Settings(epochs=1, batch_size=batch_size, optimizer="sgd", accelerator="cpu", **settings),
        )
        with counted(monkeypatch) as counts:
            trainer.fit()
        found.append(counts)
        steps.append(len(trainer.batches))
    few, many = found
    return {name: (many[name] - few[name]) / (steps[1] - steps[0]) for name in {*few, *many}}


@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"clip": 1.0}, {"accumulate": 2}], ids=str)
def test_a_step_never_waits_for_the_device(digits, monkeypatch, settings):
    cost = cost_of_a_step(digits, monkeypatch, **settings)
    assert abs(cost.get("syncs", 0)) < 0.1
    assert cost.get("masks", 0) == 0, "weights are given only where there are some"


@pytest.mark.long
def test_processes_exchange_nothing_but_the_weight_of_a_batch(digits, monkeypatch, two_processes):
    """The divisor of the mean loss; DDP's exchange of gradients comes on top."""
    cost = cost_of_a_step(digits, monkeypatch)
    assert cost["all-reduces"] <= 1.1
    assert cost.get("syncs", 0) <= 0.1


@pytest.mark.long
def test_the_counter_sees_a_sync(digits, monkeypatch):
    class Looks(Classify):
        def loss(self, model, batch):
            loss = super().loss(model, batch)
            assert float(loss.detach()) >= 0
            return loss

    monkeypatch.setattr("test_training_cost.Classify", Looks)
    assert cost_of_a_step(digits, monkeypatch)["syncs"] == pytest.approx(1, abs=0.1)


def test_the_weights_of_samples_and_padding_reach_the_loss(monkeypatch):
    given: list[torch.Tensor | None] = []
    original = inputs.flatten

    def flatten(objective, outputs, target, **batch):
        given.append(batch.get("weight"))
        return original(objective, outputs, target, **batch)

    monkeypatch.setattr(inputs, "flatten", flatten)
    rng = np.random.default_rng(0)
    features, labels, weights = rng.normal(size=(40, 4)), np.arange(40) % 4, rng.random(40)
    KinClassifier("one-hot", epochs=1).fit(features, labels, sample_weight=weights)
    assert given
    assert all(weight is not None for weight in given)


@pytest.mark.parametrize(("count", "weighted"), [(64, [False, False]), (65, [False, True])])
def test_a_batch_says_whether_it_has_padding(count: int, weighted: list[bool]):
    split = data.load("digits").train.take(torch.arange(count))
    last = [list(data.Batches(split, batch_size=64, rank=rank, world=2).epoch(0))[-1] for rank in (0, 1)]
    assert [batch.weighted for batch in last] == weighted
    assert [bool((batch.weight != 1).any()) for batch in last] == weighted


# The sum of the losses


@pytest.mark.long
@pytest.mark.parametrize("device_type", ["cpu", "mps"])
def test_the_sum_of_many_losses_is_exact(device_type: str, monkeypatch):
    """Of a device without float64 too: a plain float32 sum of a million losses is off in the fourth digit."""
    losses = torch.rand(200_000, generator=torch.Generator().manual_seed(0)) + 3
    total = LossSum(torch.device("cpu"), exact=device_type == "cpu")
    for loss in losses:
        total.add(loss)
    assert (total.dtype == torch.float64) == (device_type == "cpu")
    assert total.value() == pytest.approx(float(losses.double().sum()), rel=1e-9)
    plain = torch.zeros(())
    for loss in losses:
        plain += loss
    assert abs(float(plain) / float(losses.double().sum()) - 1) > 1e-6


def test_only_the_cpu_sums_in_float64():
    assert LossSum(torch.device("cpu")).dtype == torch.float64
    assert LossSum(torch.device("meta")).dtype == torch.float32  # as MPS, which has no float64


@pytest.mark.parametrize("exact", [True, False])
def test_a_sum_that_is_saved_and_restored_goes_on_with_the_same_bits(exact: bool):
    losses = torch.rand(2000, generator=torch.Generator().manual_seed(1)) * 7
    whole, first = LossSum(torch.device("cpu"), exact=exact), LossSum(torch.device("cpu"), exact=exact)
    for loss in losses:
        whole.add(loss)
    for loss in losses[:777]:
        first.add(loss)
    second = LossSum(torch.device("cpu"), exact=exact)
    second.restore(*first.parts(lambda part: part.unsqueeze(0))[0])
    for loss in losses[777:]:
        second.add(loss)
    assert second.parts(lambda part: part.unsqueeze(0)) == whole.parts(lambda part: part.unsqueeze(0))


# NaN


@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_nan_loss_stops_training_at_the_end_of_its_epoch(digits, clip: float | None):
    settings = Settings(epochs=3, optimizer="sgd", lr=1e30, clip=clip, momentum=0.0)
    if clip is not None:
        settings = Settings(epochs=3, optimizer="sgd", lr=1e38, clip=clip, momentum=0.0, weight_decay=1.0)
    seen: list[float] = []
    trainer = Trainer(model_for(digits), Classify(digits), settings, log=lambda row: seen.append(row["epoch"]))
    with pytest.raises(Diverged, match=r"Loss became NaN or infinite in epoch 1; training stopped\."):
        trainer.fit()
    assert seen == []


def test_a_gradient_that_is_not_finite_in_the_last_step_stops_training_where_gradients_are_clipped(digits):
    model = model_for(digits)
    poisoned = model.objective.head.weight
    poisoned.register_hook(lambda gradient: gradient * float("inf"))
    settings = Settings(epochs=1, batch_size=10_000, optimizer="sgd", clip=1.0)
    with pytest.raises(Diverged, match="training stopped"):
        Trainer(model, Classify(digits), settings).fit()

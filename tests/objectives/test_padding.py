"""A sample of weight 0 is not there, whatever its outputs hold: NaN of a masked attention reaches nothing."""

import pytest
import torch
from torch import Tensor

from labelkin import OBJECTIVES, ConfidencePenalty, Context, Objective, Taxonomy

TREE = Taxonomy.from_nested({"a": ["cat", "dog"], "b": ["car", "van"]})
OPTIONS = {"bilt": {"batch_norm": False}}  # batch norm in a head sees padding, as it does in a backbone


def built(name: str) -> Objective:
    torch.manual_seed(0)
    objective = OBJECTIVES[name].build(
        Context(classes=("cat", "dog", "car", "van"), features=5, taxonomy=TREE, train_samples=9),
        **OPTIONS.get(name, {}),
    )
    objective.begin_epoch(0, 2)
    return objective


def gradients(objective: Objective, features: Tensor, target: Tensor, from_features: bool, **batch: Tensor):
    features = features.clone().requires_grad_()
    if from_features:
        loss = objective.loss_from_features(features, target, **batch).total
    else:
        loss = objective.loss(objective(features), target, **batch)
    loss.backward()
    return loss.detach(), features.grad


@pytest.mark.parametrize("garbage", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_outputs_of_padding_reach_neither_loss_nor_gradients(name: str, garbage: float):
    features, target = torch.randn(6, 5), torch.arange(6) % 4
    index = torch.arange(6)
    alone, own = gradients(built(name), features[:5], target[:5], False, index=index[:5], weight=torch.ones(5))
    objective = built(name)
    outputs = objective(features)
    for part in outputs if isinstance(outputs, tuple) else (outputs,):
        part.data[5] = garbage
    target[5] = -100
    loss = objective.loss(outputs, target, index=index, weight=torch.tensor([1.0] * 5 + [0.0]))
    torch.testing.assert_close(loss, alone)
    loss.backward()
    for key, parameter in objective.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), key
    assert own.isfinite().all()


@pytest.mark.parametrize("name", ["one-hot", "label-embedding", "compressed-label-embedding"])
def test_features_of_padding_reach_neither_loss_nor_gradients(name: str, monkeypatch):
    from labelkin.objectives import _label_embedding as label_embedding
    from labelkin.objectives import _label_embedding_chunked as chunks

    for module in (chunks, label_embedding):
        monkeypatch.setattr(module, "CHUNK", 8)  # two samples at a time
    features, target, weight = torch.randn(6, 5), torch.arange(6) % 4, torch.tensor([1.0] * 5 + [0.0])
    alone, own = gradients(built(name), features[:5], target[:5], True, weight=weight[:5])
    features[5] = torch.nan
    padded, grad = gradients(built(name), features, target, True, weight=weight)
    torch.testing.assert_close(padded, alone)
    torch.testing.assert_close(grad[:5], own)


def test_a_class_masked_with_minus_infinity_has_no_part_in_the_confidence():
    objective = ConfidencePenalty(classes=3)
    logits = torch.tensor([[1.0, 2.0, -torch.inf]], requires_grad=True)
    without = ConfidencePenalty(classes=2).loss(torch.tensor([[1.0, 2.0]]), torch.tensor([0]))
    loss = objective.loss(logits, torch.tensor([0]))
    torch.testing.assert_close(loss.detach(), without)
    loss.backward()
    assert logits.grad.isfinite().all()

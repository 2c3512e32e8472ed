"""What cannot be used is refused in one sentence that names the argument, before anything is computed with it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from labelkin import (
    AdaptiveLabels,
    CompressedLabelEmbedding,
    ConditionalSoftmax,
    ConfidencePenalty,
    Context,
    Hierarchical,
    HierarchicalCrossEntropy,
    InputError,
    LabelEmbedding,
    LabelSmoothing,
    MixedCrossEntropy,
    Model,
    OneHot,
    PretrainedLabelEmbedding,
    Retrospection,
    SemanticSmoothing,
    StaticLabels,
    Taxonomy,
)
from labelkin.objectives import TwoHeads
from labelkin.relations import GroupRows
from support.cases import CASES, Case, each

NAN = float("nan")
TREE = Taxonomy.from_paths(["a/x", "a/y", "z"])
KIN = torch.tensor([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]])
Z, Y = torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])
NODES = torch.zeros(4, 4)

one_hot = OneHot(classes=3)
embedding = LabelEmbedding(classes=3)
on_tree = ConditionalSoftmax(taxonomy=TREE)


def mixed(**options: Any) -> MixedCrossEntropy:
    return MixedCrossEntropy(classes=3, **{"relation": KIN, **options})


def retrospection() -> Retrospection:
    objective = Retrospection(classes=3, samples=5)
    objective.begin_epoch(0, 3)
    return objective


def context(*targets: int) -> Context:
    return Context(classes=("a", "b", "c"), inputs=torch.randn(4, 2), targets=torch.tensor(targets))


def refused(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    message, error = str(caught.value), caught.value
    assert sentence in message
    assert message.endswith((".", "?"))
    assert "\n" not in message
    assert error.__context__ is None or error.__suppress_context__ or error.__cause__ is not None


OPTIONS = [
    (lambda: OneHot(classes=1), "classes: expected a whole number of at least 2, got 1"),
    (
        lambda: Model(torch.nn.Identity(), "kin"),
        "objective: expected a labelkin objective, such as a labelkin.Kin, got 'kin'",
    ),
    (lambda: OneHot(classes=["one"]), "classes: expected at least 2 names, got 1"),
    (lambda: OneHot(classes=["a", "b", "a"]), "classes: duplicate name 'a'"),
    (lambda: OneHot(classes=[1, 2]), "classes: expected non-empty strings, got 1"),
    (lambda: OneHot(classes=2.5), "classes: expected"),
    (lambda: OneHot(classes=None), "classes: expected"),
    (lambda: OneHot(classes="cat"), "classes: expected"),
    (lambda: AdaptiveLabels(classes=None), "classes: expected"),
    (lambda: StaticLabels(classes=None, vectors=torch.eye(3)), "classes: expected"),
    (lambda: Context(classes="cat"), "classes: expected"),
    (lambda: OneHot(classes=3, features=0), "features: expected a whole number of at least 1, got 0"),
    (lambda: OneHot(classes=3, class_weight=[1, 2]), "class_weight: expected 3 numbers"),
    (
        lambda: OneHot(classes=3, class_weight=[1, 2, -1]),
        "class_weight: expected numbers that are not negative, got -1",
    ),
    (lambda: OneHot(classes=3, class_weight=[1, 2, NAN]), "class_weight: expected finite numbers"),
    (lambda: OneHot(classes=3, class_weight="balanced"), "class_weight: expected"),
    (lambda: OneHot(classes=3, class_weight=[[1], [1, 2]]), "class_weight: expected"),
    (lambda: LabelSmoothing(classes=3, smoothing=1.2), "smoothing: expected a number in [0, 1], got 1.2"),
    (lambda: LabelSmoothing(classes=3, smoothing=NAN), "smoothing: expected a number in [0, 1], got nan"),
    (lambda: ConfidencePenalty(classes=3, strength=-1), "strength: expected a number in [0, inf], got -1"),
    (lambda: SemanticSmoothing(classes=3, relation=KIN, sigma=1.5), "sigma: expected a number in [0, 1], got 1.5"),
    (lambda: SemanticSmoothing(classes=3, relation=KIN, sigma=-0.1), "sigma: expected a number in [0, 1], got -0.1"),
    (lambda: SemanticSmoothing(classes=3, relation=KIN * NAN), "relation: expected finite numbers, got nan"),
    (lambda: SemanticSmoothing(classes=4, relation=KIN), "relation: expected 4 x 4 for 4 classes, got 3 x 3"),
    (lambda: SemanticSmoothing(classes=3, relation=-KIN), "relation: expected numbers that are not negative"),
    (lambda: SemanticSmoothing(classes=3, relation=torch.eye(3)), "relation: expected a zero diagonal"),
    (lambda: SemanticSmoothing(classes=3, relation=2 * KIN), "relation: expected rows that sum to 1"),
    (lambda: SemanticSmoothing(classes=3, relation="ordinal"), "relation: expected an array"),
    (lambda: SemanticSmoothing(classes=3), "expected either relation= (with sigma=) or targets=, got both or neither"),
    (lambda: SemanticSmoothing(classes=3, relation=KIN, targets=KIN), "expected either relation="),
    (lambda: SemanticSmoothing(classes=3, targets=torch.zeros(3, 3)), "targets: expected rows that sum to 1"),
    (lambda: SemanticSmoothing(classes=3, targets=GroupRows([0, 0, 1])), "targets: expected rows that sum to 1"),
    (lambda: mixed(relation=KIN * NAN), "relation: expected finite numbers, got nan"),
    (lambda: mixed(eps=0.6), "eps: expected numbers in [0, 0.5], got 0.6"),
    (lambda: mixed(eps=-0.1), "eps: expected numbers in [0, 0.5], got -0.1"),
    (lambda: mixed(eps=NAN), "eps: expected finite numbers, got nan"),
    (lambda: mixed(eps=None), "eps: expected"),
    (lambda: mixed(eps="some"), "eps: expected"),
    (lambda: mixed(eps=[0.1, 0.2, 0.3]), "eps: expected shape () with mixing='shared', got (3,)"),
    (lambda: mixed(eps=[0.1, 0.2], mixing="class"), "eps: expected shape () or (3,)"),
    (lambda: mixed(eps=torch.ones(3, 3), mixing="matrix"), "eps: expected a matrix whose rows are distributions"),
    (lambda: mixed(eps=torch.full((3, 3), 1 / 3), mixing="matrix"), "eps: expected a matrix whose diagonal"),
    (lambda: mixed(mixing="clas"), "mixing: expected one of 'shared', 'class', 'matrix', got 'clas'. Did you mean"),
    (lambda: mixed(constraint="penal"), "Did you mean 'penalty'?"),
    (lambda: mixed(margin=2), "margin: expected a number"),
    (lambda: mixed(prior=-1), "prior: expected a number in [0, inf], got -1"),
    (lambda: mixed(p=0.5), "p: expected a number in [1, inf], got 0.5"),
    (lambda: Hierarchical(taxonomy={"a": ["x"]}), "taxonomy: expected a labelkin.Taxonomy, got dict"),
    (lambda: HierarchicalCrossEntropy(taxonomy=None), "taxonomy: expected a labelkin.Taxonomy"),
    (lambda: Hierarchical(taxonomy=TREE, classes=4), "classes: the taxonomy has 3 classes, got 4"),
    (lambda: ConditionalSoftmax(taxonomy=TREE, classes=3), "classes: expected the names of the 3 classes in the order"),
    (lambda: ConditionalSoftmax(taxonomy=TREE, classes=3), "the tree's own order, which begins with 'x', 'y', 'z'"),
    (lambda: Hierarchical(taxonomy=TREE, classes=["x", "y", "w"]), "classes: the taxonomy has no class 'w'"),
    (lambda: Hierarchical(taxonomy=TREE, classes=["x", "y"]), "classes: 'z' of the taxonomy missing"),
    (lambda: Hierarchical(taxonomy=TREE, targets="paths"), "targets: expected one of 'path', 'leaf', got 'paths'. Did"),
    (lambda: HierarchicalCrossEntropy(taxonomy=TREE, alpha=-1), "alpha: expected a number in [0, inf], got -1"),
    (lambda: LabelEmbedding(classes=3, tau=0), "tau: expected a number in (0, inf], got 0"),
    (lambda: LabelEmbedding(classes=3, alpha=2), "alpha: expected a number in [0, 1], got 2"),
    (lambda: LabelEmbedding(classes=3, p=0), "p: expected a number in [1, inf], got 0"),
    (lambda: LabelEmbedding(classes=3, preset="papers"), "preset: expected one of 'paper'"),
    (lambda: LabelEmbedding(classes=3, start_after=-1), "start_after: expected a whole number of at least 0, got -1"),
    (lambda: CompressedLabelEmbedding(classes=3, rank=0), "rank: expected a whole number of at least 1, got 0"),
    (
        lambda: PretrainedLabelEmbedding(classes=3, embedding=torch.eye(4)),
        "embedding: expected 3 x 3 for 3 classes, got 4 x 4",
    ),
    (lambda: PretrainedLabelEmbedding(classes=3, embedding=NAN * KIN), "embedding: expected finite numbers"),
    (lambda: PretrainedLabelEmbedding(classes=3, embedding="run-1"), "embedding: expected"),
    (lambda: AdaptiveLabels(classes=3, dims=2), "dims: expected at least 3"),
    (
        lambda: AdaptiveLabels(classes=3, preset="papr"),
        "preset: expected one of 'cosine', 'memory', 'paper', got 'papr'",
    ),
    (lambda: AdaptiveLabels(classes=3, share=1.5), "share: expected a number in [0, 1], got 1.5"),
    (
        lambda: AdaptiveLabels(classes=3, preset="cosine", memory=3.0),
        "memory: does not apply to preset='cosine', got 3.0; leave it out, or use preset='memory' or 'paper'",
    ),
    (
        lambda: AdaptiveLabels(classes=3, memory=3.0, share=0.2),
        "share: does not apply to preset='memory', got 0.2; leave it out, or use preset='cosine'",
    ),
    (lambda: AdaptiveLabels(classes=3, every=0), "every: expected a whole number of at least 1, got 0"),
    (lambda: AdaptiveLabels(classes=3, warmup=-1), "warmup: expected a whole number of at least 0, got -1"),
    (lambda: AdaptiveLabels(classes=3, repel=-1), "repel: expected a number in [0, inf], got -1"),
    (lambda: AdaptiveLabels(classes=3, momentum=1.5), "momentum: expected a number in [0, 1], got 1.5"),
    (lambda: AdaptiveLabels(classes=3, scale="learn"), "scale: expected one of 'learned', got 'learn'. Did you mean"),
    (lambda: AdaptiveLabels(classes=3, scale=0), "scale: expected a number in (0, inf], got 0"),
    (lambda: AdaptiveLabels(classes=3, eval_labels="batch"), "eval_labels: expected one of 'epoch', 'last'"),
    (lambda: Retrospection(classes=3, samples=0), "samples: expected a whole number of at least 1, got 0"),
    (lambda: Retrospection(classes=3, samples=2, tau=0), "tau: expected a number in (0, inf], got 0"),
    (lambda: retrospection().begin_epoch(2, 2), "epoch"),
    (lambda: StaticLabels(classes=3, vectors=torch.eye(4)), "vectors: expected shape (3, D)"),
    (lambda: StaticLabels(classes=3, vectors=NAN * KIN), "vectors: expected finite numbers"),
    (lambda: StaticLabels(classes=3, vectors=torch.ones(3, 2)), "vectors: expected a different vector for every class"),
    (lambda: StaticLabels(classes=3, vectors=[[1], [1, 2], [3]]), "vectors: expected"),
]

BUILDING = [
    (
        lambda: LabelSmoothing.build(context(0, 1, 2, 0), smothing=0.1),
        "no option 'smothing'. Did you mean 'smoothing'?",
    ),
    (lambda: OneHot.build(context(0, 1, 2, 0), sigma=0.1), "OneHot has no option 'sigma'"),
    (lambda: OneHot.build(context(0, 1, 2, 0), width=7), "OneHot has no option 'width'"),
    (lambda: ConditionalSoftmax.build(context(0, 1, 2, 0), width=7), "ConditionalSoftmax has no option 'width'"),
    (lambda: Hierarchical.build(Context(classes=("a", "b"))), "needs a taxonomy or training data"),
    (lambda: Hierarchical.build(Context(classes=("a", "b", "c"), taxonomy=TREE)), "classes: the taxonomy has no class"),
    (lambda: Retrospection.build(Context(classes=("a", "b"))), "the size of the training set is unknown"),
    (lambda: Context(classes=("a", "b"), inputs=torch.ones(2, 2)), "give inputs and targets together"),
    (lambda: Context(classes=("a",)), "classes: expected at least 2 names, got 1"),
    (lambda: Hierarchical.build(context(0, 0, 1, 1)), "no training sample of class 'c'"),
    (lambda: Hierarchical.build(context(0, 1, 2, 5)), "targets"),
    (lambda: Hierarchical.build(context(0, 1, 2)), "targets"),
]

LOSSES = [
    (lambda: one_hot.loss(Z, torch.tensor([0, 1, 3, 0])), "target: expected class positions from 0 to 2, got 3"),
    (lambda: one_hot.loss(Z, torch.tensor([0, 1, -1, 0])), "target: expected class positions from 0 to 2, got -1"),
    (lambda: one_hot.loss(Z, torch.tensor([0, 1])), "target: expected shape (4,), one per sample, got (2,)"),
    (lambda: one_hot.loss(Z, Y > 0), "target: expected whole numbers, got torch.bool"),
    (lambda: one_hot.loss(Z, [0, 1, 2, 0]), "target: expected a tensor, got list"),
    (lambda: one_hot.loss(Z, Y.float()), "target: expected class probabilities of shape (4, 3), got (4,)"),
    (lambda: one_hot.loss(Z, torch.ones(4, 3)), "target: expected rows that sum to 1"),
    (lambda: one_hot.loss(Z, torch.tensor([[2.0, -1, 0]] * 4)), "target: expected probabilities from 0 to 1"),
    (lambda: one_hot.loss(Z, torch.full((4, 3), NAN)), "target: expected finite probabilities"),
    (lambda: one_hot.loss(Z[:0], Y[:0]), "outputs: expected at least one sample, got an empty batch"),
    (lambda: one_hot.loss(torch.zeros(4, 5), Y), "outputs: expected shape (..., 3)"),
    (lambda: one_hot.loss(Z[0], Y[0]), "outputs: expected shape (..., 3) with at least one leading axis, got (3,)"),
    (lambda: one_hot.loss(Z.long(), Y), "outputs: expected floating-point tensors, got torch.int64"),
    (lambda: one_hot.loss(Z.numpy(), Y), "outputs: expected a tensor (..., 3), got ndarray"),
    (lambda: one_hot.loss(TwoHeads(Z, Z), Y), "outputs: expected"),
    (lambda: embedding.loss(Z, Y), "outputs: expected a pair"),
    (lambda: embedding.loss(Z[:2], Y[:2]), "outputs: expected a pair"),
    (lambda: embedding.loss(TwoHeads(Z, Z[:2]), Y), "outputs: expected shape"),
    (lambda: embedding.loss(TwoHeads(Z, Z), torch.eye(3)[Y]), "target: LabelEmbedding is not linear in the target"),
    (lambda: embedding(Z), "outputs: expected a pair (z1, z2) of tensors, got Tensor"),
    (lambda: one_hot.loss(Z, Y, weight=torch.ones(3)), "weight: expected one number per sample, shape (4,), got (3,)"),
    (lambda: one_hot.loss(Z, Y, weight=-torch.ones(4)), "weight: expected finite numbers of at least 0"),
    (lambda: one_hot.loss(Z, Y, weight=torch.full((4,), NAN)), "weight: expected finite numbers"),
    (lambda: one_hot.loss(Z, Y, weight=[1, 1, 1, 1]), "weight: expected"),
    (lambda: one_hot.loss(Z, Y, node=Y), "node: does not apply to OneHot"),
    (lambda: on_tree.loss(NODES, Y, node=[0, 1, 1, 0]), "node: expected a tensor, got list"),
    (lambda: on_tree.loss(NODES, Y, node=Y + 9), "node: expected node indices from 0 to 4, or -1"),
    (lambda: on_tree.loss(NODES, Y, node=Y - 2), "node: expected node indices from 0 to 4, or -1"),
    (lambda: on_tree.loss(NODES, Y, node=Y[:1]), "node: expected shape (4,), one per sample, got (1,)"),
    (lambda: on_tree.loss(NODES, Y, node=Y.float()), "node: expected whole numbers, got torch.float32"),
    (lambda: on_tree.loss(NODES, torch.eye(3)[Y], node=Y), "node: does not apply to targets of class prob"),
    (lambda: retrospection().loss(Z, Y), "index: Retrospection needs each sample's position"),
    (lambda: retrospection().loss(Z, Y, index=Y[:1]), "index: expected shape (4,), one per sample, got (1,)"),
    (lambda: retrospection().loss(Z, Y, index=Y.float()), "index: expected whole numbers, got torch.float32"),
    (lambda: retrospection().loss(Z, Y, index=Y + 5), "index: expected positions from 0 to 4"),
]

ANSWERS = [
    (lambda: one_hot.scores((Z, Z)), "outputs: expected a tensor"),
    (lambda: one_hot.scores(torch.zeros(4, 5)), "outputs: expected"),
    (lambda: on_tree.scores(torch.zeros(4, 7)), "outputs: expected"),
    (lambda: AdaptiveLabels(classes=3).scores(torch.zeros(4, 7)), "outputs: expected"),
    (lambda: embedding.scores(Z), "outputs: expected a pair"),
    (lambda: StaticLabels(classes=3, vectors=KIN + torch.eye(3)).log_probs(Z), "no probabilities"),
    (lambda: one_hot.label_vectors([3]), "classes: expected"),
    (lambda: on_tree.label_vectors([-1]), "classes: expected"),
    (lambda: AdaptiveLabels(classes=3, preset="memory").refresh([(torch.zeros(4, 5), Y)]), "outputs: expected"),
    (lambda: AdaptiveLabels(classes=3, preset="memory").refresh([(Z, Y + 1)]), "target: expected"),
]


@pytest.mark.parametrize(("call", "sentence"), OPTIONS, ids=[sentence for _, sentence in OPTIONS])
def test_options_that_cannot_be_used(call: Callable[[], Any], sentence: str):
    refused(call, sentence)


@pytest.mark.parametrize(("call", "sentence"), BUILDING, ids=[sentence for _, sentence in BUILDING])
def test_contexts_that_cannot_be_built_from(call: Callable[[], Any], sentence: str):
    refused(call, sentence)


@pytest.mark.parametrize(("call", "sentence"), LOSSES, ids=[sentence for _, sentence in LOSSES])
def test_batches_that_cannot_be_used(call: Callable[[], Any], sentence: str):
    refused(call, sentence)


@pytest.mark.parametrize(("call", "sentence"), ANSWERS, ids=[sentence for _, sentence in ANSWERS])
def test_questions_that_cannot_be_answered(call: Callable[[], Any], sentence: str):
    refused(call, sentence)


def test_a_pair_of_outputs_needs_no_type_of_ours():
    assert embedding.loss((Z, Z), Y) > 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_objective_refuses_what_no_loss_can_use(case: Case):
    objective = case.settled()
    sample = case.sample(objective, n=4)
    good = {"index": sample.index}
    wide = each(sample.outputs, lambda t: torch.cat([t, t], -1))
    whole = each(sample.outputs, lambda t: t.long())
    none = each(sample.outputs, lambda t: t[:0])
    high = torch.full_like(sample.target, objective.num_classes)
    refused(lambda: objective.loss(wide, sample.target, **good), "outputs: expected shape")
    refused(lambda: objective.loss(whole, sample.target, **good), "outputs: expected floating-point")
    refused(lambda: objective.loss(none, sample.target[:0], index=sample.index[:0]), "empty batch")
    refused(lambda: objective.loss(sample.outputs, high, **good), "target: expected class positions from 0 to 5, got 6")
    refused(lambda: objective.loss(sample.outputs, sample.target[:2], **good), "target: expected shape (4,)")
    refused(lambda: objective.loss(sample.outputs, sample.target, weight=high[:2], **good), "weight: expected")

"""Every objective in every form that matters, made small: what the contract and data-parallel tests run over."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from labelkin import OBJECTIVES, Objective, relations
from labelkin.objectives import TwoHeads
from support.worlds import CLASSES, World, default_dtype, generator, world

SAMPLES = 40  # of the training set that Retrospection keeps a table of


@dataclass(frozen=True)
class Sample:
    """A batch for a loss."""

    outputs: Any
    target: Tensor
    index: Tensor

    def take(self, rows: Any) -> "Sample":
        return Sample(each(self.outputs, lambda part: part[rows]), self.target[rows], self.index[rows])


@dataclass(frozen=True)
class Case:
    """One form of an objective.

    `options` are the constructor's, less classes and features. `by_sample` says that the loss is a mean of losses that
    depend on one sample each; `repeats` that a sample of weight 2 is the sample twice.
    """

    objective: str  # its name in OBJECTIVES
    variant: str
    options: Callable[[World], dict[str, Any]]
    pair: bool = False  # outputs are (z1, z2)
    by_sample: bool = True
    repeats: bool = True
    renames: bool = True  # the outputs have a column for each class or node, so that all can be renamed together

    def __str__(self) -> str:
        return f"{self.objective}-{self.variant}"

    def make(
        self,
        on: World | None = None,
        *,
        features: int | None = None,
        class_weight: bool = False,
        dtype: torch.dtype = torch.float64,
        **more: Any,
    ) -> Objective:
        """The objective as its constructor leaves it."""
        on = on or world()
        given = self.options(on) | ({"class_weight": on.class_weight} if class_weight else {}) | more
        with default_dtype(dtype), torch.random.fork_rng():
            torch.manual_seed(0)
            return OBJECTIVES[self.objective](classes=on.names, features=features, **given)

    def settled(self, on: World | None = None, *, dtype: torch.dtype = torch.float64, **made: Any) -> Objective:
        """The objective in the midst of training: parameters off their start, two steps taken, in the fourth epoch."""
        objective = self.make(on, dtype=dtype, **made)
        draw = generator(1)
        with torch.no_grad():
            for parameter in objective.parameters():
                parameter += 0.1 * torch.randn(parameter.shape, generator=draw).to(dtype)
        objective.begin_epoch(1, 5)
        for seed in (100, 101):
            sample = self.sample(objective, seed=seed, dtype=dtype)
            objective.loss_terms(sample.outputs, sample.target, index=sample.index)
        objective.begin_epoch(3, 5)
        return objective

    def sample(self, objective: Objective, *, seed: int = 0, n: int = 12, dtype: torch.dtype = torch.float64) -> Sample:
        """Random outputs for `objective`. No sample is of class 4 and one of class 3; half of z2 are right."""
        draw = generator(seed)
        target = torch.tensor([0, 1, 2, 5, 0, 1])[torch.randint(6, (n,), generator=draw)]
        target[n // 2] = 3
        z1, z2 = torch.randn(2, n, objective.width, generator=draw).to(dtype)
        z2[torch.arange(0, n, 2), target[::2] % objective.width] += 4
        index = torch.randperm(SAMPLES, generator=draw)[:n]
        return Sample(TwoHeads(z1, z2) if self.pair else z1, target, index)

    def columns(self, on: World, objective: Objective) -> tuple[str, ...]:
        """What each column of the outputs stands for."""
        anchored = self.variant.startswith("cosine")  # the label of a class is near its own dimension
        if self.objective in ("adaptive-labels", "static-labels") and not anchored:
            return tuple(f"dimension {i}" for i in range(objective.width))
        if self.objective == "hierarchical-ensemble":
            return (*on.names, *(on.taxonomy.names[i] for i in sorted(set(on.taxonomy.parents[on.taxonomy.leaves]))))
        return on.taxonomy.names[1:] if objective.width > CLASSES else on.names


def each(outputs: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Outputs with `change` made to the tensor, or to each of the pair."""
    return type(outputs)(*map(change, outputs)) if isinstance(outputs, tuple) else change(outputs)


def _plain(_: World) -> dict[str, Any]:
    return {}


def _given(**options: Any) -> Callable[[World], dict[str, Any]]:
    return lambda _: options


def _on_tree(**options: Any) -> Callable[[World], dict[str, Any]]:
    return lambda on: {"taxonomy": on.taxonomy, **options}


def _with_tree_terms(case: Case) -> Case:
    """The case with both tree terms."""

    def given(on: World) -> dict[str, Any]:
        return {**case.options(on), "taxonomy": on.taxonomy, "ancestors": 0.3, "expected_cost": 0.2}

    return replace(case, variant=f"{case.variant}-tree-terms", options=given)


def _mixed(mixing: str, **options: Any) -> Case:
    form = options["constraint"] if options.get("learn") else "fixed"

    def given(on: World) -> dict[str, Any]:
        eps = {"shared": 0.3, "class": on.eps, "matrix": on.matrix}[mixing]
        return {"relation": on.relation, "eps": eps, "mixing": mixing, **options}

    return Case("mixed-cross-entropy", f"{mixing}-{form}", given, by_sample=not options.get("learn"))


PUBLISHED = {"memory": 0.0, "leave_one_out": False, "scale": 1.0}  # 001's own rule


def _adaptive(variant: str, *, repeats: bool = True, **options: Any) -> Case:
    return Case("adaptive-labels", variant, _given(**{**PUBLISHED, **options}), by_sample=False, repeats=repeats)


def _embedding(variant: str, *, rank: int | None = None, **options: Any) -> Case:
    name = "label-embedding" if rank is None else "compressed-label-embedding"
    given = options if rank is None else {"rank": rank, **options}
    return Case(name, variant, _given(**given), pair=True, by_sample=False)


FORMS = [
    Case("one-hot", "plain", _plain),
    Case("label-smoothing", "plain", _given(smoothing=0.3)),
    Case("confidence-penalty", "plain", _given(strength=0.4)),
    Case("semantic-smoothing", "dense", lambda on: {"relation": on.relation, "sigma": 0.3}),
    Case("semantic-smoothing", "groups", lambda on: {"relation": relations.GroupRows(on.groups), "sigma": 0.3}),
    Case("semantic-smoothing", "tree", lambda on: {"relation": relations.TreeRows(on.taxonomy, beta=3), "sigma": 0.2}),
    Case("semantic-smoothing", "targets", lambda on: {"targets": relations.tree_targets(on.taxonomy, beta=4)}),
    *(_mixed(mixing) for mixing in ("shared", "class", "matrix")),
    *(
        _mixed(mixing, learn=True, constraint=constraint, margin=0.05)
        for mixing in ("shared", "class", "matrix")
        for constraint in ("exact", "penalty")
    ),
    Case("hierarchical", "path", _on_tree(targets="path")),
    Case("hierarchical", "leaf", _on_tree(targets="leaf")),
    Case("convex-hierarchical", "plain", _on_tree()),
    Case("convex-hierarchical", "soft", _on_tree(soft_off_path=True)),
    Case("conditional-softmax", "plain", _on_tree()),
    Case("hierarchical-cross-entropy", "plain", _on_tree(alpha=0.4)),
    Case("hierarchical-cross-entropy", "normalized", _on_tree(alpha=0.4, normalize=True)),
    Case("kin", "plain", _on_tree(alpha=0.6, ancestors=0.3), pair=True, by_sample=False),
    Case("kin", "gradient", _on_tree(alpha=0.6, ancestors=0.3, learning="gradient"), pair=True, by_sample=False),
    Case(
        "kin",
        "mean",
        _on_tree(alpha=0.6, learning="gradient", preset="kin-mean", expected_cost=0.4),
        pair=True,
        by_sample=False,
    ),
    Case("kin", "released", _on_tree(alpha=0.6, learning="gradient", preset="released"), pair=True, by_sample=False),
    _embedding("paper", alpha=0.6, p=2.0),
    _embedding("released", preset="released", alpha=0.6),
    _embedding("text", preset="released-text", start_after=3),
    _embedding("paper", rank=3, alpha=0.6),
    _embedding("released", rank=3, preset="released", alpha=0.6),
    Case("pretrained-label-embedding", "plain", lambda on: {"embedding": on.embedding}),
    _adaptive("plain"),
    _adaptive("every", every=2, warmup=1),
    _adaptive("momentum", momentum=0.7, dims=CLASSES + 3),
    _adaptive("detach", detach=True),
    # What is left out is the sample with all its weight: a weight of 2 has no twin to learn from, a repeated sample has.
    _adaptive("leave-one-out", leave_one_out=True, repeats=False),
    _adaptive("scale", scale="learned", eval_labels="last"),
    _adaptive("repel", repel=10.0, dims=CLASSES + 3),
    _adaptive("memory", memory=3.0),
    Case("adaptive-labels", "memory-default", _given(preset="memory"), by_sample=False, repeats=False),
    Case("adaptive-labels", "paper-default", _given(preset="paper"), by_sample=False),
    Case("adaptive-labels", "cosine-default", _plain),
    Case("adaptive-labels", "cosine-fixed", _given(preset="cosine", share=0.6, momentum=0.5, scale=4.0)),
    _adaptive(
        "all", every=2, momentum=0.5, leave_one_out=True, scale="learned", repel=2.0, dims=CLASSES + 1, repeats=False
    ),
    Case("retrospection", "plain", _given(samples=SAMPLES, tau=3.0)),
    Case("static-labels", "plain", lambda on: {"vectors": on.vectors}),
    Case("online-label-smoothing", "plain", _given(share=0.4)),
    Case("tree-soft-labels", "plain", _on_tree(beta=4.0)),
    Case("haframe", "plain", _on_tree(gamma=1.5, share=0.3)),
    Case("hier-cos", "plain", _on_tree(alpha=0.2)),
    Case("unit-sphere", "plain", _on_tree(ce_weight=0.5)),
    Case("unit-sphere", "cosine", _on_tree(ce_weight=0.0)),
    Case("hierarchical-ensemble", "plain", _on_tree(coarse=0.7)),
    # Batch norm between levels sees the samples of its own process, and their order of classes is their levels' order.
    Case("bilt", "plain", _on_tree(batch_norm=False), renames=False),
    Case("bilt", "released", _on_tree(batch_norm=False, preset="released", eps=0.2), renames=False),
]
# The first form of each objective with tree terms, and costs in place of the tree's distances, with and without a tree.
FIRST = list(
    {form.objective: form for form in reversed(FORMS) if form.objective not in ("kin", "static-labels")}.values()
)
CASES = [
    *FORMS,
    *map(_with_tree_terms, reversed(FIRST)),
    _with_tree_terms(next(form for form in FORMS if str(form) == "adaptive-labels-cosine-default")),
    Case("one-hot", "costs", lambda on: {"costs": on.embedding, "expected_cost": 0.4}),
    Case(
        "conditional-softmax",
        "costs",
        lambda on: {"taxonomy": on.taxonomy, "costs": on.embedding, "expected_cost": 0.4, "ancestors": 0.2},
    ),
    Case(
        "kin",
        "costs",
        lambda on: {"taxonomy": on.taxonomy, "costs": on.embedding, "expected_cost": 0.4, "ancestors": 0.0},
        pair=True,
        by_sample=False,
    ),
]

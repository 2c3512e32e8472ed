"""Causes for which a structured loss has no effect, planted on digits, and a healthy control.

Trees and objectives take turns with the seed; the split, the first weights and which classes are kin are drawn with it.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from small_runs import CLASSES, Case, digits, parts, plain, trained
from torch import Tensor

from labelkin import Taxonomy, relations
from labelkin.analysis import Diagnosis, diagnose
from labelkin.objectives import (
    ConditionalSoftmax,
    Context,
    ConvexHierarchical,
    Hierarchical,
    HierarchicalCrossEntropy,
    LabelSmoothing,
    MixedCrossEntropy,
    Objective,
    SemanticSmoothing,
)

# Trees over the digits, drawn with the seed.


def shuffled(seed: int) -> list[str]:
    return [CLASSES[i] for i in np.random.default_rng(seed).permutation(len(CLASSES))]


def pairs(seed: int) -> Taxonomy:
    names = shuffled(seed)
    return Taxonomy.from_groups({f"group{i}": names[2 * i : 2 * i + 2] for i in range(5)}, classes=CLASSES)


def halves(seed: int) -> Taxonomy:
    names = shuffled(seed)
    return Taxonomy.from_groups({"one": names[:5], "other": names[5:]}, classes=CLASSES)


def three_levels(seed: int) -> Taxonomy:
    names = shuffled(seed)
    return Taxonomy.from_nested([[names[:2], names[2:5]], [names[5:7], names[7:]]]).reorder(CLASSES)


def two_pairs(seed: int) -> Taxonomy:
    """Return a tree with little structure: six classes are in no group."""
    names = shuffled(seed)
    return Taxonomy.from_nested([names[:2], names[2:4], *names[4:]]).reorder(CLASSES)


def linkage(seed: int) -> Taxonomy:
    inputs, targets = digits()
    return Context(classes=CLASSES, inputs=inputs, targets=targets).tree()


def star(seed: int) -> Taxonomy:
    return Taxonomy.from_nested(list(CLASSES))


def only_children(seed: int) -> Taxonomy:
    """Return a tree of ten groups with one class each, which has no structure."""
    return Taxonomy.from_groups({f"group{name}": [name] for name in CLASSES})


def one_group(seed: int) -> Taxonomy:
    return Taxonomy.from_groups({"all": CLASSES})


def one_pair(seed: int) -> Taxonomy:
    names = shuffled(seed)
    return Taxonomy.from_nested([names[:2], *names[2:]]).reorder(CLASSES)


# Objectives on a tree, or on the relation that follows from it.

Make = Callable[[Taxonomy, int], Objective]


def on_tree(kind: type[Objective], **options: object) -> Make:
    return lambda tree, features: kind(taxonomy=tree, features=features, **options)


def smoothing(sigma: float) -> Make:
    return lambda tree, features: SemanticSmoothing(
        classes=CLASSES, relation=relations.tree(tree), sigma=sigma, features=features
    )


def soft_labels(falling: float) -> Make:
    """Use the soft labels of Bertinetto et al.; the weight falls by `exp(-falling)` per level of the tree."""
    return lambda tree, features: SemanticSmoothing(
        classes=CLASSES, targets=relations.tree_targets(tree, beta=falling * int(tree.height[0])), features=features
    )


def with_relation(kind: type[Objective], relation: Callable[[], object], **options: object) -> Make:
    return lambda tree, features: kind(classes=CLASSES, relation=relation(), features=features, **options)


def by_tree(**options: object) -> Make:
    return lambda tree, features: MixedCrossEntropy(
        classes=CLASSES, relation=relations.tree(tree), features=features, **options
    )


def by_looks() -> Tensor:
    inputs, targets = digits()
    return relations.lda(inputs, targets, classes=CLASSES)


HXE = HierarchicalCrossEntropy
TREES = (pairs, halves, three_levels, linkage, two_pairs)
SINGLES, UNIFORM = [f"group{name}" for name in CLASSES], (1 - torch.eye(10)) / 9
ACTING: tuple[Make, ...] = (
    on_tree(Hierarchical),
    on_tree(ConvexHierarchical),
    on_tree(ConditionalSoftmax),
    on_tree(HXE, alpha=0.05),
    on_tree(HXE, alpha=0.1),
    on_tree(HXE, alpha=0.5),
    smoothing(0.05),
    smoothing(0.1),
    smoothing(0.4),
    by_tree(eps=0.2),
    by_tree(eps=0.2, mixing="class", learn=True),
    with_relation(MixedCrossEntropy, by_looks, eps=0.2),
    soft_labels(2.0),
)
FLAT: tuple[tuple[Callable[[int], Taxonomy], Make], ...] = (
    (star, on_tree(Hierarchical)),
    (only_children, on_tree(ConditionalSoftmax)),
    (one_group, on_tree(HXE, alpha=0.5)),
    (one_pair, on_tree(ConvexHierarchical)),
    (star, smoothing(0.2)),
    (only_children, on_tree(Hierarchical, targets="leaf")),
    (one_pair, on_tree(HXE, alpha=0.5)),
)
ONE_HOT: tuple[Make, ...] = (
    smoothing(0.0),
    with_relation(SemanticSmoothing, lambda: relations.groups(SINGLES), sigma=0.4),
    with_relation(MixedCrossEntropy, lambda: torch.zeros(10, 10), eps=0.3),
    lambda tree, features: LabelSmoothing(classes=CLASSES, smoothing=0.2, features=features),
    with_relation(MixedCrossEntropy, lambda: UNIFORM, eps=0.3),
    soft_labels(20.0),
    with_relation(MixedCrossEntropy, by_looks, eps=0.05),
)
WEIGHTLESS: tuple[Make, ...] = (
    on_tree(HXE, alpha=0.0),
    on_tree(HXE, alpha=5e-3),
    on_tree(HXE, alpha=20.0),
    smoothing(5e-3),
    by_tree(eps=5e-3),
    by_tree(eps=0.2, learn=True, prior=0.0),
    soft_labels(7.0),
)


def planted(cause: str, seed: int) -> Case:
    """Return the case of a seed: trees and objectives alternate, and classes are assigned at random."""
    tree = TREES[seed % len(TREES)](seed)
    match cause:
        case "flat tree":
            flat, make = FLAT[seed % len(FLAT)]
            tree = flat(seed)
        case "targets without structure":
            make = ONE_HOT[seed % len(ONE_HOT)]
        case "weights vanish":
            make = WEIGHTLESS[seed % len(WEIGHTLESS)]
        case "tree respected already":
            tree, cue = ((pairs(seed), 1.0), (halves(seed), 1.0), (halves(seed), 0.99))[seed % 3]
            return Case(tree, partial(ACTING[seed % len(ACTING)], tree), cue)
        case _:
            # with three levels, the images show only the coarsest one
            make, cue = ACTING[seed % len(ACTING)], float(seed % len(TREES) == TREES.index(three_levels))
            return Case(tree, partial(make, tree), cue)
    return Case(tree, partial(make, tree))


def diagnosed(cause: str, seed: int) -> tuple[Diagnosis, Diagnosis]:
    """Return the diagnosis of a planted cause, with and without a reference model."""
    case = planted(cause, seed)
    part = parts(case, seed)
    objective, log_probs = trained(case.build, part, seed)
    _, reference = trained(plain, part, seed)
    target = part.held_out[1]
    beside = diagnose(objective, log_probs, target, taxonomy=case.tree, reference=reference)
    return beside, diagnose(objective, log_probs, target, taxonomy=case.tree)

"""Kin, labelkin's own objective: soft targets learned from the data, and the ancestors term of the tree."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_number
from labelkin.functional import (
    EmbeddingTerms,
    as_it_was,
    finite_rows,
    hierarchical_cross_entropy,
    is_soft,
    moved_rows,
)
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._label_embedding import LabelEmbedding
from labelkin.objectives._label_embedding_closed import TwoHeads
from labelkin.objectives._options import CommonShared
from labelkin.objectives._tree_buffers import in_class_order
from labelkin.structure import Taxonomy

if TYPE_CHECKING:
    from labelkin.objectives._context import Context

# The defaults that differ from those of `LabelEmbedding`.
PRESET = "kin"
ANCESTORS = 0.1
TAU = 2.0
MOMENTUM = 0.9
START = 0.9


class Kin(LabelEmbedding):
    """Train a classifier with labelkin's own objective: learned soft targets (after 003) plus the ancestors term (ours).

    A second head z2, which does not train the backbone, learns which classes are similar. `M_y` is the running mean of
    `softmax(z2 / tau)` over the samples of class y that z2 classifies correctly, and the head that predicts, z1, learns
    from it as well as from the class:
    `0.5 CE(z1, y) + 0.5 CE(z1, M_y) + CE(z2, y) + max(0, p2_y - alpha)^p + ancestors * sum_a -log P(a)`.
    The last sum is over the inner, non-root nodes a above the class, and P(a) is the probability that z1 gives to all
    classes below a. So the data determine which classes are similar, and the tree determines which mistakes are costly.

    The label embedding network learns an embedding E by gradient descent in place of M. The running mean is the
    optimum of that descent, and does not depend on the optimizer and the learning rate; `learning="gradient"` descends.

    - Targets may be class probabilities t, as in mixup. Every term is then the expected one, `sum_k t_k term(k)`: z1
      learns from `sum_k t_k M_k`, and a sample counts in the row m that z2 predicts, with weight `t_m`.
    - `node=` gives an inner node v where the class is unknown. Both heads then learn `-log P(v)`, and the ancestors term
      is over v and the nodes above it. The other terms are 0 and M does not change, because they need the class.

    Args:
        taxonomy: the tree of the classes.
        ancestors: weight of the ancestors term.
        learning: `"means"` for the running means M, `"gradient"` for the embedding of `LabelEmbedding`.
        momentum: share of `M_y` that is kept at each step with samples of class y. For `learning="means"`.
        start: the weight of class y in `M_y` before the first step; the other classes share the rest evenly. For
            `learning="means"`.
        tau, alpha, p, preset, start_after: as for `LabelEmbedding`.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        expected_cost, costs: as for `Objective`.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also the terms `hard`, `soft`, `similarity`, `confidence` and
        `ancestors`, and with `learning="gradient"` the term `embedding`.

    Example:
        >>> import torch
        >>> from labelkin import Kin, Taxonomy
        >>> head = Kin(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), features=4)
        >>> outputs = head(torch.randn(8, 4))
        >>> loss = head.loss_terms(outputs, torch.randint(3, (8,)))
        >>> loss.total.backward()
        >>> sorted(loss.terms)
        ['ancestors', 'confidence', 'hard', 'similarity', 'soft']
    """

    revision: ClassVar[int] = 2  # "means" became the default
    has_closed_form: ClassVar[bool] = True  # without nodes
    linear_in_target: ClassVar[bool] = True
    takes_nodes: ClassVar[bool] = True
    accumulates: bool = True  # by default; not with an embedding
    renamed_options: ClassVar[Mapping[str, str]] = {}

    _whole_batch = "it is computed from sums over the batch"

    taxonomy: Taxonomy
    means: Tensor

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        classes: int | Sequence[str] | None = None,
        ancestors: float = ANCESTORS,
        learning: str = "means",
        momentum: float = MOMENTUM,
        start: float = START,
        tau: float = TAU,
        alpha: float = 0.9,
        p: float = 1.0,
        preset: str = PRESET,
        start_after: int | None = None,
        **shared: Unpack[CommonShared],
    ) -> None:
        if taxonomy is None:
            raise InputError(
                "taxonomy: Kin needs the tree of the classes, and none was given; give a labelkin.Taxonomy, such as "
                "Taxonomy.from_nested({'animal': ['cat', 'dog'], 'vehicle': ['car']}), or use LabelEmbedding without one."
            )
        check_choice("learning", learning, ("means", "gradient"))
        check_number("momentum", momentum, low=0, high=1)
        check_number("start", start, low=0, high=1, open_low=True)
        taxonomy = in_class_order(taxonomy, classes)
        self._start = (learning, start)
        super().__init__(
            taxonomy.classes,
            taxonomy=taxonomy,
            ancestors=ancestors,
            tau=tau,
            alpha=alpha,
            p=p,
            preset=preset,
            start_after=start_after,
            **shared,
        )
        self.learning, self.momentum, self.start = learning, momentum, start

    def _make_embedding(self) -> None:
        learning, start = self._start
        if learning == "gradient":
            self.accumulates = False
            super()._make_embedding()
            return
        self.embedding_parameters = ()
        others = torch.full((self.num_classes, self.num_classes), (1 - start) / (self.num_classes - 1))
        self.register_buffer("means", others.fill_diagonal_(start))

    @property
    def divides_by_right(self) -> bool:
        return self.learning == "gradient" and super().divides_by_right

    def embed(self, target: Tensor | None = None) -> Tensor:
        if self.learning == "gradient":
            return super().embed(target)
        rows = as_it_was(self.means)
        return (rows if target is None else rows[target]).clamp_min(torch.finfo(rows.dtype).tiny).log()

    def compute(self, outputs: TwoHeads, batch: Batch) -> Loss:
        loss = super().compute(outputs, batch)
        if self.learning == "gradient" or not self.training:
            return loss
        return loss._replace(state={**(loss.state or {}), "means": self._moved_means(outputs.z2.detach(), batch)})

    def _moved_means(self, z2: Tensor, batch: Batch) -> Tensor:
        """Return the means, moved toward the softened predictions of the samples that z2 classifies correctly."""
        probs, guess = torch.softmax(z2 / self.tau, -1), z2.argmax(-1)
        if batch.node is not None:
            right = (guess == self.tree().leaf_class[self.known(batch)]).to(probs.dtype)
        elif is_soft(batch.target):
            right = batch.target.gather(-1, guess.unsqueeze(-1)).squeeze(-1)
            right = self._without_class_weight(right, z2, batch)
        else:
            right = (guess == batch.target).to(probs.dtype)
        sound = finite_rows(probs)  # a bad sample shows in the loss, and must not stay in the means
        weight = torch.where(sound.squeeze(-1), batch.weight * right, 0.0)
        rows = as_it_was(self.means).to(probs.dtype)
        return moved_rows(rows, torch.where(sound, probs, 0.0), guess, weight, self.momentum)

    def loss_from_features(self, features: Tensor, target: Tensor, **batch: Tensor | None) -> Loss:
        """Compute the loss; outputs are not computed in chunks with `learning="means"`, which holds K x K means anyway."""
        if self.learning == "gradient":
            return super().loss_from_features(features, target, **batch)
        return Objective.loss_from_features(self, features, target, **batch)

    @classmethod
    def revision_of(cls, options: Mapping[str, Any]) -> int:
        """Return the revision; `learning="gradient"` gives the results of revision 1."""
        return cls.revision - (options.get("learning") == "gradient")

    @classmethod
    def defaults(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().defaults(context, options), "taxonomy": options.get("taxonomy") or context.tree()}

    def _sample_terms(self, outputs: TwoHeads, batch: Batch) -> EmbeddingTerms:
        if batch.node is None:
            return super()._sample_terms(outputs, batch)
        node, tree = self.known(batch), self.tree()
        own = tree.leaf_class[node]
        unknown = own < 0
        terms = super()._sample_terms(outputs, Batch(own.clamp_min(0), batch.weight))

        def of_node(logits: Tensor, of_class: Tensor) -> Tensor:
            return torch.where(unknown, hierarchical_cross_entropy(logits, node, tree, alpha=0.0), of_class)

        return EmbeddingTerms(
            hard=of_node(outputs.z1, terms.hard),
            soft=terms.soft.masked_fill(unknown, 0),
            similarity=of_node(outputs.z2, terms.similarity),
            confidence=terms.confidence.masked_fill(unknown, 0),
            embedding=terms.embedding.masked_fill(unknown, 0),
            right=terms.right & ~unknown,
        )

"""Kin, labelkin's own objective: the label embedding network with the ancestors term."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.functional import EmbeddingTerms, hierarchical_cross_entropy
from labelkin.objectives._batch import Batch
from labelkin.objectives._label_embedding import LabelEmbedding, TwoHeads
from labelkin.objectives._options import CommonShared
from labelkin.objectives._tree_buffers import in_class_order
from labelkin.structure import Taxonomy

if TYPE_CHECKING:
    from labelkin.objectives._context import Context

# The defaults that differ from those of `LabelEmbedding`.
PRESET = "kin"
ANCESTORS = 0.1


class Kin(LabelEmbedding):
    """Train a classifier with labelkin's own objective: the label embedding network (003) plus the ancestors term (ours).

    The loss is that of `LabelEmbedding` with `preset="kin"` plus `ancestors` times the sum of `-log P(a)` over the inner,
    non-root nodes a above the class, where P(a) is the probability that z1 gives to all classes below a. The embedding
    learns from the data which classes are similar, and the tree says which mistakes are costly.

    - Targets may be class probabilities t, as in mixup. Every term is then the expected one, `sum_k t_k term(k)`: z1
      learns from `sum_k t_k softmax(E_k)`, and the embedding learns in the row m that z2 predicts, with weight `t_m`.
      A preset that divides the embedding term by the samples that z2 gets right divides it by the sum of `t_m`.
    - `node=` gives an inner node v where the class is unknown. Both heads then learn `-log P(v)`, and the ancestors term
      is over v and the nodes above it. The soft, confidence and embedding terms are 0, because they need the class.

    Args:
        taxonomy: the tree of the classes.
        ancestors: weight of the ancestors term.
        tau, alpha, p, preset, start_after: as for `LabelEmbedding`.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        expected_cost, costs: as for `Objective`.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also the terms of `LabelEmbedding` and `ancestors`.

    Example:
        >>> import torch
        >>> from labelkin import Kin, Taxonomy
        >>> head = Kin(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), features=4)
        >>> outputs = head(torch.randn(8, 4))
        >>> loss = head.loss_terms(outputs, torch.randint(3, (8,)))
        >>> loss.total.backward()
        >>> sorted(loss.terms)
        ['ancestors', 'confidence', 'embedding', 'hard', 'similarity', 'soft']
    """

    linear_in_target: ClassVar[bool] = True
    takes_nodes: ClassVar[bool] = True
    renamed_options: ClassVar[Mapping[str, str]] = {}

    taxonomy: Taxonomy

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        classes: int | Sequence[str] | None = None,
        ancestors: float = ANCESTORS,
        tau: float = 2.0,
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
        taxonomy = in_class_order(taxonomy, classes)
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

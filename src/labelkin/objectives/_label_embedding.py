"""The label embedding network (003): a second head learns which classes are similar, and the target is softened accordingly."""

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, Unpack

import torch
from torch import Tensor, nn

from labelkin._checks import check_choice, check_count, check_number
from labelkin.functional import (
    EmbeddingTerms,
    as_it_was,
    compressed_embedding,
    embedding_terms,
    is_soft,
    kernels,
    world_size,
)
from labelkin.objectives import _validation as inputs
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._label_embedding_chunked import CHUNK, in_chunks
from labelkin.objectives._label_embedding_closed import LowRankEmbedding, Sums, TwoHeads, WholeEmbedding
from labelkin.objectives._options import FlatShared

if TYPE_CHECKING:
    from labelkin.objectives._context import Context


class Preset(NamedTuple):
    """How a published form combines the five terms."""

    hard: float
    soft: float
    summed: bool  # the confidence term is summed over the batch rather than averaged
    absolute: bool  # |z2'_y - alpha| for the hinge
    start_after: int  # updates before the embedding teaches z1
    over_right: bool = True  # the embedding term is divided by the number of samples that z2 gets right, else by all


PRESETS = {
    "paper": Preset(hard=1.0, soft=1.0, summed=False, absolute=False, start_after=0),
    "released": Preset(hard=0.5, soft=0.5, summed=True, absolute=False, start_after=0),
    "released-text": Preset(hard=1.0, soft=1.0, summed=False, absolute=True, start_after=20_000, over_right=False),
    # Ours: the loss of a sample does not depend on the size of the batch ("kin"), nor on the other samples ("kin-mean").
    "kin": Preset(hard=0.5, soft=0.5, summed=False, absolute=False, start_after=0),
    "kin-mean": Preset(hard=0.5, soft=0.5, summed=False, absolute=False, start_after=0, over_right=False),
}


class LabelEmbedding(Objective):
    """Train a classifier with the label embedding network (003 Eq. 6-14).

    The loss has five terms over two heads, z1 and z2, and an embedding E (K x K) that starts as the identity:
    `CE(z1, y) + CE(z1, softmax(E_y)) + CE(z2, y) + max(0, p2_y - alpha)^p + CE(E_y, softmax(z2 / tau))`. The last term
    uses only samples that z2 classifies correctly. Outputs are a pair `TwoHeads(z1, z2)`; z1 predicts. With
    `features=None` the caller computes both and detaches the features of z2.

    Args:
        classes: number of classes, or their names.
        tau: temperature at which z2 teaches the embedding.
        alpha: confidence of z2 above which the hinge applies.
        p: power of the hinge.
        preset: `"paper"` is Eq. 14. `"released"` is the authors' vision code: weights of 0.5 for the first two terms and
            the hinge summed over the batch. `"released-text"` is their text code: an absolute difference instead of the
            hinge, the embedding term divided by all samples instead of the correct ones, and `start_after=20_000`.
            `"kin"` (ours, the default of `Kin`) has weights of 0.5 and averages the hinge, and `"kin-mean"` also divides
            the embedding term by all samples.
        start_after: updates before the embedding teaches z1, instead of the preset's. The identity gives the true class
            only 0.027 at K = 100 and 0.0001 at K = 22,439, so many classes need a value above 0.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.
        weights: the former name of `preset`.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also the terms `hard`, `soft`, `similarity`, `confidence`, `embedding`.

    Example:
        >>> import torch
        >>> from labelkin import LabelEmbedding
        >>> head = LabelEmbedding(classes=3, features=4, preset="released")
        >>> outputs = head(torch.randn(8, 4))
        >>> loss = head.loss(outputs, torch.randint(3, (8,)))
        >>> loss.backward()
        >>> head.label_vectors().shape
        torch.Size([3, 3])
    """

    outputs_type: ClassVar[type | None] = TwoHeads
    embedding_parameters: tuple[str, ...] = ("embedding",)
    # Whether the terms are those of `embedding_terms`; a subclass must set this itself.
    has_closed_form: ClassVar[bool] = True
    accumulates: bool = False  # a term is divided by the number of samples that z2 gets right
    renamed_options: ClassVar[Mapping[str, str]] = {"weights": "preset"}  # former name: name

    _whole_batch = "one of its terms is divided by the number of samples that z2 classifies correctly"

    updates: Tensor

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        tau: float = 2.0,
        alpha: float = 0.9,
        p: float = 1.0,
        preset: str = "paper",
        start_after: int | None = None,
        weights: str | None = None,
        **shared: Unpack[FlatShared],
    ) -> None:
        check_number("tau", tau, low=0, open_low=True)
        check_number("alpha", alpha, low=0, high=1)
        check_number("p", p, low=1)
        preset = preset if weights is None else weights
        check_choice("preset", preset, tuple(PRESETS))
        if start_after is not None:
            check_count("start_after", start_after, least=0)
        super().__init__(classes, **shared)
        self.tau, self.alpha, self.p, self.preset, self.start_after = tau, alpha, p, preset, start_after
        self.similarity_head = nn.Identity() if self.features is None else nn.Linear(self.features, self.num_classes)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self._make_embedding()

    @classmethod
    def revision_of(cls, options: Mapping[str, Any]) -> int:
        """Return the revision; that of "released-text" is one higher since its embedding term is divided by all tokens."""
        return cls.revision + ("released-text" in (options.get("preset"), options.get("weights")))

    @classmethod
    def free_options(cls) -> list[str]:
        return [name for name in super().free_options() if name not in cls.renamed_options]

    @classmethod
    def build(cls, context: "Context", **options: Any) -> Self:
        return super().build(context, **{cls.renamed_options.get(name, name): value for name, value in options.items()})

    @property
    def divides_by_right(self) -> bool:
        """Whether the embedding term is divided by the number of samples that z2 gets right."""
        return PRESETS[self.preset].over_right

    @property
    def weights(self) -> str:
        """The former name of `preset`."""
        return self.preset

    def _make_embedding(self) -> None:
        self.embedding = nn.Parameter(torch.eye(self.num_classes))

    def embed(self, target: Tensor | None = None) -> Tensor:
        """Return the embeddings of classes, (..., K) logits; None for all classes."""
        return self.embedding if target is None else self.embedding[target]

    def make_outputs(self, features: Any) -> TwoHeads:
        if self.features is None:
            return TwoHeads(*inputs.heads(self, features))
        return TwoHeads(self.head(features), self.similarity_head(features.detach()))

    def compute(self, outputs: TwoHeads, batch: Batch) -> Loss:
        return self._combine(self._sums(outputs, batch))

    def _sums(self, outputs: TwoHeads, batch: Batch) -> Sums:
        dtype = outputs.z1.dtype
        terms, tree = self._sample_terms(outputs, batch), self._tree_losses(outputs, batch)
        share = batch.weight * self._class_factor(batch, dtype)
        counted = self._counted(batch, dtype)
        right = terms.right.to(dtype)

        def total(losses: Tensor) -> Tensor:
            return (share * torch.where(batch.weight > 0, losses, 0.0)).sum()  # 0 * inf is NaN

        return Sums(
            hard=total(terms.hard),
            soft=total(terms.soft),
            similarity=total(terms.similarity),
            confidence=total(terms.confidence),
            embedding=total(right * terms.embedding),
            tree=torch.stack([total(losses) for losses in tree.values()]) if tree else share.new_zeros(0),
            weight=counted.sum(),
            right=(counted * self._without_class_weight(right, outputs.z2, batch)).sum(),
        )

    def _sample_terms(self, outputs: TwoHeads, batch: Batch) -> EmbeddingTerms:
        """Return the five terms of each sample."""
        z1, z2 = outputs
        e = self.embed(None if is_soft(batch.target) else batch.target).to(z1.dtype)
        absolute = PRESETS[self.preset].absolute
        return embedding_terms(z1, z2, e, batch.target, tau=self.tau, alpha=self.alpha, p=self.p, absolute=absolute)

    def _without_class_weight(self, right: Tensor, z2: Tensor, batch: Batch) -> Tensor:
        """Return the share that z2 gets right, without the class weights that class probabilities were multiplied by."""
        if self.class_weight is None or not is_soft(batch.target):
            return right
        factor = self.class_weight[z2.argmax(-1)].to(right.dtype)
        return torch.where(factor > 0, right / factor, 0.0)

    def _with_tree_terms(self, loss: Loss, outputs: TwoHeads, batch: Batch) -> Loss:
        return loss  # they are among the sums already, which chunks of samples share

    def _combine(self, sums: Sums, predicted: Tensor | None = None) -> Loss:
        terms = self._terms(sums, self._divisor(sums.weight), self._divisor(sums.right))
        return self._loss(self._total(terms), terms, predicted)

    def _loss(self, total: Tensor, terms: dict[str, Tensor], predicted: Tensor | None) -> Loss:
        return Loss(total, terms, {"updates": self.updates + 1}, predicted)

    def _terms(self, sums: Sums, samples: Tensor, right: Tensor) -> dict[str, Tensor]:
        preset = PRESETS[self.preset]
        terms = {
            "hard": sums.hard / samples,
            "soft": sums.soft / samples,
            "similarity": sums.similarity / samples,
            "confidence": sums.confidence * world_size() if preset.summed else sums.confidence / samples,
        }
        if self.embedding_parameters:
            terms["embedding"] = sums.embedding / (right if preset.over_right else samples)
        terms.update((name, sums.tree[i] / samples) for i, name in enumerate(self._tree_term_names()))
        return {name: term * samples for name, term in terms.items()} if self.reduction == "sum" else terms

    def _total(self, terms: Mapping[str, Tensor]) -> Tensor:
        """Return the sum of the terms, weighted according to the preset."""
        preset = PRESETS[self.preset]
        start_after = preset.start_after if self.start_after is None else self.start_after
        teaching = (as_it_was(self.updates) >= start_after).to(terms["soft"].dtype)
        learned = terms["similarity"] + terms["confidence"]
        if self.embedding_parameters:
            learned = learned + terms["embedding"]
        total = preset.hard * terms["hard"] + preset.soft * teaching * terms["soft"] + learned
        for name in self._tree_term_names():
            total = total + getattr(self, name) * terms[name]
        return total

    def loss_from_features(self, features: Tensor, target: Tensor, **batch: Tensor | None) -> Loss:
        """Compute the loss in chunks of samples, so that outputs of many classes are never held together."""
        if self.features is None or features[..., 0].numel() * self.num_classes <= CHUNK:
            return super().loss_from_features(features, target, **batch)
        return in_chunks(self, features, target, **batch)

    def _closed_options(self) -> kernels.EmbeddingOptions:
        absolute = PRESETS[self.preset].absolute
        return kernels.EmbeddingOptions(self.tau, self.alpha, self.p, absolute, rectified=False)

    def _embedding_in_chunks(self, wanted: Set[str]) -> WholeEmbedding | LowRankEmbedding:
        """Return the embedding's rows with the gradients of the requested parameters."""
        return WholeEmbedding(self.embedding, "embedding" in wanted)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the learned embedding, (K, K) logits, or only the rows of `classes`."""
        return self.embed(self._rows(classes)).detach()

    def no_weight_decay(self) -> set[str]:
        return set(self.embedding_parameters)


class CompressedLabelEmbedding(LabelEmbedding):
    """Train a classifier of many classes with a low-rank label embedding, `E_y = ReLU(A_y B)` (003 Eq. 15-16).

    The loss is that of `LabelEmbedding`; the K x K embedding is never held. Use `loss_from_features`, which computes
    outputs in chunks: at 50,000 classes three outputs of that width would not fit. A and B start normal, scaled so that an
    entry of A B has variance 1 (our choice).

    Args:
        classes: number of classes, or their names.
        rank: width of A and height of B.
        tau, alpha, p, preset, start_after, features, class_weight, weights: as for `LabelEmbedding`.

    Returns:
        `loss` returns the scalar loss, `loss_terms` and `loss_from_features` also its terms.

    Example:
        >>> import torch
        >>> from labelkin import CompressedLabelEmbedding
        >>> head = CompressedLabelEmbedding(classes=1000, rank=8, features=4)
        >>> loss = head.loss_from_features(torch.randn(8, 4), torch.randint(1000, (8,))).total
        >>> loss.backward()
        >>> head.label_vectors([0, 1]).shape
        torch.Size([2, 8])
    """

    embedding_parameters: tuple[str, ...] = ("a", "b")
    has_closed_form: ClassVar[bool] = True

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        rank: int = 100,
        tau: float = 2.0,
        alpha: float = 0.9,
        p: float = 1.0,
        preset: str = "paper",
        start_after: int | None = None,
        weights: str | None = None,
        **shared: Unpack[FlatShared],
    ) -> None:
        check_count("rank", rank)
        self._rank = rank
        super().__init__(
            classes, tau=tau, alpha=alpha, p=p, preset=preset, start_after=start_after, weights=weights, **shared
        )
        self.rank = rank

    def _make_embedding(self) -> None:
        self.a = nn.Parameter(torch.randn(self.num_classes, self._rank) * self._rank**-0.25)
        self.b = nn.Parameter(torch.randn(self._rank, self.num_classes) * self._rank**-0.25)

    def embed(self, target: Tensor | None = None) -> Tensor:
        return compressed_embedding(self.a, self.b, self._rows(None) if target is None else target)

    def _closed_options(self) -> kernels.EmbeddingOptions:
        return super()._closed_options()._replace(rectified=True)

    def _embedding_in_chunks(self, wanted: Set[str]) -> LowRankEmbedding:
        return LowRankEmbedding(self.a, self.b, "a" in wanted, "b" in wanted)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return rows of A, (K, rank); their cosine is the similarity of two classes."""
        return self.a[self._rows(classes, width=self.rank)].detach()

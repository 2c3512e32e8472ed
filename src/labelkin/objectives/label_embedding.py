"""The label embedding network (003): a second head learns which classes look alike, and its lesson softens the target."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import check_choice, check_count, check_number
from labelkin.functional import (
    compressed_embedding,
    embedding_terms,
    sum_over_processes,
    world_size,
)
from labelkin.functional.state import as_it_was
from labelkin.objectives import inputs
from labelkin.objectives.base import Objective
from labelkin.objectives.batch import Batch, Loss
from labelkin.objectives.chunks import CHUNK, in_chunks


class TwoHeads(NamedTuple):
    """The outputs of a label embedding network, each (..., K)."""

    z1: Tensor  # predicts
    z2: Tensor  # learns which classes look alike; the hidden layer never hears of it


class Preset(NamedTuple):
    """How the five terms are put together."""

    hard: float
    soft: float
    summed: bool  # the confidence term is summed over the batch rather than averaged
    absolute: bool  # |z2'_y - alpha| for the hinge
    start_after: int  # updates before the embedding teaches z1


PRESETS = {
    "paper": Preset(hard=1.0, soft=1.0, summed=False, absolute=False, start_after=0),
    "released": Preset(hard=0.5, soft=0.5, summed=True, absolute=False, start_after=0),
    "released-text": Preset(hard=1.0, soft=1.0, summed=False, absolute=True, start_after=20_000),
}


class Sums(NamedTuple):
    """The five terms summed over this process's samples, and the weight of the samples: all, and where z2 is right."""

    hard: Tensor
    soft: Tensor
    similarity: Tensor
    confidence: Tensor
    embedding: Tensor
    weight: Tensor
    right: Tensor


class LabelEmbedding(Objective):
    """The label embedding network (003 Eq. 6-14): five terms over two heads and an embedding E, K x K, that starts at I.

    `weights="paper"` is Eq. 14; `"released"` and `"released-text"` are what the authors' vision and text code does: .5 on
    the first two terms with the confidence term summed over the batch; and |.| for the hinge with the embedding teaching
    only after 20,000 updates. `start_after` sets that number for any of them: identity E gives the true class only .027 at
    K = 100 and .0001 at 22,439, so a large K wants it above 0.

    Outputs are a pair (z1, z2). With `features=None` the caller makes both, and keeps z2's gradient from the hidden layer.
    """

    outputs_type: ClassVar[type | None] = TwoHeads
    embedding_parameters: ClassVar[tuple[str, ...]] = ("embedding",)
    accumulates: ClassVar[bool] = False  # a term is divided by the number of samples that z2 gets right

    updates: Tensor

    def __init__(
        self,
        *,
        classes: int | Sequence[str],
        tau: float = 2.0,
        alpha: float = 0.9,
        p: float = 1.0,
        weights: str = "paper",
        start_after: int | None = None,
        features: int | None = None,
        class_weight: Any = None,
    ) -> None:
        check_number("tau", tau, low=0, open_low=True)
        check_number("alpha", alpha, low=0, high=1)
        check_number("p", p, low=1)
        check_choice("weights", weights, tuple(PRESETS))
        if start_after is not None:
            check_count("start_after", start_after, least=0)
        super().__init__(classes=classes, features=features, class_weight=class_weight)
        self.tau, self.alpha, self.p, self.weights, self.start_after = tau, alpha, p, weights, start_after
        self.similarity_head = nn.Identity() if features is None else nn.Linear(features, self.num_classes)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self._make_embedding()

    def _make_embedding(self) -> None:
        self.embedding = nn.Parameter(torch.eye(self.num_classes))

    def embed(self, target: Tensor) -> Tensor:
        """(..., K) the embeddings of classes, as logits."""
        return self.embedding[target]

    def forward(self, features: Tensor) -> TwoHeads:
        if self.features is None:
            return TwoHeads(*inputs.heads(self, features))
        return TwoHeads(self.head(features), self.similarity_head(features.detach()))

    def compute(self, outputs: TwoHeads, batch: Batch) -> Loss:
        return self._combine(self._sums(outputs, batch))

    def _sums(self, outputs: TwoHeads, batch: Batch) -> Sums:
        z1, z2 = outputs
        absolute = PRESETS[self.weights].absolute
        e = self.embed(batch.target).to(z1.dtype)
        terms = embedding_terms(z1, z2, e, batch.target, tau=self.tau, alpha=self.alpha, p=self.p, absolute=absolute)
        share = batch.weight * self.class_factor(batch, z1.dtype)
        right = terms.right.to(z1.dtype)
        return Sums(
            hard=(share * terms.hard).sum(),
            soft=(share * terms.soft).sum(),
            similarity=(share * terms.similarity).sum(),
            confidence=(share * terms.confidence).sum(),
            embedding=(share * right * terms.embedding).sum(),
            weight=batch.weight.sum(),
            right=(batch.weight * right).sum(),
        )

    def _combine(self, sums: Sums, predicted: Tensor | None = None) -> Loss:
        terms = self._terms(sums, self._divisor(sums.weight), self._divisor(sums.right))
        return self._loss(self._total(terms), terms, predicted)

    def _loss(self, total: Tensor, terms: dict[str, Tensor], predicted: Tensor | None) -> Loss:
        return Loss(total, terms, {"updates": self.updates + 1}, predicted)

    def _divisor(self, weight: Tensor) -> Tensor:
        """What a sum over this process's samples is divided by: the weight of all processes', shared among them."""
        total = sum_over_processes(weight.detach())
        return torch.where(total > 0, total, torch.ones_like(total)) / world_size()

    def _terms(self, sums: Sums, samples: Tensor, right: Tensor) -> dict[str, Tensor]:
        summed = PRESETS[self.weights].summed
        return {
            "hard": sums.hard / samples,
            "soft": sums.soft / samples,
            "similarity": sums.similarity / samples,
            "confidence": sums.confidence * world_size() if summed else sums.confidence / samples,
            "embedding": sums.embedding / right,
        }

    def _total(self, terms: Mapping[str, Tensor]) -> Tensor:
        """The terms added up as the preset says."""
        preset = PRESETS[self.weights]
        start_after = preset.start_after if self.start_after is None else self.start_after
        teaching = (as_it_was(self.updates) >= start_after).to(terms["soft"].dtype)
        learned = terms["similarity"] + terms["confidence"] + terms["embedding"]
        return preset.hard * terms["hard"] + preset.soft * teaching * terms["soft"] + learned

    def loss_from_features(self, features: Tensor, target: Tensor, **batch: Tensor | None) -> Loss:
        """The loss in chunks of samples, whose outputs are never held together."""
        if self.features is None or features[..., 0].numel() * self.num_classes <= CHUNK:
            return super().loss_from_features(features, target, **batch)
        return in_chunks(self, features, target, **batch)

    def log_probs(self, outputs: TwoHeads) -> Tensor:
        return F.log_softmax(inputs.single(self, outputs), -1)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """(K, K) the learned embedding."""
        return self.embed(self.rows(classes)).detach()

    def no_weight_decay(self) -> set[str]:
        return set(self.embedding_parameters)


class CompressedLabelEmbedding(LabelEmbedding):
    """The label embedding network for many classes: `E_y = ReLU(A_y B)` of a given `rank`, never K x K (003 Eq. 15-16).

    Use `loss_from_features`: at 50,000 classes three outputs of that width would be held otherwise. A and B start normal,
    scaled so that an entry of A B has variance 1 (ours).
    """

    embedding_parameters: ClassVar[tuple[str, ...]] = ("a", "b")

    def __init__(
        self,
        *,
        classes: int | Sequence[str],
        rank: int = 100,
        tau: float = 2.0,
        alpha: float = 0.9,
        p: float = 1.0,
        weights: str = "paper",
        start_after: int | None = None,
        features: int | None = None,
        class_weight: Any = None,
    ) -> None:
        check_count("rank", rank)
        self._rank = rank
        super().__init__(
            classes=classes,
            tau=tau,
            alpha=alpha,
            p=p,
            weights=weights,
            start_after=start_after,
            features=features,
            class_weight=class_weight,
        )
        self.rank = rank

    def _make_embedding(self) -> None:
        self.a = nn.Parameter(torch.randn(self.num_classes, self._rank) * self._rank**-0.25)
        self.b = nn.Parameter(torch.randn(self._rank, self.num_classes) * self._rank**-0.25)

    def embed(self, target: Tensor) -> Tensor:
        return compressed_embedding(self.a, self.b, target)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """(K, rank) rows of A, whose cosine says which classes are near."""
        return self.a[self.rows(classes, width=self.rank)].detach()

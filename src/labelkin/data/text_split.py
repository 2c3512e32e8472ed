"""Samples that are texts: read first, and turned into vectors once it is known which of them are trained on."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.data.dataset import ArraySplit, Split
from labelkin.data.encoders import DEFAULT, Encoder, encoder
from labelkin.data.read import Read


@dataclass(frozen=True, eq=False)
class TextSplit(ArraySplit):
    """An `ArraySplit` that keeps its `texts`; `inputs` are (n, 0) until an `encoder` has filled them."""

    texts: tuple[str, ...] = ()
    encoder: Encoder | None = None

    @classmethod
    def of(cls, texts: Sequence[str], targets: Tensor) -> Self:
        return cls(torch.empty(len(texts), 0), targets, texts=tuple(texts))

    def take(self, index: Tensor) -> Self:
        return replace(super().take(index), texts=tuple(self.texts[i] for i in index.tolist()))

    def encoded_by(self, by: Encoder) -> Self:
        return replace(self, inputs=by.encode(self.texts), encoder=by)

    def statistics(self) -> tuple[Tensor, Tensor]:
        """No shift and one scale for all features: the angles between texts are what an encoder means."""
        width = self.inputs.shape[1]
        lengths = torch.linalg.vector_norm(self.inputs, dim=1).double()  # (n,)
        return torch.zeros(width), torch.full((width,), float(lengths.square().mean().div(width).sqrt()) or 1.0)


def encoded(title: str, found: Read, name: str | None) -> Read:
    """The set with vectors for its texts; what the encoder has to learn it learns from the training split alone."""
    assert isinstance(found.train, TextSplit)
    fitted = encoder(name or DEFAULT).fitted(found.train.texts)

    def filled(part: str, split: Split | None) -> ArraySplit | None:
        if not isinstance(split, TextSplit):
            return None
        done = split.encoded_by(fitted)
        _check_known(title, part, done.inputs, fitted.name)
        return done

    train = filled("train", found.train)
    assert train is not None
    return found._replace(train=train, test=filled("test", found.test), val=filled("val", found.val))


def _check_known(title: str, part: str, vectors: Tensor, name: str) -> None:
    unknown = without_words(vectors)
    if unknown and unknown == len(vectors):
        raise InputError(f"{title}: none of the {unknown:,} {part} texts has a word that {name} knows; are they texts?")
    warn_unknown(f"{title}: {unknown:,} of {len(vectors):,} {part} texts", unknown, name)


def without_words(vectors: Tensor) -> int:
    """How many texts have no word that their encoder knows."""
    return int((vectors == 0).all(1).sum())


def warn_unknown(which: str, unknown: int, name: str) -> None:
    if unknown:
        warnings.warn(f"{which} have no word that {name} knows; their features are all zero.", stacklevel=2)

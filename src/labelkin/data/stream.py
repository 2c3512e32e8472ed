"""Image files read batch by batch, by worker processes where asked."""

from collections.abc import Generator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from labelkin.data.dataset import FileSplit
from labelkin.data.images import UnreadableImage


class Sample(NamedTuple):
    image: Tensor
    failure: str | None


class Streamed(NamedTuple):
    """Images (n, C, H, W), black where one could not be read; `failures` says why, by place in the batch."""

    images: Tensor
    failures: dict[int, str]


def stream(split: FileSplit, indices: Sequence[Tensor], *, workers: int, pin: bool) -> Generator[Streamed]:
    """One batch for each tensor of positions, in their order."""
    loader = DataLoader(
        _Files(split),
        batch_sampler=[index.tolist() for index in indices],
        num_workers=workers,
        collate_fn=_together,
        pin_memory=pin,
        generator=torch.Generator(),  # its own, or each epoch would move the global one that dropout draws from
    )
    yield from loader


class _Files(Dataset[Sample]):
    def __init__(self, split: FileSplit) -> None:
        self.split = split

    def __getitem__(self, position: int) -> Sample:
        try:
            return Sample(self.split.read(position), None)
        except UnreadableImage as error:  # as a value: a worker's exception would arrive as a page of traceback
            return Sample(torch.zeros(self.split.shape, dtype=torch.uint8), error.reason)


def _together(samples: Sequence[Sample]) -> Streamed:
    failures = {place: sample.failure for place, sample in enumerate(samples) if sample.failure is not None}
    return Streamed(torch.stack([sample.image for sample in samples]), failures)

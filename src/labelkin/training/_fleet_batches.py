"""The batches of a fleet: at each step one batch for each member, in the order in which the member would see it alone."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from labelkin.data import Batches, Minibatch, Visits


class FleetBatches:
    """Batches of one split for members that differ in the seed; the samples are on the device once.

    Args:
        batches: The batches of one member, in memory.
        seeds: The seed of each member.

    >>> from labelkin.data import ArraySplit
    >>> split = ArraySplit(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]))
    >>> fleet = FleetBatches(Batches(split, batch_size=2, shuffle=True), seeds=[0, 1, 2])
    >>> next(fleet.epoch(0)).inputs.shape
    torch.Size([3, 2, 2])
    """

    def __init__(self, batches: Batches, seeds: Sequence[int]) -> None:
        self.batches = batches
        self.members = [batches.with_seed(seed) for seed in seeds]
        self.batch_size, self.in_memory = batches.batch_size, batches.in_memory

    def __len__(self) -> int:
        """Return the number of steps per epoch."""
        return len(self.batches)

    def visits(self, epoch: int) -> Visits:
        """Return the members' orders (n, members) and random numbers (n, members, numbers), on the device."""
        orders, draws = zip(*(member.visits(epoch) for member in self.members), strict=True)
        return Visits(torch.stack(orders, 1), torch.stack(draws, 1))

    def take(self, index: Tensor, draws: Tensor) -> Minibatch:
        """Return the batch of some samples, with the members on the first axis.

        Args:
            index: (n, members) positions of the samples.
            draws: (n, members, numbers) random numbers of the augmentations.
        """
        count, members = index.shape
        batch = self.batches.take(index.T.flatten(), draws.transpose(0, 1).flatten(0, 1))
        return type(batch)(*(field.reshape(members, count, *field.shape[1:]) for field in batch))

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Minibatch]:
        """Yield the batches of one epoch after `start` steps."""
        order, draws = self.visits(epoch)
        for first in range(start * self.batch_size, len(order), self.batch_size):
            span = slice(first, first + self.batch_size)
            yield self.take(order[span], draws[span])

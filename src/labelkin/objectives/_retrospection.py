"""Learning with retrospection (Deng & Zhang), the LWR baseline of 001: a sample's own earlier outputs are its soft label."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

import torch
from torch import Tensor

from labelkin._arrays import reads_values
from labelkin._checks import InputError, check_count, check_number, counted
from labelkin.functional import (
    as_it_was,
    cross_entropy,
    finite_rows,
    retrospection,
    sum_by_class,
    sum_over_processes,
    world_size,
)
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import FlatShared

if TYPE_CHECKING:
    from labelkin.objectives._context import Context

CHUNK = 2**24  # entries of the table that processes exchange at once


class Retrospection(Objective):
    """Train with LWR, `(1 - b) CE + b tau^2 KL(soft || softmax(logits / tau))` with `b = 0.9 epoch / epochs`.

    Deng & Zhang, as used in 001. The soft labels are the sample's own probabilities at temperature `tau`, recorded in
    training mode in epochs `every`, `2 every`, and so on; samples without any get plain cross entropy. Call `begin_epoch`
    before every epoch, and pass `index=`, each sample's position in the training set, to the loss.

    The table is not a buffer, because data-parallel training overwrites buffers with those of process 0. Processes exchange
    recorded rows once per epoch.

    Args:
        classes: number of classes, or their names.
        samples: size of the training set.
        tau: temperature.
        every: epochs between recordings, the paper's k.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss.

    Example:
        >>> import torch
        >>> from labelkin import Retrospection
        >>> head = Retrospection(classes=3, samples=8, features=4)
        >>> head.begin_epoch(0, 10)
        >>> loss = head.loss(head(torch.randn(8, 4)), torch.randint(3, (8,)), index=torch.arange(8))
        >>> loss.backward()
    """

    needs = frozenset({"index", "refresh"})

    epoch: Tensor
    epochs: Tensor
    means: Tensor

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        samples: int,
        tau: float = 5.0,
        every: int = 2,
        **shared: Unpack[FlatShared],
    ) -> None:
        check_count("samples", samples)
        check_number("tau", tau, low=0, open_low=True)
        check_count("every", every)
        super().__init__(classes, **shared)
        self.samples, self.tau, self.every = samples, tau, every
        self.register_buffer("epoch", torch.zeros((), dtype=torch.int64))  # from 1; 0 before the first
        self.register_buffer("epochs", torch.ones((), dtype=torch.int64))
        self.register_buffer("means", torch.zeros(self.num_classes, self.num_classes))
        # The last row belongs to no sample: rows that are not recorded are written there, so that a step has no branches.
        self._soft = torch.zeros(samples + 1, self.num_classes)
        self._recorded = torch.zeros(samples + 1, dtype=torch.bool)
        self._fresh = torch.zeros(samples + 1, dtype=torch.bool)  # recorded by this process and not yet sent to others
        self._started = False

    @classmethod
    def defaults(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().defaults(context, options), "samples": context.samples}

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        super().begin_epoch(epoch, epochs)
        if epoch == 0 and epochs <= self.every:
            warnings.warn(
                f"Retrospection: {counted(epochs, 'epoch')} cannot learn from earlier outputs, "
                f"which are recorded in epoch {self.every} and used after it; this trains as one-hot does. Train for at least "
                f"{counted(self.every + 1, 'epoch')}.",
                stacklevel=2,
            )
        self.synchronize()
        self.epoch.fill_(epoch + 1)
        self.epochs.fill_(epochs)
        self._started = True

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        if not self.training:
            return self._only_term("cross_entropy", cross_entropy(outputs, batch.target), batch)
        index = self._checked_index(batch)
        share = 0.9 * self.epoch.to(outputs.dtype) / self.epochs
        soft, recorded = as_it_was(self._soft[index]).to(outputs.dtype), as_it_was(self._recorded[index])
        sound = finite_rows(soft)  # earlier versions could save a row that is not finite
        soft, recorded = torch.where(sound, soft, 0.0), recorded & sound.squeeze(-1)
        losses = retrospection(outputs, batch.target, soft, recorded, tau=self.tau, share=share)
        total = self._reduce(losses, batch)
        rows = torch.softmax(outputs.detach() / self.tau, -1)
        sound = finite_rows(rows)
        record = (self.epoch % self.every == 0) & (batch.weight > 0) & sound.squeeze(-1)
        place = torch.where(record, index, self.samples)
        rows = torch.where(sound, rows, 0.0)
        return Loss(total, {"retrospection": total}, {"place": place, "rows": rows})

    def _checked_index(self, batch: Batch) -> Tensor:
        if not self._started:
            raise InputError("Retrospection: call begin_epoch(epoch, epochs) before the first step of every epoch.")
        if batch.index is None:
            raise InputError("index: Retrospection needs each sample's position in the training set, as index=.")
        index = torch.where(batch.weight > 0, batch.index, self.samples)  # padding may hold anything
        if not reads_values(index):
            return index
        if int(index.min()) < 0 or int(batch.index.masked_fill(batch.weight == 0, 0).max()) >= self.samples:
            raise InputError(f"index: expected positions from 0 to {self.samples - 1} (samples={self.samples}).")
        return index

    def commit(self, state: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            # Not `table[place] = value`, which makes a GPU wait for the value.
            self._soft.index_copy_(0, state["place"], state["rows"].to(self._soft.dtype))
            self._fresh.index_fill_(0, state["place"], True)
            self._recorded.index_fill_(0, state["place"], True)
            self._recorded[-1:].zero_()

    def synchronize(self) -> None:
        """Exchange recorded rows among processes; a sample that several recorded gets the mean of their rows."""
        if world_size() > 1:
            self._exchange()
        self._fresh.zero_()

    def _exchange(self) -> None:
        count = sum_over_processes(self._fresh.to(self._soft.dtype))
        for rows in torch.split(torch.arange(len(count), device=count.device), max(1, CHUNK // self.num_classes)):
            own = self._soft[rows] * self._fresh[rows].unsqueeze(-1)
            total, seen = sum_over_processes(own), count[rows].unsqueeze(-1)
            self._soft[rows] = torch.where(seen > 0, total / seen.clamp_min(1), self._soft[rows])
        self._recorded[:-1] |= count[:-1] > 0

    def refresh(self, batches: Iterable[tuple[Tensor, ...]]) -> None:
        """Compute the class means of the outputs, which are the label vectors of LWR (001 Eq. 1)."""
        means = sum_by_class(batches, self.num_classes, self.num_classes).means()
        self.means.copy_(torch.where(finite_rows(means), means, self.means.to(means)))

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return class means of the outputs over the training set, (K, K), from the last `refresh`."""
        return self.means[self._rows(classes)]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or convert the table with the module, because it is not a buffer."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._soft, self._recorded, self._fresh = map(fn, (self._soft, self._recorded, self._fresh))
        return self

    def get_extra_state(self) -> dict[str, Any]:
        table = {"soft": self._soft, "recorded": self._recorded, "fresh": self._fresh, "started": self._started}
        return {**table, "signature": super().get_extra_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if state["soft"].shape != self._soft.shape:
            raise InputError(
                f"Retrospection: the saved table is of {counted(len(state['soft']) - 1, 'sample')} of "
                f"{state['soft'].shape[-1]} classes, "
                f"this one of {self.samples} of {self.num_classes}; build it with the same arguments as the saved one."
            )
        for own, name in ((self._soft, "soft"), (self._recorded, "recorded"), (self._fresh, "fresh")):
            own.copy_(state[name])  # in place: a checkpoint is read on the CPU, the table stays where the objective is
        self._started = state["started"]

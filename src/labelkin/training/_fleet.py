"""Train several runs that differ in seed and objective as one batched model, with the same results as if trained alone."""

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from labelkin.training._captured_steps import make_steps
from labelkin.training._checkpoint import Pace
from labelkin.training._fabric import make_fabric, place_of, without_advice
from labelkin.training._fleet_batches import FleetBatches
from labelkin.training._fleet_check import NotBatched, check_scores, check_step, reason_against
from labelkin.training._fleet_model import FleetModel
from labelkin.training._interrupt import Diverged, Interrupted, StopAfterStep
from labelkin.training._loop import Trained, Trainer
from labelkin.training._optimizer import make_optimizer, optimizer_of
from labelkin.training._progress import Progress, Silent
from labelkin.training._settings import Settings
from labelkin.training._steps import LossSum, Workbench
from labelkin.training._task import Classify, Evaluation

MOST_SCORES = (
    2**28
)  # scores of all members on a part of the data that are held at once; with more, members are evaluated one by one


class FleetPace(Pace):
    """Decide once for all members whether to save after an epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.decision = True

    def due(self) -> bool:
        """Return the decision of this epoch."""
        return self.decision

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Do nothing for one member; `saving_all` measures the time of all."""
        yield

    @contextmanager
    def saving_all(self) -> Iterator[None]:
        """Decide whether to save, and measure how long the members' saves in this `with` block take."""
        self.decision = super().due()
        if not self.decision:
            yield
            return
        with super().saving():
            yield


class FleetMember(Trainer):
    """A run of a fleet: the fleet trains it, and it evaluates and saves itself as `Trainer` does.

    The arguments are those of `Trainer`.
    """

    fleet: "Fleet"
    row: int
    failure: Exception | None = None

    def join(self, fleet: "Fleet", row: int, loss_sum: LossSum) -> None:
        """Use the objects that all members of the fleet share."""
        self.fleet, self.row, self.loss_sum = fleet, row, loss_sum
        self.fabric, self.place, self.batches, self.pace = fleet.fabric, fleet.place, fleet.batches, fleet.pace
        self.optimizer = make_optimizer(self.model, self.settings)

    def _refresh(self) -> None:
        """Do nothing: the fleet refreshes all members before it evaluates them together."""

    def refresh(self) -> None:
        """Let the objective pass over the training set, if it needs to."""
        super()._refresh()

    def _evaluate(self, part: str) -> Evaluation:
        found = self.fleet.evaluations(part)
        return super()._evaluate(part) if found is None else found[self.row]

    def _optimizer_state(self) -> dict[str, Any]:
        """Return the state that the member's own optimizer would have."""
        shared, lr = self.fleet.optimizer.state, self.fleet.steps.optimizer_state()["param_groups"][0]["lr"]
        for own, stacked, row in self.fleet.model.parts_of(self.row):
            if stacked in shared:
                self.optimizer.state[own] = {
                    name: value[row] if _is_like(name, value, stacked.shape) else value
                    for name, value in shared[stacked].items()
                }
        state: dict[str, Any] = self.optimizer.state_dict()
        return {**state, "param_groups": [{**group, "lr": lr} for group in state["param_groups"]]}

    def _save(self, *, needed: bool = True) -> None:
        torch.manual_seed(self.settings.seed)  # a fleet draws no random numbers, so this is the member's own state
        super()._save(needed=needed)


class Fleet:
    """Train members that share data, backbone architecture and settings but the seed.

    Each member sees its own samples in its own order and starts from its own weights, so its results are the same as if it were
    trained alone, up to the rounding of batched kernels. The first batch is also computed member by member; if a loss or a
    gradient differs, or the model draws random numbers or reads values, `fit` raises `NotBatched` before any step.

    Args:
        members: The runs. Those with objectives of one kind must be adjacent.
        kinds: What each member's objective depends on besides the seed.
        progress: Called with the number of steps in an epoch; returns what displays the progress of all members.
    """

    def __init__(
        self,
        members: Sequence[FleetMember],
        kinds: Sequence[Hashable],
        *,
        progress: Callable[[int], Progress] = lambda steps: Silent(),
    ) -> None:
        task = members[0].task
        assert isinstance(task, Classify)
        self.members, self.kinds, self.task, self.progress = list(members), list(kinds), task, progress
        self.settings: Settings = members[0].settings
        self.pace = FleetPace()
        self._found: dict[str, list[Evaluation] | None] = {}  # evaluations of the current weights
        self._scores_batched = self.settings.evaluation == "eval"

    def fit(self, *, resume: bool = False) -> list[Trained | Exception]:
        """Train all members to the end.

        Args:
            resume: Whether to continue from the members' states, if they have any.

        Returns:
            The result of each member, or the error that ended it, such as `Diverged`.
        """
        threads = torch.get_num_threads()
        torch.set_num_threads(self.settings.threads)
        try:
            self._prepare(resume)
            with self.progress(len(self.batches)) as progress, StopAfterStep() as stop:
                for epoch in range(self.members[0].epoch, self.settings.epochs):
                    self._train_epoch(epoch, progress, stop)
                    self._end_epoch(epoch, progress, stop)
                    if not self._going():
                        break
            return self._results()
        finally:
            torch.set_num_threads(threads)

    def _prepare(self, resume: bool) -> None:
        """Stack the members on the device, and restore their states if requested."""
        if (reason := reason_against(self.settings, self.task.dataset)) is not None:
            raise NotBatched(reason)
        self.fabric = make_fabric(self.settings)
        with without_advice():
            self.fabric.launch()
        self.place = place_of(self.fabric)
        for member in self.members:
            member.model.to(self.place.device)
        self.model = FleetModel([member.model for member in self.members], self.kinds)
        groups = self.model.parameter_groups(weight_decay=self.settings.weight_decay)
        self.forward, self.optimizer = self.fabric.setup(self.model, optimizer_of(groups, self.settings))
        self.model.bind()  # setup may have changed the precision
        self.batches = FleetBatches(
            self.task.batches(self.settings, self.place), [member.settings.seed for member in self.members]
        )
        loss_sum = LossSum(self.place.device, members=len(self.members))
        for row, (member, own) in enumerate(zip(self.members, loss_sum.split(), strict=True)):
            member.join(self, row, own)
            if resume:
                member._restore()
        if len({(member.epoch, member.step) for member in self.members}) > 1:
            raise NotBatched("their saved states are of different steps")
        self._stack_optimizer_states()
        bench = Workbench(
            self.fabric,
            self.forward,
            self.optimizer,
            self.task,
            self.batches,
            self.settings,
            self.place,
            loss_sum,
            self.model.clip,
        )
        self.steps = make_steps(bench, self.model.objectives)
        for member in self.members:
            member.steps = self.steps
        self._checked = self._noted = False

    def _stack_optimizer_states(self) -> None:
        """Join the states of the members' optimizers, after they were restored."""
        parts: dict[Tensor, list[Mapping[str, Any]]] = {}
        for member in self.members:
            for own, stacked, _ in self.model.parts_of(member.row):
                if own in member.optimizer.state:
                    parts.setdefault(stacked, []).append(member.optimizer.state[own])
        for joined, states in parts.items():
            self.optimizer.state[joined] = {
                name: torch.stack([state[name] for state in states])
                if _is_like(name, value, joined.shape[1:])
                else value
                for name, value in states[0].items()
            }

    def _train_epoch(self, epoch: int, progress: Progress, stop: StopAfterStep) -> None:
        """Train the remaining steps of an epoch; on Ctrl-C save all members and raise `Interrupted`."""
        start = self.members[0].step
        for member in self.members:
            member.model.train()
            if start == 0:
                member.loss_sum.reset()
                member.model.objective.begin_epoch(epoch, self.settings.epochs)
        self._rows_changed()
        self._check(epoch, start)
        begun = perf_counter()
        for step, losses in enumerate(self.steps.epoch(epoch, start=start), start + 1):
            progress.step(epoch, step, losses.mean())
            if step < len(self.batches) and stop.agreed(self.place.device):
                self._count(step, begun)
                for member in self._going():
                    member._save()
                raise Interrupted
        if self.place.device.type == "cuda":
            torch.cuda.synchronize(self.place.device)  # or the time would not include the last steps
        self._count(len(self.batches), begun)
        if self.steps.not_captured is not None and not self._noted:
            progress.note(f"steps are not captured as CUDA graphs: {self.steps.not_captured}")
            self._noted = True

    def _count(self, step: int, begun: float) -> None:
        """Record the position, and give each member its share of the time."""
        for member in self.members:
            member.step = step
            member.seconds += (perf_counter() - begun) / len(self.members)

    def _going(self) -> list[FleetMember]:
        return [member for member in self.members if member.failure is None]

    def _rows_changed(self) -> None:
        """Copy tensors that objectives replaced into the stack, and discard evaluations of earlier weights."""
        self.model.bind()
        self._found.clear()

    def _check(self, epoch: int, start: int) -> None:
        """Compare the first step with that of every member alone; raise `NotBatched` if one differs."""
        if self._checked:
            return
        self._checked = True
        batch = next(iter(self.batches.epoch(epoch, start=start)))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "There is a performance drop")
            check_step(self.model, self.forward, self.task, self.fabric, batch)
            if self._scores_batched:
                self._scores_batched = check_scores(self.model, self.fabric, batch)

    def evaluations(self, part: str) -> list[Evaluation] | None:
        """Return every member's evaluation of a part of the data; None if members must be evaluated one by one."""
        if part not in self._found:
            self._found[part] = self._evaluated(part)
        return self._found[part]

    def _evaluated(self, part: str) -> list[Evaluation] | None:
        samples = len(self.task.dataset.splits[part])
        entries = samples * len(self.task.dataset.classes) * len(self.members)
        if not self._scores_batched or entries > MOST_SCORES:
            return None
        with self.fabric.autocast():
            return self.task.evaluate_members(self.model, part, self.place)

    @torch.no_grad()
    def _end_epoch(self, epoch: int, progress: Progress, stop: StopAfterStep) -> None:
        """Let each member evaluate, record and save its epoch."""
        for member in self.members:
            member.model.eval()
            member.refresh()
        self._rows_changed()
        rows: list[dict[str, float]] = []
        shown = _Rows(rows)
        with self.pace.saving_all():
            for member in self._going():
                try:
                    member._end_epoch(epoch, shown, StopAfterStep())
                except Diverged as error:
                    member.failure = error
        for member in self.members:
            member.epoch, member.step = epoch + 1, 0
        if rows:
            progress.epoch(epoch, {name: sum(row[name] for row in rows) / len(rows) for name in _common(rows)})
        if self.members[0].epoch < self.settings.epochs and stop.agreed(self.place.device, now=True):
            for member in self._going():
                member._save()
            raise Interrupted

    @torch.no_grad()
    def _results(self) -> list[Trained | Exception]:
        """Let each member report its best epoch."""
        for member in self._going():
            if member.best is not None:
                member.model.load_state_dict(member.best)
            member.model.eval()
        self._rows_changed()
        return [member._result() if member.failure is None else member.failure for member in self.members]


def _is_like(name: str, value: Any, shape: torch.Size) -> bool:
    """Return whether an entry of an optimizer's state has the shape of the parameter, unlike a counter."""
    return name != "step" and isinstance(value, Tensor) and value.shape == shape


class _Rows(Silent):
    """Collect the metrics that members report at the end of an epoch."""

    def __init__(self, rows: list[dict[str, float]]) -> None:
        self.rows = rows

    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> None:
        self.rows.append(dict(metrics))


def _common(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the metrics that all members have."""
    return [name for name in rows[0] if all(name in row for row in rows)]

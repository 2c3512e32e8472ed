"""A finished run as a model that predicts."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from labelkin._checks import InputError, listed
from labelkin.data import Normalize
from labelkin.data.unlabelled import Samples
from labelkin.experiments.assemble import restored_context
from labelkin.experiments.spec import RunSpec
from labelkin.structure import Taxonomy
from labelkin.training import RunFolder
from labelkin.training.assemble import build_model

BATCH = 1024


class Prediction(NamedTuple):
    classes: list[str]
    positions: Tensor  # (n,)
    scores: Tensor  # (n, K); log-probabilities where the objective defines them
    probabilities: Tensor | None  # (n,) of the class predicted; None where the objective defines none


class Predictor(nn.Module):
    """Inputs as the data had them (uint8 images or raw features) in, scores out."""

    mean: Tensor
    std: Tensor

    def __init__(self, folder: RunFolder) -> None:
        super().__init__()
        config, setup = folder.config, folder.setup
        self.spec = RunSpec.from_dict(config)
        context = restored_context(setup["context"])
        self.classes: tuple[str, ...] = context.classes
        self.taxonomy: Taxonomy = context.tree()
        self.tree_built = (
            config["tree"] == "built"
        )  # from the data, so that its inner nodes have no meaning of their own
        self.shape = tuple(setup["shape"])
        self.samples = Samples(**setup["samples"])
        self.model = build_model(
            self.spec.objective, setup["options"], config["resolved_backbone"], self.shape, context, seed=0
        )
        try:
            self.model.load_state_dict(folder.model_state())
        except RuntimeError as error:
            raise InputError(
                f"{folder.path}: the weights are of another model than config.json says; train anew."
            ) from error
        self.register_buffer("mean", setup["mean"])
        self.register_buffer("std", setup["std"])
        self.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        """(n, ...) raw inputs to (n, K) scores."""
        return self.model.objective.scores(self.outputs(inputs))

    def outputs(self, inputs: Tensor) -> Any:
        """(n, ...) raw inputs to the objective's outputs."""
        return self.model(Normalize(self.mean, self.std)(inputs))

    @torch.no_grad()
    def predict(self, inputs: Any) -> Prediction:
        """The class of each input, given as an array or tensor of the training data's shape and range."""
        values = torch.as_tensor(inputs)
        self.check(values)
        parts = [self._predict(part.to(self.mean.device)) for part in torch.split(values, BATCH)]
        scores = torch.cat([part[0] for part in parts])
        best = scores.argmax(-1)
        log_probs = torch.cat([part[1] for part in parts])
        probabilities = log_probs.gather(-1, best.unsqueeze(-1)).squeeze(-1).exp() if log_probs.numel() else None
        return Prediction([self.classes[i] for i in best.tolist()], best, scores, probabilities)

    def _predict(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and log-probabilities on the CPU, the latter without columns where the objective defines none."""
        outputs = self.outputs(inputs)
        scores = self.model.objective.scores(outputs).float().cpu()
        try:
            return scores, self.model.objective.log_probs(outputs).float().cpu()
        except InputError:
            return scores, scores[:, :0]

    def check(self, values: Tensor) -> None:
        """Refuse inputs of another shape, or of another range where the run was trained on bytes."""
        if tuple(values.shape[1:]) != self.shape:
            raise InputError(
                f"inputs: expected shape (n, {', '.join(map(str, self.shape))}), got {tuple(values.shape)}."
            )
        if values.is_floating_point() and not bool(values.isfinite().all()):
            wrong = (~values.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()
            raise InputError(f"inputs: expected finite numbers, got NaN or infinite ones in row {listed(wrong)}.")
        if not self.samples.pixels or values.dtype == torch.uint8 or not len(values):
            return
        low, high = float(values.min()), float(values.max())
        if not values.is_floating_point() or low < 0 or high > 1:
            raise InputError(
                f"inputs: expected bytes (uint8), as in training, or numbers from 0 to 1, got {values.dtype} from {low:g} "
                f"to {high:g}; convert them first."
            )

    def path(self, position: int) -> str | None:
        """The way down the taxonomy to a class, `"root/animal/cat"`; None where the tree was built from the data."""
        if self.tree_built:
            return None
        nodes = self.taxonomy.ancestors(int(self.taxonomy.leaves[position])).tolist()
        return "/".join(self.taxonomy.names[node] for node in nodes)

    def __repr__(self) -> str:
        return f"Predictor({self.spec.objective} on {self.spec.data}, {len(self.classes)} classes)"


def load(run: str | os.PathLike[str]) -> Predictor:
    """The trained model of a run's folder, on the CPU."""
    folder = RunFolder(run_at(run))
    if folder.config.get("kind") == "translation":
        raise InputError(f"{run}: a run that translates; use `labelkin translate` for it.")
    return Predictor(folder)


def run_spec(run: str | os.PathLike[str]) -> RunSpec:
    """What the run of a folder was asked to be."""
    return RunSpec.from_dict(RunFolder(run_at(run)).config)


def run_at(path: str | os.PathLike[str]) -> Path:
    """The path of a run's folder; where it is none, the runs below it are named."""
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder.")
    if not (folder / "config.json").exists():
        inside = sorted(str(file.parent) for file in folder.glob("*/config.json"))
        hint = f" The runs below it: {listed(inside)}." if inside else ""
        raise InputError(f"{folder}: not the folder of a run; it has no config.json.{hint}")
    return folder

"""Load a finished run as a model that predicts."""

import os
from collections.abc import Mapping
from math import nan
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelkin._checks import InputError, listed, one_line, refuse_damaged
from labelkin.data import Normalize, SampleFormat, samples_at_once
from labelkin.decide import Rule, RuleName, class_nodes
from labelkin.models import Preprocessing
from labelkin.objectives import OBJECTIVES
from labelkin.runs._folder import RunFolder
from labelkin.runs._kinds import kind_in
from labelkin.runs._places import located
from labelkin.runs._prediction import Prediction
from labelkin.runs._run_rule import check_rule, reasons_of_run, rule_of_run
from labelkin.runs._setup import check_setup, restored_context
from labelkin.runs._spec import RunSpec, accepted_options
from labelkin.structure import Taxonomy
from labelkin.training import Calibration, build_model, cpu_batch, prepared_sides

BATCH = 1024


class Predictor(nn.Module):
    """The trained model of a run. It takes raw inputs (uint8 images or features) and returns scores.

    Args:
        folder: The folder of a finished classification run.

    Example:
        >>> import labelkin, tempfile
        >>> run = labelkin.train("digits", out=tempfile.mkdtemp() + "/run", epochs=1)
        >>> labelkin.runs.Predictor(labelkin.runs.RunFolder(run.path))
        Predictor(one-hot on digits, 10 classes)
    """

    mean: Tensor
    std: Tensor

    def __init__(self, folder: RunFolder) -> None:
        super().__init__()
        config, setup = folder.config, folder.setup
        self.folder = folder
        self.spec = RunSpec.from_dict(located(config, folder.path))
        with refuse_damaged(folder.path / "setup.safetensors"):
            context = restored_context(setup["context"])
            self.shape = tuple(setup["shape"])
            self.samples = SampleFormat(**setup["samples"])
            check_setup(setup, len(context.classes), len(context.tree().leaves))
            self.costs: Tensor | None = setup.get("costs")
            self.register_buffer("mean", setup["mean"])
            self.register_buffer("std", setup["std"])
        self.classes: tuple[str, ...] = context.classes
        self.taxonomy: Taxonomy = context.tree()
        self.tree_built = config["tree"] == "built"  # from the data, so its inner nodes have no names
        self.calibration = calibration_of(folder)
        self.is_calibrated = "temperature" in (folder.final or {})  # earlier versions recorded none
        with refuse_damaged(folder.path / "setup.safetensors"):
            self.model = build_model(
                self.spec.objective,
                accepted_options(self.spec.objective, setup["options"], config.get("revision")),
                config["resolved_backbone"],
                self.shape,
                context,
                seed=0,
                preprocessing=preprocessing_in(setup),
                weights=False,
                network=setup.get("network"),
            )
        weights = folder.model_state()
        with refuse_damaged(f"{folder.path}: the weights do not fit the model in config.json"):
            self.model.load_state_dict(weights)
        self.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return (n, K) scores for (n, ...) raw inputs."""
        return self.model.objective.scores(self.outputs(inputs))

    def outputs(self, inputs: Tensor) -> Any:
        """Return the objective's outputs for (n, ...) raw inputs."""
        return self.model(Normalize(self.mean, self.std)(inputs))

    @property
    def at_once(self) -> int:
        """The number of samples to score at once; few for pretrained networks on a CPU, whose maps then stay in its caches."""
        few = self.mean.device.type == "cpu" and prepared_sides(self.model.backbone)
        return cpu_batch(self.model.backbone, self.shape) if few else samples_at_once(self.shape, BATCH)

    def rule(
        self,
        decide: RuleName | None = None,
        *,
        threshold: float | None = None,
        coverage: float | None = None,
        confidence: float | None = None,
        costs: Any = None,
        shares: Tensor | None = None,
    ) -> Rule:
        """Return a decision rule with the temperature of this run, for `predict`.

        With a coverage, answers are right, or the root, with at least this probability (see `decide.GuaranteedFallback`). One
        random half of the samples that the run held out fits the temperature, and the other half the threshold. If these
        samples are a validation split that also chose the best epoch, the guarantee is a little optimistic.

        Args:
            decide: "argmax" (the most probable class), "crm" (the answer of least expected cost) or "fallback" (the deepest
                node of the tree whose probability reaches the threshold). By default "fallback" if a threshold or a coverage
                is given, "crm" if costs are given, otherwise "argmax".
            threshold: The threshold of "fallback"; 0.5 by default.
            coverage: The coverage of "fallback" in place of a threshold, such as 0.95.
            confidence: The least probability that the held-out samples give this coverage; see `decide.GuaranteedFallback`.
            costs: Costs by true class (row) and answer (column) for "crm": a .csv or .npz file, a mapping
                `{true class: {answer: cost}}`, a pandas DataFrame, or a (K, K) matrix in the order of the run's classes. By
                name, an answer without a row is an action, such as "ask a person". By default the costs that the run was
                trained with, or else the distances in its tree.
            shares: (K,) shares or counts of the classes in the samples to decide, if they are not those of the training data;
                see `decide.adjust_shares`. The run measured the former ones on the samples that it held out.

        Returns:
            The rule.
        """
        costs = self.costs if costs is None and decide == "crm" else costs
        return rule_of_run(
            self, decide, threshold=threshold, coverage=coverage, confidence=confidence, costs=costs, shares=shares
        )

    @torch.no_grad()
    def predict(
        self,
        inputs: Any,
        *,
        decide: RuleName | Rule | None = None,
        threshold: float | None = None,
        coverage: float | None = None,
        confidence: float | None = None,
        costs: Any = None,
        shares: Tensor | None = None,
    ) -> Prediction:
        """Predict the class of each input.

        Args:
            inputs: An array or tensor with the training data's shape and range.
            decide: The name of a rule, as in `rule`, also for the next five; or the result of `rule`, which saves time if
                several batches are decided with a coverage.
            threshold: The threshold of "fallback"; 0.5 by default.
            coverage: The coverage of "fallback" in place of a threshold, such as 0.95.
            confidence: The least probability that the held-out samples give this coverage.
            costs: Costs for "crm".
            shares: (K,) shares or counts of the classes in the samples to decide.

        Returns:
            The answers with their calibrated probabilities.
        """
        if not isinstance(decide, Rule):
            decide = self.rule(
                decide, threshold=threshold, coverage=coverage, confidence=confidence, costs=costs, shares=shares
            )
        elif any(option is not None for option in (threshold, coverage, confidence, costs, shares)):
            raise InputError(
                "decide: a rule has its own threshold, coverage, costs and shares; pass them to rule() instead."
            )
        check_rule(decide, self.taxonomy)
        values = _as_tensor(inputs)
        self.check(values)
        parts = [self(part.to(self.mean.device)).float().cpu() for part in torch.split(values, self.at_once)]
        scores = torch.cat(parts)
        probs = self.probs(scores, decide)
        found: Tensor | None = None
        if probs is None:
            nodes = class_nodes(scores.argmax(-1), self.taxonomy)
        elif len(scores):
            nodes, found = decide.answer(probs)
        else:
            nodes, found = torch.zeros(0, dtype=torch.int64), scores.new_zeros(0)
        places = torch.full((len(self.taxonomy) + len(decide.actions),), -1)
        places[torch.from_numpy(self.taxonomy.leaves.copy())] = torch.arange(len(self.classes))
        return Prediction(
            decide.names(nodes),
            places[nodes],
            scores,
            None if found is None else found.float(),
            None if probs is None else probs.float(),
            nodes,
            decide,
        )

    def probs(self, scores: Tensor, rule: Rule) -> Tensor | None:
        """Return the probabilities (n, K) that a rule decides by, in float64: rounded ones may cross a threshold."""
        found = self.calibration._replace(temperature=rule.temperature).probs(scores)
        return None if found is None else rule.adjusted(found)

    def explain(self, predicted: Prediction) -> list[str | None]:
        """Return the probabilities along the path to each answer, such as "animal 0.93 > dog 0.71".

        For an action, and if the tree was built from the data, compare the expected costs of an action and of the best class.

        Args:
            predicted: The result of `predict`.

        Returns:
            One line for each answer; None without probabilities, or without a taxonomy and actions.
        """
        probs, nodes = predicted.all_probabilities, predicted.nodes
        if probs is None or nodes is None:
            return [None] * len(predicted.classes)
        rule = Rule("argmax", self.taxonomy) if predicted.rule is None else predicted.rule
        return reasons_of_run(self, rule, probs.double() / probs.double().sum(-1, keepdim=True), nodes)

    def check(self, values: Tensor) -> None:
        """Refuse inputs of another shape, or of another range if the run was trained on bytes."""
        if tuple(values.shape[1:]) != self.shape:
            raise InputError(
                f"inputs: expected shape (n, {', '.join(map(str, self.shape))}), got {tuple(values.shape)}."
            )
        if values.is_floating_point() and not bool(values.isfinite().all()):
            wrong = (~values.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()
            raise InputError(f"inputs: expected finite numbers, got NaN or infinite ones in row {listed(wrong)}.")
        if not self.samples.pixels or values.dtype == torch.uint8 or not len(values):
            return
        low, high = float(values.double().min()), float(values.double().max())
        if not values.is_floating_point() or low < 0 or high > 1:
            raise InputError(
                f"inputs: expected bytes (uint8), as in training, or numbers from 0 to 1, got {values.dtype} from {low:g} "
                f"to {high:g}; convert them first."
            )

    def path(self, position: int) -> str | None:
        """Return the path from the root to a class, as `"root/animal/cat"`; None if the tree was built from the data."""
        return self.path_to_node(int(self.taxonomy.leaves[position]))

    def path_to_node(self, node: int) -> str | None:
        """Return the path from the root to a node, as `path` does to a class; None also for an action, which has none."""
        if self.tree_built or node >= len(self.taxonomy):
            return None
        return "/".join(self.taxonomy.names[above] for above in self.taxonomy.ancestors(node).tolist())

    def __repr__(self) -> str:
        return f"Predictor({self.spec.objective} on {self.spec.data}, {len(self.classes)} classes)"


def _as_tensor(inputs: Any) -> Tensor:
    """Return inputs as a tensor of bytes, whole numbers or float32."""
    try:
        values = torch.as_tensor(inputs)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"inputs: expected an array of numbers ({one_line(error)}).") from error
    if values.dtype == torch.bool or values.is_complex():
        raise InputError(f"inputs: expected an array of real numbers, got {values.dtype}.")
    return values.float() if values.is_floating_point() else values


def load_run(run: str | os.PathLike[str]) -> Predictor:
    """Load the trained model of a classification run.

    Args:
        run: The folder of a finished run, or the result of `labelkin.train`.

    Returns:
        The model on the CPU. Its `predict` takes raw inputs; `classes` and `taxonomy` describe its outputs.

    Example:
        >>> import labelkin, tempfile
        >>> folder = tempfile.mkdtemp() + "/run"
        >>> run = labelkin.train("digits", out=folder, epochs=1)
        >>> model = labelkin.load_run(folder)
        >>> digits = labelkin.data.load("digits")
        >>> len(model.predict(digits.test.inputs[:5]).classes)
        5
    """
    folder = RunFolder(existing_run_folder(run))
    if kind_in(folder.config) == "translation":
        raise InputError(f"{os.fspath(run)}: this is a translation run; use `labelkin translate` instead.")
    return Predictor(folder)


def run_spec(run: str | os.PathLike[str]) -> RunSpec:
    """Read the specification of a run. Its files are found from any folder.

    Args:
        run: The folder of the run, or the result of `labelkin.train`.

    Returns:
        The data, backbone, objective and settings of the run.

    Example:
        >>> import labelkin, tempfile
        >>> run = labelkin.train("digits", out=tempfile.mkdtemp() + "/run", epochs=1)
        >>> labelkin.runs.run_spec(run).settings.epochs
        1
    """
    folder = RunFolder(existing_run_folder(run))
    return RunSpec.from_dict(located(folder.config, folder.path))


def existing_run_folder(path: str | os.PathLike[str]) -> Path:
    """Return the path of a run's folder. If it is not one, the error lists the runs below it."""
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder.")
    if not (folder / "config.json").exists():
        inside = sorted(str(file.parent) for file in folder.glob("*/config.json"))
        hint = f" Runs in this folder: {listed(inside)}." if inside else ""
        raise InputError(f"{folder}: not the folder of a run; it has no config.json.{hint}")
    return folder


def preprocessing_in(setup: Mapping[str, Any]) -> Preprocessing | None:
    """Return the preprocessing that a run stored with its pretrained weights; None if it normalizes by the data."""
    kept = setup.get("preprocessing")
    if kept is None:
        return None
    return Preprocessing(int(kept["size"]), int(kept["resize"]), tuple(kept["mean"]), tuple(kept["std"]))


def calibration_of(folder: RunFolder) -> Calibration:
    """Return the calibration of a run; that of an earlier version has temperature 1, or NaN without probabilities."""
    final = folder.final or {}
    if "temperature" not in final:
        return Calibration(1.0 if OBJECTIVES[folder.config["objective"]].has_probabilities else nan, 0)
    temperature = final["temperature"]
    return Calibration(nan if temperature is None else float(temperature), int(final["calibration_samples"]))

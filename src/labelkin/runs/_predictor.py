"""Load a finished run as a model that predicts, and write predictions to a table."""

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from labelkin._checks import InputError, listed, near
from labelkin._files import write_text
from labelkin.data import Normalize, OnError, SampleFormat, UnlabeledBatch, read_unlabeled
from labelkin.runs._folder import RunFolder
from labelkin.runs._kinds import kind_in
from labelkin.runs._overwrite_guard import check_no_overwrite
from labelkin.runs._setup import fastest_device, restored_context
from labelkin.runs._spec import RunSpec, accepted_options
from labelkin.structure import Taxonomy
from labelkin.training import build_model

BATCH = 1024


class Prediction(NamedTuple):
    """The predictions for n samples.

    Args:
        classes: The name of each predicted class.
        positions: (n,) positions of the predicted classes.
        scores: (n, K) scores of all classes: log-probabilities if the objective defines them.
        probabilities: (n,) probabilities of the predicted classes. None if the objective defines none.

    Example:
        >>> import labelkin, tempfile
        >>> run = labelkin.train("digits", out=tempfile.mkdtemp() + "/run", epochs=1)
        >>> inputs = labelkin.data.load("digits").test.inputs[:3]
        >>> labelkin.load_run(run).predict(inputs).scores.shape
        torch.Size([3, 10])
    """

    classes: list[str]
    positions: Tensor
    scores: Tensor
    probabilities: Tensor | None


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
        self.spec = RunSpec.from_dict(config)
        context = restored_context(setup["context"])
        self.classes: tuple[str, ...] = context.classes
        self.taxonomy: Taxonomy = context.tree()
        self.tree_built = config["tree"] == "built"  # from the data, so its inner nodes have no names
        self.shape = tuple(setup["shape"])
        self.samples = SampleFormat(**setup["samples"])
        self.model = build_model(
            self.spec.objective,
            accepted_options(self.spec.objective, setup["options"], config.get("revision")),
            config["resolved_backbone"],
            self.shape,
            context,
            seed=0,
        )
        try:
            self.model.load_state_dict(folder.model_state())
        except RuntimeError as error:
            raise InputError(
                f"{folder.path}: the weights do not fit the model in config.json; train the run again."
            ) from error
        self.register_buffer("mean", setup["mean"])
        self.register_buffer("std", setup["std"])
        self.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return (n, K) scores for (n, ...) raw inputs."""
        return self.model.objective.scores(self.outputs(inputs))

    def outputs(self, inputs: Tensor) -> Any:
        """Return the objective's outputs for (n, ...) raw inputs."""
        return self.model(Normalize(self.mean, self.std)(inputs))

    @torch.no_grad()
    def predict(self, inputs: Any) -> Prediction:
        """Predict the class of each input: an array or tensor with the training data's shape and range."""
        values = torch.as_tensor(inputs)
        self.check(values)
        parts = [self._predict(part.to(self.mean.device)) for part in torch.split(values, BATCH)]
        scores = torch.cat([part[0] for part in parts])
        best = scores.argmax(-1)
        log_probs = torch.cat([part[1] for part in parts])
        probabilities = log_probs.gather(-1, best.unsqueeze(-1)).squeeze(-1).exp() if log_probs.numel() else None
        return Prediction([self.classes[i] for i in best.tolist()], best, scores, probabilities)

    def _predict(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores and log-probabilities on the CPU; the latter have no columns if the objective defines none."""
        outputs = self.outputs(inputs)
        scores = self.model.objective.scores(outputs).float().cpu()
        try:
            return scores, self.model.objective.log_probs(outputs).float().cpu()
        except InputError:
            return scores, scores[:, :0]

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
        low, high = float(values.min()), float(values.max())
        if not values.is_floating_point() or low < 0 or high > 1:
            raise InputError(
                f"inputs: expected bytes (uint8), as in training, or numbers from 0 to 1, got {values.dtype} from {low:g} "
                f"to {high:g}; convert them first."
            )

    def path(self, position: int) -> str | None:
        """Return the path from the root to a class, as `"root/animal/cat"`; None if the tree was built from the data."""
        if self.tree_built:
            return None
        nodes = self.taxonomy.ancestors(int(self.taxonomy.leaves[position])).tolist()
        return "/".join(self.taxonomy.names[node] for node in nodes)

    def __repr__(self) -> str:
        return f"Predictor({self.spec.objective} on {self.spec.data}, {len(self.classes)} classes)"


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
    """Read the specification of a run.

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
    return RunSpec.from_dict(RunFolder(existing_run_folder(run)).config)


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


FIELDS = ("input", "row", "class", "probability", "path")


def write_predictions(
    run: str | os.PathLike[str],
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    on_error: OnError = "stop",
) -> int:
    """Predict the class of every input and write one row per sample to a `.csv` or `.jsonl` file.

    A row has the file, the position in it from 0 if it holds several samples, the class, its probability if the objective
    defines one, and the path to the class if the run has a taxonomy. An output that would overwrite an input or a file that the
    run was trained on is refused.

    Args:
        run: The folder of a finished run, or the result of `labelkin.train`.
        inputs: Images, arrays, tables or folders of images, as `labelkin.data.read_unlabeled` reads them.
        output: The file to write.
        on_error: On an unreadable image: "stop" or "skip".

    Returns:
        The number of rows.

    Example:
        >>> import labelkin, numpy, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> run = labelkin.train("digits", out=f"{folder}/run", epochs=1)
        >>> numpy.save(f"{folder}/new.npy", labelkin.data.load("digits").test.inputs[:4].numpy())
        >>> labelkin.runs.write_predictions(run, [f"{folder}/new.npy"], f"{folder}/predictions.csv")
        4
    """
    target = Path(output)
    write = _writer(target)
    check_no_overwrite(target, inputs=inputs, run=run, spec=run_spec(run))
    predictor = load_run(run).to(fastest_device())
    parts = read_unlabeled(inputs, shape=predictor.shape, samples=predictor.samples, on_error=on_error)
    rows = [row for part in parts if len(part.inputs) for row in _rows(predictor, part)]
    write_text(target, write(rows))
    return len(rows)


def _rows(predictor: Predictor, part: UnlabeledBatch) -> Iterator[dict[str, Any]]:
    predicted = predictor.predict(part.inputs)
    positions = predicted.positions.tolist()
    paths = {position: predictor.path(position) for position in set(positions)}
    known = predicted.probabilities
    probabilities = [None] * len(positions) if known is None else known.tolist()
    for values in zip(part.files, part.rows, positions, probabilities, strict=True):
        file, row, position, probability = values
        rounded = None if probability is None else round(probability, 6)
        fields = (file, row, predictor.classes[position], rounded, paths[position])
        yield dict(zip(FIELDS, fields, strict=True))


def _writer(target: Path) -> Any:
    writers = {".csv": _as_csv, ".jsonl": _as_jsonl}
    if target.suffix.lower() not in writers:
        raise InputError(f"{target}: expected a name that ends in .csv or .jsonl.{near(target.suffix, writers)}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; create it first.")
    return writers[target.suffix.lower()]


def _as_csv(rows: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _as_jsonl(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

"""Read the predictions of a finished run on its test set."""

import os
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from labelkin._checks import InputError, refuse_damaged
from labelkin.runs import RunFolder, calibration_of, existing_run_folder, kind_in, restored_context
from labelkin.structure import Taxonomy


class RunPredictions(NamedTuple):
    """The predictions of a run as `read_arrays` takes them, and its taxonomy, unless it was built from the data."""

    arrays: dict[str, Any]
    taxonomy: Taxonomy | None


def read_run(path: str | os.PathLike[str]) -> RunPredictions:
    """Read the test set's true classes and calibrated scores; predicted labels if the scores are no probabilities."""
    folder = RunFolder(existing_run_folder(path))
    if kind_in(folder.config) == "translation":
        raise InputError(
            f"{path}: this is a translation run, which has no classes to audit; give a classification run."
        )
    if folder.final is None:
        raise InputError(f"{path}: the run is not finished; resume it with `labelkin train --resume {path}`.")
    if not (folder.path / "outputs.safetensors").exists():
        raise InputError(
            f"{path}: the run has no stored outputs, as after `labelkin runs unpack`; give the original folder."
        )
    setup, outputs = folder.setup, folder.outputs()
    with refuse_damaged(folder.path / "setup.safetensors"):
        context = restored_context(setup["context"])
    names = np.array(context.classes)
    with refuse_damaged(folder.path / "outputs.safetensors"):
        scores, positions = outputs["scores"].double().numpy(), outputs["target"].numpy()
        if scores.shape != (len(positions), len(names)) or positions.min() < 0:
            raise ValueError(f"its scores have the shape {scores.shape}, expected {(len(positions), len(names))}")
        target = names[positions]
    temperature = calibration_of(folder).temperature
    arrays: dict[str, Any] = {"target": target, "classes": list(context.classes)}
    if isnan(temperature):
        arrays["predicted"] = names[scores.argmax(-1)]
    else:
        arrays["logits"] = scores / temperature
    return RunPredictions(arrays, None if folder.config["tree"] == "built" else context.tree())

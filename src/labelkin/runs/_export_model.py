"""Export the model of a run to ONNX or torch.export; it takes raw samples and returns calibrated log-probabilities."""

import io
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from labelkin._checks import InputError, near
from labelkin._extras import MissingExtra, require
from labelkin._files import write_bytes
from labelkin.runs._predictor import Predictor, load_run

TOLERANCE = 1e-4  # of a log-probability
CHECKED_BATCHES = (3, 1)
REFERENCE_FLOPS = 2**28  # per sample; above this, onnx's numpy evaluator would take minutes


class Exported(NamedTuple):
    """An exported file.

    Args:
        path: The file.
        checked_by: The runtime that compared the file with the model. None if no suitable runtime is installed.

    Example:
        >>> from pathlib import Path
        >>> from labelkin.runs import Exported
        >>> Exported(Path("model.onnx"), checked_by="onnxruntime").checked_by
        'onnxruntime'
    """

    path: Path
    checked_by: str | None


class Runner(NamedTuple):
    """A runtime that runs the exported program, to compare it with the model."""

    name: str
    run: Callable[[Tensor], Tensor]


Written = tuple[bytes, Runner | None]
Writer = Callable[[nn.Module, Tensor, Sequence[str]], Written]


class Portable(nn.Module):
    """A model that normalizes (n, ...) raw samples and returns (n, K) calibrated log-probabilities."""

    shift: Tensor
    scale: Tensor

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.model = predictor.model
        shape = (-1, *[1] * (len(predictor.shape) - 1))
        unit = 255.0 if predictor.samples.pixels else 1.0
        self.register_buffer("shift", (predictor.mean * unit).view(shape))
        self.register_buffer("scale", (predictor.std * unit).view(shape))
        self.temperature = predictor.calibration.temperature

    def forward(self, inputs: Tensor) -> Tensor:
        outputs = self.model((inputs.float() - self.shift) / self.scale)
        if self.temperature == 1 or isnan(self.temperature):
            return self.model.objective.log_probs(outputs)
        return torch.log_softmax(self.model.objective.scores(outputs) / self.temperature, -1)


def export_model(run: str | os.PathLike[str], path: str | os.PathLike[str]) -> Exported:
    """Write the model of a run to `.onnx` or `.pt2` (torch.export) for batches of any size.

    The temperature of the run is part of the exported program, so its log-probabilities are calibrated. The program is run
    before it is written: if its outputs on random samples differ from the model's by more than 1e-4, nothing is written. The
    class names are stored in the metadata of an ONNX file under "classes", or in the extra file classes.json of a `.pt2` file.

    Args:
        run: The folder of a finished run, or the result of `labelkin.train`.
        path: The file to write; its suffix chooses the format.

    Returns:
        The file and the runtime that checked it.

    Example:
        >>> import labelkin, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> run = labelkin.train("digits", out=f"{folder}/run", epochs=1)
        >>> labelkin.runs.export_model(run, f"{folder}/model.pt2").checked_by
        'torch.export'
    """
    target = Path(path)
    write = _format(target)
    predictor = load_run(run)
    module = Portable(predictor).eval()
    samples = _random_samples(predictor)
    with torch.no_grad():
        try:
            module(samples)
        except InputError as error:
            raise InputError(f"{os.fspath(run)}: the exported file must return log-probabilities; {error}") from error
        with _quiet():
            content, runner = _written(write, module, samples, predictor.classes)
        if runner is not None:
            _check(module, runner.run, samples)
    write_bytes(target, content)
    return Exported(target, None if runner is None else runner.name)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's messages about optional packages and its own deprecation warnings."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _written(write: Writer, module: nn.Module, samples: Tensor, classes: Sequence[str]) -> Written:
    try:
        return write(module, samples, classes)
    except ImportError:
        raise  # names the missing package
    except Exception as error:  # tracing can fail in many ways
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"torch cannot export the model in this format ({reason}); try the other one (.onnx or .pt2)."
        ) from error


def _check(module: nn.Module, run: Callable[[Tensor], Tensor], samples: Tensor) -> None:
    for count in CHECKED_BATCHES:
        expected, found = module(samples[:count]), run(samples[:count])
        worst = float((expected - found).abs().max())
        if found.shape != expected.shape or not worst <= TOLERANCE:
            raise InputError(
                f"the exported program differs from the model by {worst:g} in a log-probability; nothing was written."
            )


def _random_samples(predictor: Predictor) -> Tensor:
    shape = (max(CHECKED_BATCHES), *predictor.shape)
    generator = torch.Generator().manual_seed(0)
    if predictor.samples.pixels:
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    spread = predictor.std.view(-1, *[1] * (len(predictor.shape) - 1))
    return torch.randn(shape, generator=generator) * spread


def _program(module: nn.Module, samples: Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(module, (samples,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},))


def _to_pt2(module: nn.Module, samples: Tensor, classes: Sequence[str]) -> Written:
    file = io.BytesIO()
    torch.export.save(_program(module, samples), file, extra_files={"classes.json": json.dumps(list(classes))})
    again = torch.export.load(io.BytesIO(file.getvalue())).module()
    return file.getvalue(), Runner("torch.export", again)


def _to_onnx(module: nn.Module, samples: Tensor, classes: Sequence[str]) -> Written:
    onnx = require("onnx", extra="export", use="exporting to .onnx")
    require("onnxscript", extra="export", use="exporting to .onnx")
    program = _program(module, samples).run_decompositions({torch.ops.aten.cdist.default: _distances})
    exported = torch.onnx.export(
        program, dynamo=True, verbose=False, input_names=["inputs"], output_names=["log_probs"]
    )
    assert exported is not None
    for node in exported.model.graph:
        _count_axis_from_the_front(node)
    model = exported.model_proto
    model.metadata_props.add(key="classes", value=json.dumps(list(classes), ensure_ascii=False))
    content: bytes = model.SerializeToString()
    onnx.checker.check_model(onnx.load_from_string(content))
    return content, _onnx_runner(content, module, samples[:1])


def _distances(a: Tensor, b: Tensor, p: float, mode: int | None) -> Tensor:
    """`torch.cdist` with operations that ONNX has."""
    norms: Tensor = torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, dim=-1)
    return norms


def _count_axis_from_the_front(node: Any) -> None:
    """Make the axis of a gather positive: onnx's own evaluator computes negative axes wrongly."""
    if node.op_type == "GatherElements" and node.attributes["axis"].as_int() < 0:
        onnx_ir = require("onnx_ir", extra="export", use="exporting to .onnx")
        axis = node.attributes["axis"].as_int() + len(node.inputs[0].shape)
        node.attributes["axis"] = onnx_ir.AttrInt64("axis", axis)


def _onnx_runner(content: bytes, module: nn.Module, sample: Tensor) -> Runner | None:
    try:
        onnxruntime = require("onnxruntime", extra="export", use="checking an .onnx file")
    except MissingExtra:
        if _flops(module, sample) > REFERENCE_FLOPS:
            return None
        reference = require("onnx.reference", extra="export", use="checking an .onnx file")
        name, session = "onnx's reference evaluator", reference.ReferenceEvaluator(content)
    else:
        name, session = "onnxruntime", onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return Runner(name, lambda inputs: torch.from_numpy(session.run(None, {"inputs": inputs.numpy()})[0]))


def _flops(module: nn.Module, sample: Tensor) -> int:
    with FlopCounterMode(display=False) as counter:
        module(sample)
    return int(counter.get_total_flops())


def _format(target: Path) -> Writer:
    formats: dict[str, Writer] = {".onnx": _to_onnx, ".pt2": _to_pt2}
    if target.suffix.lower() not in formats:
        raise InputError(f"{target}: expected a name that ends in .onnx or .pt2.{near(target.suffix, formats)}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; create it first.")
    return formats[target.suffix.lower()]

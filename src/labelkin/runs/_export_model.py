"""Export a run and its decision rule to ONNX or torch.export, as one file that takes raw inputs and returns answers."""

import io
import json
import logging
import os
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isinf, isnan
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from labelkin._checks import LIBRARY_ERRORS, InputError, near
from labelkin._extras import MissingExtra, require
from labelkin._files import write_bytes
from labelkin._version import __version__
from labelkin.decide import Rule, RuleName
from labelkin.runs._portable import Outputs, Portable, described_inputs, random_photos, random_samples, takes_photos
from labelkin.runs._predictor import Predictor, load_run

TOLERANCE = 1e-4  # of a log-probability and of a probability
# Of a log-probability of a photo that is scaled: runtimes add in different orders, so that some pixels are rounded to the next
# of 255 levels.
SCALED_TOLERANCE = 1e-2
CHECKED_BATCHES = (3, 1)
REFERENCE_FLOPS = 2**28  # per sample; above this, onnx's numpy evaluator would take minutes
LEAST_LOG = -80.0  # below this, probabilities in float32 are too small to compare
ABOUT, CLASSES = "labelkin", "classes"  # keys of the metadata


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
    run: Callable[[Tensor], Outputs]


Written = tuple[bytes, Runner | None]
Writer = Callable[[nn.Module, Tensor, Mapping[str, Any]], Written]


def export_model(
    run: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    decide: RuleName | None = None,
    threshold: float | None = None,
    coverage: float | None = None,
    confidence: float | None = None,
    costs: Any = None,
    shares: Tensor | None = None,
    force: bool = False,
) -> Exported:
    """Write a run with its preprocessing, temperature and decision rule to `.onnx` or `.pt2` (torch.export).

    The program takes `inputs` for batches of any size. For a run on images these are the RGB pixels (n, height, width, 3) of
    photos of any size, as uint8; they are cut and scaled as when labelkin reads a file, up to one level of 255. (Large JPEG
    files are an exception: labelkin decodes them at a fraction of their size.) For a transformer of texts they are token ids
    (n, length) as int64, and the tokenizer is in the metadata. For other runs they are samples as in training, such as the
    columns of a table. The outputs:

    - `log_probs` (n, K): calibrated log-probabilities of the classes.
    - `class_index` (n,): the position of the answer among the classes; -1 for an inner node and for an action.
    - `node` (n,) and `path` (n, depth): the answer as a node of the tree, and the nodes from the root to it, -1 after its end.
      Actions of the costs are the numbers after the last node, and their path is -1.
    - `probability` (n,): the calibrated probability of the answer; NaN for an action.
    - `fell_back` (n,): whether the answer is an inner node, less specific than a class.

    The metadata of an ONNX file has the class names as JSON under "classes", and under "labelkin" an object with the names and
    parents of the nodes, the actions, the rule and its thresholds, the temperature and the inputs. A `.pt2` file has them as
    extra files "classes.json" and "labelkin.json".

    The program is run before it is written: if its answers on random samples are not those of `Predictor.predict`, or its
    log-probabilities differ by more than 1e-4 (1e-2 for photos that it scales), nothing is written. The file is written
    completely or not at all.

    Args:
        run: The folder of a finished run, or the result of `labelkin.train`.
        path: The file to write; its suffix chooses the format.
        decide: "argmax", "crm" or "fallback"; see `Predictor.rule`, also for the next five.
        threshold: The threshold of "fallback".
        coverage: The coverage of "fallback".
        confidence: The confidence of the coverage.
        costs: Costs for "crm", also of actions: a file, a mapping, a DataFrame or a matrix.
        shares: (K,) shares or counts of the classes in the new samples, in the order of the run's classes.
        force: Whether to replace a file that this function did not write.

    Returns:
        The file and the runtime that checked it.

    Example:
        >>> import labelkin, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> run = labelkin.train("digits", out=f"{folder}/run", epochs=1)
        >>> labelkin.runs.export_model(run, f"{folder}/model.pt2", decide="crm").checked_by
        'torch.export'
    """
    target = Path(path)
    write = _format(target)
    if not force:
        _check_replaceable(target)
    predictor = load_run(run)
    if isnan(predictor.calibration.temperature):
        raise InputError(
            f"{os.fspath(run)}: {type(predictor.model.objective).__name__} defines no probabilities, which the file must "
            "return, and the run held out no samples to calibrate its scores; train it with --calibration 0.1."
        )
    rule = predictor.rule(
        decide, threshold=threshold, coverage=coverage, confidence=confidence, costs=costs, shares=shares
    )
    module = Portable(predictor, rule).eval().requires_grad_(False)
    samples = random_samples(predictor, max(CHECKED_BATCHES))
    with torch.no_grad():
        with _quiet():
            traced = samples if module.fit is None else random_photos()
            content, runner = _written(write, module, traced, _about(predictor, rule))
        if runner is not None:
            _check(predictor, rule, module, runner.run, samples)
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


def _written(write: Writer, module: nn.Module, samples: Tensor, about: Mapping[str, Any]) -> Written:
    try:
        return write(module, samples, about)
    except ImportError:
        raise  # names the missing package
    except LIBRARY_ERRORS as error:  # tracing can fail in many ways
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"torch cannot export the model in this format ({reason}); try the other one (.onnx or .pt2)."
        ) from error


def _check(
    predictor: Predictor, rule: Rule, module: Portable, run: Callable[[Tensor], Outputs], samples: Tensor
) -> None:
    """Compare the program with `predict` on samples of the run's own shape, and with the module on photos of another."""
    for count in CHECKED_BATCHES:
        expected, found = predictor.predict(samples[:count], decide=rule), run(_as_given(samples[:count], predictor))
        assert expected.all_probabilities is not None
        assert expected.probabilities is not None
        assert expected.nodes is not None
        _check_close(found.log_probs, expected.all_probabilities.log(), "a log-probability")
        _check_close(found.probability, expected.probabilities, "the probability of an answer")
        _check_same(found.node, expected.nodes, found.class_index, expected.positions)
    if module.fit is not None:
        photos = random_photos()
        wanted, found = Outputs(**module(photos)), run(photos)
        worst = _check_close(found.log_probs, wanted.log_probs, "a log-probability of a scaled photo", SCALED_TOLERANCE)
        if worst <= TOLERANCE:  # else answers of nearly the same probability may differ
            _check_same(found.node, wanted.node, found.class_index, wanted.class_index)


def _check_close(found: Tensor, expected: Tensor, what: str, tolerance: float = TOLERANCE) -> float:
    """Return by how much values differ, and refuse more than the tolerance.

    Values below `LEAST_LOG` may differ, because float32 probabilities are 0 there. NaN, which actions have, equals NaN.
    """
    apart = (found.clamp(min=LEAST_LOG) - expected.clamp(min=LEAST_LOG)).abs()
    worst = float(apart.masked_fill(found.isnan() & expected.isnan(), 0.0).max())
    if found.shape != expected.shape or not worst <= tolerance:
        raise InputError(f"the exported program differs from the model by {worst:g} in {what}; nothing was written.")
    return worst


def _check_same(*pairs: Tensor) -> None:
    for found, expected in zip(pairs[::2], pairs[1::2], strict=True):
        if not torch.equal(found, expected):
            raise InputError(
                f"the exported program differs from the model: it answers {found.tolist()} instead of {expected.tolist()}; "
                "nothing was written."
            )


def _as_given(samples: Tensor, predictor: Predictor) -> Tensor:
    """Return samples as the program takes them: images as RGB pixels with the channels last."""
    if not takes_photos(predictor):
        return samples
    return samples.permute(0, 2, 3, 1).expand(-1, -1, -1, 3).contiguous()


def _about(predictor: Predictor, rule: Rule) -> dict[str, Any]:
    """Return what a reader of the exported file needs to know, as JSON values."""
    tree = predictor.taxonomy
    thresholds = None
    if rule.name == "fallback":
        fitted = {tree.names[0]: 0.5 if rule.threshold is None else rule.threshold}
        fitted = fitted if rule.guarantee is None else rule.guarantee.thresholds or {}
        thresholds = {name: None if isinf(value) else value for name, value in fitted.items()}  # None: never answered
    return {
        "version": __version__,
        "classes": list(predictor.classes),
        "nodes": list(tree.names),
        "parents": [int(parent) for parent in tree.parents],
        "named_tree": not predictor.tree_built,
        "actions": list(rule.actions),
        "rule": rule.name,
        "thresholds": thresholds,
        "coverage": None if rule.guarantee is None else 1 - rule.guarantee.alpha,
        "confidence": None if rule.guarantee is None else rule.guarantee.confidence,
        "temperature": rule.temperature,
        "share_ratios": None if rule.share_ratios is None else rule.share_ratios.tolist(),
        **described_inputs(predictor),
    }


def _program(module: nn.Module, samples: Tensor) -> torch.export.ExportedProgram:
    """Trace the module for batches of any size, and for photos of any size."""
    names = ("batch", "height", "width") if isinstance(module, Portable) and module.fit is not None else ("batch",)
    sizes = {axis: torch.export.Dim(name, min=1) for axis, name in enumerate(names)}
    return torch.export.export(module, (samples,), dynamic_shapes=(sizes,))


def _to_pt2(module: nn.Module, samples: Tensor, about: Mapping[str, Any]) -> Written:
    file = io.BytesIO()
    extra = {f"{CLASSES}.json": json.dumps(about["classes"]), f"{ABOUT}.json": json.dumps(about)}
    torch.export.save(_program(module, samples), file, extra_files=extra)
    again = torch.export.load(io.BytesIO(file.getvalue())).module()
    return file.getvalue(), Runner("torch.export", lambda inputs: Outputs(**again(inputs)))


def _to_onnx(module: nn.Module, samples: Tensor, about: Mapping[str, Any]) -> Written:
    onnx = require("onnx", extra="export", use="exporting to .onnx")
    require("onnxscript", extra="export", use="exporting to .onnx")
    program = _program(module, samples).run_decompositions({torch.ops.aten.cdist.default: _distances})
    exported = torch.onnx.export(
        program, dynamo=True, verbose=False, input_names=["inputs"], output_names=list(Outputs._fields)
    )
    assert exported is not None
    for node in exported.model.graph:
        _count_axis_from_the_front(node)
    model = exported.model_proto
    model.metadata_props.add(key=CLASSES, value=json.dumps(about["classes"], ensure_ascii=False))
    model.metadata_props.add(key=ABOUT, value=json.dumps(about, ensure_ascii=False))
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
    return Runner(name, lambda inputs: Outputs(*map(torch.from_numpy, session.run(None, {"inputs": inputs.numpy()}))))


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


def _check_replaceable(target: Path) -> None:
    """Refuse a file that exists and was not exported by this or an earlier version."""
    if target.is_dir() or (target.exists() and not (_is_pt2 if target.suffix.lower() == ".pt2" else _is_onnx)(target)):
        raise InputError(
            f"{target}: this exists and was not written by labelkin export; choose another name, or replace it with --force "
            "(in Python: force=True)."
        )


def _is_pt2(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as file:
        return any(name.rpartition("/")[2].startswith(f"{CLASSES}.json") for name in file.namelist())


def _is_onnx(path: Path) -> bool:
    onnx = require("onnx", extra="export", use="exporting to .onnx")
    decoding = require("google.protobuf.message", extra="export", use="exporting to .onnx")
    try:
        model = onnx.load(path, load_external_data=False)
    except decoding.DecodeError:
        return False
    return any(entry.key == CLASSES for entry in model.metadata_props)

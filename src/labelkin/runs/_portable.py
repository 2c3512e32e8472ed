"""A run as one module for export: raw inputs in, calibrated probabilities and the answer of a decision rule out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from labelkin.decide import Rule, TraceableRule
from labelkin.runs._predictor import Predictor
from labelkin.training import LEAST_SCORE

LUMA = (19595.0, 38470.0, 7471.0)  # Pillow's weights of red, green and blue, in units of 1 / 65536

smaller: Callable[[float, float], float] = torch.sym_min  # these two can be traced, min and max cannot
larger: Callable[[float, float], float] = torch.sym_max


class Outputs(NamedTuple):
    """The outputs of an exported program, in this order and with these names."""

    log_probs: Tensor  # (n, K) calibrated log-probabilities of the classes
    class_index: Tensor  # (n,) position of the answer among the classes; -1 for an inner node of the tree and an action
    node: Tensor  # (n,) the answer as a node of the tree; after the last node, the actions
    path: Tensor  # (n, depth) nodes from the root to the answer; -1 after its end, and for an action
    probability: Tensor  # (n,) probability of the answer; NaN for an action
    fell_back: Tensor  # (n,) whether the answer is less specific than a class


class FitPixels(nn.Module):
    """Convert photos to the size and channels of the run, as Pillow does when labelkin reads a file.

    The middle of the photo is scaled by triangle filters that widen when the photo shrinks, first along rows and then along
    columns, with pixels rounded to bytes after each, as in Pillow; gray values are Pillow's, too. Each filter is a matrix whose
    size follows that of the photo. Some versions of Pillow begin with the columns of tall photos, and its filters are whole
    numbers, so pixels may differ by one level of 255.

    Args:
        shape: (channels, height, width) of the run, with 1 or 3 channels.
    """

    luma: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.channels, self.height, self.width = shape
        self.register_buffer("luma", torch.tensor(LUMA).view(3, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Return (n, C, H, W) bytes as float32 for (n, h, w, 3) uint8 pixels."""
        height, width = pixels.shape[1], pixels.shape[2]
        values = pixels.float()
        if self.channels == 1:
            values = torch.floor((values @ self.luma + 32768.0) / 65536.0)  # exact: below 2 ** 24
        across = smaller(1.0 * width, height * (self.width / self.height))  # float() would make width a constant
        down = smaller(1.0 * height, width * (self.height / self.width))
        values = _bytes(torch.einsum("nhwc,ow->nhoc", values, _filter(width, across, self.width)))
        values = _bytes(torch.einsum("nhwc,oh->nowc", values, _filter(height, down, self.height)))
        return values.permute(0, 3, 1, 2)


def _filter(length: int, kept: float, out: int) -> Tensor:
    """Return the weights (out, length) that resize the `kept` middle pixels of a line to `out` pixels."""
    scale = kept / out
    places = torch.arange(length, dtype=torch.float64) + 0.5
    centers = (length - kept) / 2 + (torch.arange(out, dtype=torch.float64) + 0.5) * scale
    weights = (1 - (places - centers.unsqueeze(1)).abs() / larger(scale, 1.0)).clamp(min=0)
    return (weights / weights.sum(-1, keepdim=True)).float()


def _bytes(values: Tensor) -> Tensor:
    return torch.floor(values + 0.5).clamp(0, 255)


class Portable(nn.Module):
    """A run and a decision rule as one module.

    Args:
        predictor: The run. It needs calibrated probabilities, or an objective that defines them.
        rule: The rule, as `Predictor.rule` returns it.
    """

    shift: Tensor
    scale: Tensor
    places: Tensor
    inner: Tensor
    paths: Tensor
    log_ratios: Tensor | None

    def __init__(self, predictor: Predictor, rule: Rule) -> None:
        super().__init__()
        self.fit = FitPixels(predictor.shape) if takes_photos(predictor) else None
        self.model = predictor.model
        shape = (-1, *[1] * (len(predictor.shape) - 1))
        unit = 255.0 if predictor.samples.pixels else 1.0
        self.register_buffer("shift", (predictor.mean * unit).view(shape))
        self.register_buffer("scale", (predictor.std * unit).view(shape))
        self.temperature = rule.temperature
        self.register_buffer("log_ratios", None if rule.share_ratios is None else rule.share_ratios.log())
        self.rule = TraceableRule(rule)
        tree = predictor.taxonomy
        answers = len(tree) + len(rule.actions)
        places = torch.full((answers,), -1)
        places[torch.from_numpy(tree.leaves.copy())] = torch.arange(len(tree.leaves))
        paths = np.full((answers, int(tree.depth.max()) + 1), -1)
        for node in range(len(tree)):
            path = tree.ancestors(node)
            paths[node, : len(path)] = path
        inner = places < 0
        inner[len(tree) :] = False
        self.register_buffer("places", places)
        self.register_buffer("inner", inner)
        self.register_buffer("paths", torch.from_numpy(paths))

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        """Return the `Outputs` by name for (n, h, w, 3) uint8 pixels of photos, or for (n, ...) samples as in training."""
        values = inputs.float() if self.fit is None else self.fit(inputs)
        scores = self.model.objective.scores(self.model((values - self.shift) / self.scale))
        logits = scores.double().clamp(min=LEAST_SCORE) / self.temperature
        log_probs = torch.log_softmax(logits, -1)
        if self.log_ratios is not None:
            log_probs = torch.log_softmax(log_probs + self.log_ratios, -1)
        nodes, probs = self.rule(log_probs.exp())
        return Outputs(
            log_probs.float(), self.places[nodes], nodes, self.paths[nodes], probs.float(), self.inner[nodes]
        )._asdict()


def takes_photos(predictor: Predictor) -> bool:
    """Return whether the samples of a run are images of bytes, gray or RGB."""
    return predictor.samples.pixels and len(predictor.shape) == 3 and predictor.shape[0] in (1, 3)


def described_inputs(predictor: Predictor) -> dict[str, Any]:
    """Describe the inputs of a run's program as JSON values; for token ids, also the tokenizer that produces them."""
    about: dict[str, Any] = {"inputs": "samples as in training", "shape": list(predictor.shape)}
    if takes_photos(predictor):
        about = {"inputs": "RGB pixels (n, height, width, 3), uint8", "shape": [None, None, 3]}
    elif (tokens := _tokens(predictor)) is not None:
        about["inputs"] = "token ids (n, length), int64"
        about |= {"tokenizer": tokens["tokenizer"], "padding": tokens["padding"]}
    return {**about, "columns": predictor.samples.columns}


def random_samples(predictor: Predictor, count: int) -> Tensor:
    """Return samples of the run's own shape; gray images have values that RGB pixels can have."""
    shape = (count, *predictor.shape)
    generator = torch.Generator().manual_seed(0)
    if (tokens := _tokens(predictor)) is not None:
        return torch.randint(0, tokens["tokens"], shape, generator=generator)
    if predictor.samples.pixels:
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    spread = predictor.std.view(-1, *[1] * (len(predictor.shape) - 1))
    return torch.randn(shape, generator=generator) * spread


def random_photos() -> Tensor:
    """Return photos of sizes that no run uses, so that tracing does not take a size for a constant."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (5, 47, 71, 3), dtype=torch.uint8, generator=generator)


def _tokens(predictor: Predictor) -> dict[str, Any] | None:
    """Return the tokenizer of a run on token ids."""
    encoder = predictor.samples.encoder
    return encoder if encoder is not None and "tokenizer" in encoder else None

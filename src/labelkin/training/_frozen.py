"""Training on frozen features: a backbone is applied to the data once, and its outputs are kept in labelkin's cache."""

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from torch import Tensor, nn

from labelkin._checks import InputError
from labelkin.data import ArraySplit, Batches, Dataset, Minibatch, Normalize, Split, derived_folder, split_digest
from labelkin.training._checkpoint import Checkpoint, State
from labelkin.training._packing import load_packed, save_packed

FORMAT = 1  # of the features in the cache; raise it if images are read or prepared in another way
CPU_BATCH, GPU_BATCH = 4, 256  # images; the maps of a small batch stay in the caches of a core
NOTE_EVERY = 10.0  # seconds between two notes on how many features are computed
MOST_BYTES = 8 * 2**30  # of all features in the cache; beyond it, those not used for the longest time are deleted


def frozen_dataset(
    dataset: Dataset, backbone: nn.Module, *, device: torch.device, note: Callable[[str], None] = lambda text: None
) -> Dataset:
    """Return the data set with the features of a backbone as samples.

    Features are computed in evaluation mode, one batch on one thread, so they do not depend on the number of threads. They are
    kept in the cache under a hash of the backbone's layers and weights, the samples, the version of torch and the type of the
    device.

    Args:
        dataset: The data set; its normalization is part of the hash.
        backbone: The backbone, which is not changed.
        device: Where features are computed.
        note: Called with a message before features are computed, and from time to time while they are.
    """
    weights = _weights_digest(backbone, dataset.normalize)
    parts: dict[str, Any] = {}
    partial = {} if dataset.partial is None else {"partial": dataset.partial}
    for part, split in {**dataset.splits, **partial}.items():
        key = json.dumps([FORMAT, weights, split_digest(split), str(torch.__version__), device.type])
        path = derived_folder("features") / f"{sha256(key.encode()).hexdigest()}.safetensors"
        found = _read(path)
        if found is None:
            note(f"computing the features of {len(split):,} samples ({part}); they are kept for the next runs")
            found = _computed(split, backbone, dataset.normalize, device, note)
            _keep(path, found)
        parts[part] = ArraySplit(found["features"], split.targets[found["kept"]])
    width = parts["train"].shape[0]
    identity = Normalize(torch.zeros(width), torch.ones(width))
    return replace(dataset, **parts, normalization=identity, coarse_classes=None)


class WithBackbone:
    """A checkpoint that trains a head and finally stores the whole model.

    Args:
        checkpoint: The checkpoint of the run.
        backbone: The frozen backbone.
    """

    def __init__(self, checkpoint: Checkpoint, backbone: nn.Module) -> None:
        self.checkpoint, self.backbone = checkpoint, backbone

    def save(self, state: State) -> None:
        """Save the state of the head."""
        self.checkpoint.save(state)

    def load(self, *, clean: bool) -> State | None:
        """Return the last state of the head."""
        return self.checkpoint.load(clean=clean)

    def record(self, history: Sequence[Mapping[str, float]]) -> None:
        """Store the metrics of all finished epochs."""
        self.checkpoint.record(history)

    def finish(
        self, model: Mapping[str, Any], metrics: Mapping[str, float], outputs: Mapping[str, Any], *, seconds: float
    ) -> None:
        """Store the results, with the backbone's weights beside those of the head."""
        whole = {f"backbone.{name}": value for name, value in self.backbone.state_dict().items()}
        self.checkpoint.finish({**whole, **model}, metrics, outputs, seconds=seconds)


def _weights_digest(backbone: nn.Module, normalize: Normalize) -> str:
    """Return a SHA-256 of the layers of a backbone, of its parameters and buffers, and of the normalization before it."""
    found = sha256(repr(backbone).encode())
    tensors = {**backbone.state_dict(), "normalize.mean": normalize.mean, "normalize.std": normalize.std}
    for name, tensor in tensors.items():
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def _computed(
    split: Split, backbone: nn.Module, normalize: Normalize, device: torch.device, note: Callable[[str], None]
) -> dict[str, Tensor]:
    """Return the features of the samples that can be read, and the positions of these samples."""
    was_training = backbone.training
    backbone.to(device).eval()
    size = CPU_BATCH if device.type == "cpu" else GPU_BATCH
    batches = Batches(split, batch_size=min(size, len(split)), device=device, normalize=normalize).epoch(0)

    def apply(batch: Minibatch) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            features = backbone(batch.inputs)
        if not isinstance(features, Tensor) or features.ndim != 2:
            raise InputError("freeze: expected a backbone that returns one vector per sample; train it without freeze.")
        read = batch.weight > 0
        return features[read].float().cpu().clone(), batch.index[read].cpu().clone()

    try:
        found = _on_all_cores(apply, batches) if device.type == "cpu" else map(apply, batches)
        parts = list(_counted(found, len(split), note))
    finally:
        backbone.train(was_training)
    features, kept = (torch.cat(part) for part in zip(*parts, strict=True))
    return {"features": features, "kept": kept}


def _counted(
    found: Iterable[tuple[Tensor, Tensor]], total: int, note: Callable[[str], None]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield features, and note now and then how many there are of all samples."""
    done, noted = 0, monotonic()
    for features, index in found:
        yield features, index
        done += len(index)
        if monotonic() - noted > NOTE_EVERY and done < total:
            noted = monotonic()
            note(f"computed the features of {done:,} of {total:,} samples")


def _on_all_cores(
    apply: Callable[[Minibatch], tuple[Tensor, Tensor]], batches: Iterator[Minibatch]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Apply a function to batches in parallel, each on one thread of torch, and yield the results in order."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    waiting: deque[Future[tuple[Tensor, Tensor]]] = deque()
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for batch in batches:
                waiting.append(pool.submit(apply, batch))
                if len(waiting) > 2 * cores:  # so that few images are in memory
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        torch.set_num_threads(threads)


def _read(path: Path) -> dict[str, Tensor] | None:
    """Return features from the cache, or None if they are not there or damaged."""
    if not path.exists():
        return None
    try:
        found: dict[str, Tensor] = load_packed(path)
        if len(found["features"]) != len(found["kept"]):
            return None
        os.utime(path)  # the order in which features are deleted
    except (InputError, KeyError, OSError, TypeError):
        return None
    return found


def _keep(path: Path, found: Mapping[str, Tensor]) -> None:
    """Keep features in the cache; without a place to write, they are computed again the next time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_packed(path, dict(found))
        files = sorted(path.parent.glob("*.safetensors"), key=lambda file: file.stat().st_mtime_ns)
        spare = sum(file.stat().st_size for file in files) - MOST_BYTES
        for file in files[:-1]:
            if spare <= 0:
                break
            spare -= file.stat().st_size
            file.unlink(missing_ok=True)
    except OSError:
        return

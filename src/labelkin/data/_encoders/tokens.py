"""The encoder `tokens:NAME`: the token ids of texts, for a transformers model that is trained on them.

The rules of the tokenizer are stored with the run, so texts are encoded as in training even if the run is moved.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.data._encoders.hashed import Encoder
from labelkin.data._encoders.pretrained import TOKENS, loaded_from

BUCKETS = 1024  # of the vectors that class trees and relations are computed from


class Tokens(Encoder):
    """Map texts to token ids (n, length), padded at the end. The ids are whole numbers in float32, as samples are.

    Args:
        model: A transformers model of the hub, or a folder.
        name: The name for users, `tokens:MODEL`.
        rules: The fitted tokenizer as `state` returns it; None before `fitted`.
    """

    gives_ids = True

    def __init__(self, model: str, name: str, *, rules: Mapping[str, Any] | None = None) -> None:
        folder = Path(model).expanduser()
        self.model, self.name, self.rules = str(folder) if folder.is_dir() else model, name, rules

    def fitted(self, texts: Sequence[str]) -> Self:
        """Return the encoder with the length of the longest text: at most what the model takes, and at most 256 tokens."""
        transformers = require("transformers", extra="text", use=f"the encoder {self.name}")
        library = require("tokenizers", extra="text", use=f"the encoder {self.name}")
        read = loaded_from(self.model, self.name, lambda: transformers.AutoTokenizer.from_pretrained(self.model))
        config = loaded_from(self.model, self.name, lambda: transformers.AutoConfig.from_pretrained(self.model))
        inner, padding = getattr(read, "backend_tokenizer", None), getattr(config, "pad_token_id", None)
        if not isinstance(inner, library.Tokenizer) or padding is None:
            lacks = "no padding token in its config.json" if padding is None else "no tokenizer.json"
            raise InputError(
                f"encoder: {self.name!r} has {lacks}, which training it on texts needs; choose another model, or encode the "
                f"texts once with --encoder hf:{self.model} (in Python: encoder='hf:{self.model}')."
            )
        own = library.Tokenizer.from_str(inner.to_str())
        own.no_padding()
        own.no_truncation()
        limits = (TOKENS, read.model_max_length, getattr(config, "max_position_embeddings", None) or TOKENS)
        longest = max(len(found.ids) for found in own.encode_batch(list(texts)))
        rules = {
            "tokenizer": own.to_str(),
            "length": max(1, min(longest, *limits)),
            "padding": int(padding),
            "tokens": max(own.get_vocab_size(), int(padding) + 1),
        }
        return type(self)(self.model, self.name, rules=rules)

    @cached_property
    def _tokenizer(self) -> Any:
        if self.rules is None:
            raise InputError(
                f"encoder: {self.name} is not fitted yet; call fitted(texts) with the training texts first."
            )
        library = require("tokenizers", extra="text", use=f"the encoder {self.name}")
        found = library.Tokenizer.from_str(self.rules["tokenizer"])
        found.enable_truncation(self.rules["length"])
        found.enable_padding(pad_id=self.rules["padding"], length=self.rules["length"])
        return found

    def encode(self, texts: Sequence[str]) -> Tensor:
        ids = [found.ids for found in self._tokenizer.encode_batch(list(texts))]
        return torch.tensor(ids, dtype=torch.float32).view(len(texts), -1)

    def state(self) -> dict[str, Any]:
        return {"name": self.name, **(self.rules or {})}

    def counted(self, ids: Tensor) -> Tensor:
        """Return unit vectors (n, 1024) of hashed token counts, from which trees and relations of classes are computed."""
        assert self.rules is not None
        known = (ids != self.rules["padding"]).float()
        counts = torch.zeros(len(ids), BUCKETS).scatter_add_(1, ids.long() % BUCKETS, known)
        weight = 1 + torch.log((1 + len(ids)) / (1 + (counts > 0).sum(0)))
        return torch.nn.functional.normalize(counts.log1p() * weight, eps=1e-12)

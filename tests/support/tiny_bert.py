"""A randomly initialized BERT of a few thousand weights, with a tokenizer of words and a set of short texts."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from labelkin import Taxonomy
from support.later import Later

if TYPE_CHECKING:
    from transformers import BertConfig, PreTrainedTokenizerFast

tokenizers, transformers = Later("tokenizers"), Later("transformers")

CLASSES = ("cat", "dog", "car", "ship")
TREE = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "ship"]})
WORDS = {
    "cat": "the cat purrs and sleeps",
    "dog": "a dog barks at night and sleeps",
    "car": "the car has wheels",
    "ship": "a ship with sails at sea",
}
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def tokenizer() -> "PreTrainedTokenizerFast":
    """A tokenizer of whole words, made from the words themselves."""
    words = sorted({word for text in WORDS.values() for word in text.split()})
    vocabulary = {word: position for position, word in enumerate((*SPECIAL, *words))}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def samples(count: int = 24) -> list[dict[str, Any]]:
    """Texts of three to five words of a class, in the form that a tokenizer gives."""
    drawn = torch.Generator().manual_seed(0)
    encode = tokenizer()
    found = []
    for position in range(count):
        label = position % len(CLASSES)
        words = WORDS[CLASSES[label]].split()
        length = 3 + position % 3
        chosen = torch.randint(len(words), (length,), generator=drawn)
        found.append({**encode(" ".join(words[int(i)] for i in chosen)), "labels": label})
    return found


def collated(part: list[dict[str, Any]]) -> dict[str, Tensor]:
    """A batch of samples, padded."""
    batch: dict[str, Tensor] = dict(tokenizer().pad(part, return_tensors="pt"))
    return batch


def config(**options: Any) -> "BertConfig":
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return transformers.BertConfig(vocab_size=32, max_position_embeddings=16, pad_token_id=0, **{**sizes, **options})

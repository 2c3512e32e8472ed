"""Encoders of texts by name, for the option `encoder`.

`hashed-tfidf` is built in, and so are `hashed-code` for source code and `hashed-characters` for parts of words; `minilm` is an
optional package; `hf:NAME` and `st:NAME` are models of transformers and sentence-transformers, from a hub or a folder. A folder
without a prefix is read by the library that wrote it. `tokens:NAME` gives token ids, for the backbone `hf:NAME`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, near
from labelkin.data._encoders.hashed import CHARACTERS, CODE, NAME, Encoder, HashedCharacters, HashedCode, HashedTfidf
from labelkin.data._encoders.pretrained import Pretrained, SentenceTransformer, Transformer, in_folder, minilm
from labelkin.data._encoders.tokens import Tokens

__all__ = ["DEFAULT", "Encoder", "Tokens", "encoder", "restored"]

DEFAULT = NAME
DOORS: dict[str, Callable[[str, str], Encoder]] = {"hf": Transformer, "st": SentenceTransformer, "tokens": Tokens}
HASHED: dict[str, type[HashedTfidf]] = {NAME: HashedTfidf, CODE: HashedCode, CHARACTERS: HashedCharacters}
KNOWN = (*HASHED, "minilm", *(f"{door}:NAME" for door in DOORS))


def encoder(name: str) -> Encoder:
    """Return the encoder of that name, not fitted yet."""
    head, colon, rest = name.partition(":")
    if head in HASHED and (not colon or rest.isdecimal()):
        return HASHED[head](int(rest)) if colon else HASHED[head]()
    if name == "minilm":
        return minilm()
    if head in DOORS and rest:
        return DOORS[head](rest, name)
    if Path(name).expanduser().is_dir():
        return in_folder(name)
    raise InputError(
        f"encoder: expected {', '.join(KNOWN)} or the folder of a model, got {name!r}.{near(name, (*HASHED, 'minilm'))}"
    )


def restored(state: Mapping[str, Any]) -> Encoder:
    """Rebuild an encoder from `Encoder.state`; refuse a pretrained model that has changed."""
    found = encoder(state["name"])
    if isinstance(found, HashedTfidf):
        return type(found)(found.width, buckets=state["buckets"], idf=state["idf"])
    if isinstance(found, Tokens):
        return Tokens(found.model, found.name, rules={name: value for name, value in state.items() if name != "name"})
    if isinstance(found, Pretrained) and found.revision != state["revision"]:
        raise InputError(
            f"encoder: {found.name!r} changed since the run was trained: expected revision {state['revision'][:16]}, "
            f"got {found.revision[:16]}; restore that revision, or train again."
        )
    return found

"""Sequence nets by name, with the options of each."""

from inspect import Parameter, signature
from typing import Any

from labelkin._checks import InputError, listed, near
from labelkin.models.seq2seq import Seq2Seq

IWSLT: dict[str, Any] = {"embedding": 512, "hidden": 512, "layers": 2, "dropout": 0.2}
LCSTS: dict[str, Any] = {"embedding": 400, "hidden": 500, "layers": 1, "dropout": 0.0}
SEQUENCE_NETS: dict[str, dict[str, Any]] = {
    "lstm-512x2": IWSLT,  # 003's for IWSLT'15
    "lstm-500x1": LCSTS,  # 003's for LCSTS
    "bilstm-512x2": {**IWSLT, "bidirectional": True},  # not in the paper
}
DEFAULT = "lstm-512x2"


def build_sequence_net(text: str, source_words: int, target_words: int) -> Seq2Seq:
    """Build a net of `SEQUENCE_NETS`.

    Args:
        text: A name, followed by changed options after a colon: `"bilstm-512x2:dropout=0.4,input_feeding=true"`.
        source_words: Size of the source vocabulary.
        target_words: Size of the target vocabulary.

    Returns:
        The net.

    Example:
        >>> from labelkin.models.sequence_nets import build_sequence_net
        >>> build_sequence_net("lstm-512x2:hidden=8,embedding=4", 10, 10).features
        8
    """
    name, _, changes = text.partition(":")
    if name not in SEQUENCE_NETS:
        hint = near(name, SEQUENCE_NETS)
        raise InputError(f"there is no sequence net {name!r}; expected one of {', '.join(SEQUENCE_NETS)}.{hint}")
    options = {**SEQUENCE_NETS[name], **_changes(name, changes)}
    try:
        return Seq2Seq(source_words, target_words, **options)
    except InputError as error:
        raise InputError(f"backbone {text!r}: {error}") from error


def _changes(name: str, text: str) -> dict[str, Any]:
    known = [p.name for p in signature(Seq2Seq).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        option, equals, value = part.partition("=")
        if not equals or option not in known:
            raise InputError(
                f"backbone {name!r}: expected OPTION=VALUE of {listed(known, limit=9)}, got {part!r}.{near(option, known)}"
            )
        found[option] = _value(value)
    return found


def _value(text: str) -> Any:
    words = {"true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text  # which the net refuses by its type

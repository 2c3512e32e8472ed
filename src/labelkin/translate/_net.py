"""LSTM encoder-decoder with Luong attention (paper 003, Sec. 3.1).

The network returns features, one vector per target position. As with every backbone, the output layer belongs to the
objective.
"""

from inspect import Parameter, signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from labelkin._checks import InputError, check_count, check_number, listed, near


class GeneralAttention(nn.Module):
    """Attend to all source positions with a bilinear score.

    Computes `score(h, s) = h^T W s`, a softmax over the source, and `tanh(W_c [context; h])` (Luong et al. 2015, Eq. 5, 7, 8).

    Args:
        width: Size of the states of encoder and decoder.

    Example:
        >>> import torch
        >>> from labelkin.translate._net import GeneralAttention
        >>> attention = GeneralAttention(4)
        >>> hidden, memory = torch.zeros(2, 3, 4), torch.zeros(2, 5, 4)
        >>> attention(hidden, memory, attention.keys(memory), torch.ones(2, 5, dtype=torch.bool)).shape
        torch.Size([2, 3, 4])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, width, bias=False)
        self.combine = nn.Linear(2 * width, width, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """Return `W s` of all source positions, (B, S, H); compute it once per sentence."""
        keys: Tensor = self.score(memory)
        return keys

    def forward(self, hidden: Tensor, memory: Tensor, keys: Tensor, real: Tensor) -> Tensor:
        """Map decoder states (B, T, H) to attentional states (B, T, H); `real` (B, S) is false on padding."""
        scores = torch.bmm(hidden, keys.transpose(1, 2))  # (B, T, S)
        scores = scores.masked_fill(~real.unsqueeze(1), torch.finfo(scores.dtype).min)
        context = torch.bmm(torch.softmax(scores, -1).to(memory.dtype), memory)
        return torch.tanh(self.combine(torch.cat([context, hidden.to(context.dtype)], -1)))


class Teacher(NamedTuple):
    """Inputs of training by teacher forcing: the source, and the word before each target."""

    source: Tensor  # (B, S) words, with any padding
    lengths: Tensor  # (B,) of the source sentences, on the CPU
    previous: Tensor  # (B, T) the word before each target


class State(NamedTuple):
    """State of a decoder; the first axis of every tensor is the batch."""

    hidden: Tensor  # (B, layers, H)
    cell: Tensor  # (B, layers, H)
    fed: Tensor  # (B, H) the previous attentional state, for input feeding
    memory: Tensor  # (B, S, H) the encoder's outputs
    keys: Tensor  # (B, S, H)
    real: Tensor  # (B, S) false on padding


class Seq2Seq(nn.Module):
    """LSTM encoder-decoder with global attention.

    `forward(Teacher)` returns features (B, T, hidden); `encode` and `step` decode one word at a time.

    The paper does not specify the direction of its LSTM, so the encoder reads in one direction by default. Dropout applies
    to embeddings, between layers and to attentional states (this library's choice). All weights are initialized uniformly in
    ±0.1.

    Args:
        source_words: Size of the source vocabulary.
        target_words: Size of the target vocabulary.
        embedding: Width of the word embeddings.
        hidden: Width of the states, and of the features.
        layers: Number of LSTM layers.
        dropout: Dropout probability.
        bidirectional: Whether to read the source in both directions, each with half the width.
        input_feeding: Whether each step gets the previous attentional state (Luong et al., Sec. 3.3), which needs a loop over
            positions. Without it, the decoder is one LSTM over all positions, which is faster.
        embedding_std: Initialize the embeddings from a normal distribution with this deviation (this library's option).
            Attention then forms sooner on a small corpus.

    Example:
        >>> import torch
        >>> from labelkin.translate import Seq2Seq
        >>> from labelkin.translate._net import Teacher
        >>> net = Seq2Seq(20, 30, embedding=4, hidden=6, layers=1)
        >>> words = torch.zeros(2, 5, dtype=torch.long)
        >>> net(Teacher(words, torch.tensor([5, 3]), words[:, :4])).shape
        torch.Size([2, 4, 6])
    """

    def __init__(
        self,
        source_words: int,
        target_words: int,
        *,
        embedding: int = 512,
        hidden: int = 512,
        layers: int = 2,
        dropout: float = 0.2,
        bidirectional: bool = False,
        input_feeding: bool = False,
        embedding_std: float | None = None,
    ) -> None:
        super().__init__()
        sizes = {"source_words": source_words, "target_words": target_words, "embedding": embedding}
        for name, size in {**sizes, "hidden": hidden, "layers": layers}.items():
            check_count(name, size)
        check_number("dropout", dropout, low=0, high=0.9)
        if bidirectional and hidden % 2:
            raise InputError(f"hidden: expected an even number for two directions, got {hidden}.")
        self.features, self.input_feeding = hidden, input_feeding
        between = dropout if layers > 1 else 0.0
        width = hidden // 2 if bidirectional else hidden
        self.read = nn.Embedding(source_words, embedding)
        self.written = nn.Embedding(target_words, embedding)
        self.encoder = nn.LSTM(embedding, width, layers, batch_first=True, dropout=between, bidirectional=bidirectional)
        inputs = embedding + hidden if input_feeding else embedding
        self.decoder = nn.LSTM(inputs, hidden, layers, batch_first=True, dropout=between)
        self.attention = GeneralAttention(hidden)
        self.dropout = nn.Dropout(dropout)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)
        if embedding_std is not None:
            check_number("embedding_std", embedding_std, low=0, open_low=True)
            for words in (self.read, self.written):
                nn.init.normal_(words.weight, std=embedding_std)

    def forward(self, inputs: Teacher) -> Tensor:
        """Return the features (B, T, hidden) of all target positions."""
        state = self.encode(inputs.source, inputs.lengths)
        if not self.input_feeding:
            return self._decode(inputs.previous, state)[0]
        features = []
        for word in inputs.previous.unbind(1):
            found, state = self._decode(word.unsqueeze(1), state)
            features.append(found)
        return torch.cat(features, 1)

    def encode(self, source: Tensor, lengths: Tensor) -> State:
        """Read the source (B, S) and return the state in which the decoder starts."""
        packed = pack_padded_sequence(
            self.dropout(self.read(source)), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        outputs, (hidden, cell) = self.encoder(packed)
        memory, _ = pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])
        real = torch.arange(source.shape[1], device=source.device) < lengths.to(source.device).unsqueeze(1)
        return State(
            self._joined(hidden),
            self._joined(cell),
            memory.new_zeros(len(source), self.features),
            memory,
            self.attention.keys(memory),
            real,
        )

    def step(self, words: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the features (B, H) of the position after `words` (B,), and the next state."""
        features, state = self._decode(words.unsqueeze(1), state)
        return features.squeeze(1), state

    def _joined(self, parts: Tensor) -> Tensor:
        """Reshape (layers * directions, B, width) to (B, layers, H), directions side by side."""
        batch = parts.shape[1]
        return parts.transpose(0, 1).reshape(batch, self.decoder.num_layers, self.features)

    def _decode(self, previous: Tensor, state: State) -> tuple[Tensor, State]:
        """Return features (B, T, H) of the positions after `previous` (B, T); with input feeding T is 1."""
        inputs = self.dropout(self.written(previous))
        if self.input_feeding:
            inputs = torch.cat([inputs, state.fed.unsqueeze(1).to(inputs.dtype)], -1)
        begin = (state.hidden.transpose(0, 1).contiguous(), state.cell.transpose(0, 1).contiguous())
        outputs, (hidden, cell) = self.decoder(inputs, begin)
        features: Tensor = self.dropout(self.attention(outputs, state.memory, state.keys, state.real))
        after = state._replace(hidden=hidden.transpose(0, 1), cell=cell.transpose(0, 1), fed=features[:, -1])
        return features, after


IWSLT: dict[str, Any] = {"embedding": 512, "hidden": 512, "layers": 2, "dropout": 0.2}
LCSTS: dict[str, Any] = {"embedding": 400, "hidden": 500, "layers": 1, "dropout": 0.0}
SEQUENCE_NETS: dict[str, dict[str, Any]] = {
    "lstm-512x2": IWSLT,  # paper 003, IWSLT'15
    "lstm-500x1": LCSTS,  # paper 003, LCSTS
    "bilstm-512x2": {**IWSLT, "bidirectional": True},  # not in the paper
}
DEFAULT = "lstm-512x2"


def build_sequence_net(text: str, source_words: int, target_words: int) -> Seq2Seq:
    """Build a sequence network by its name.

    Args:
        text: A name in `SEQUENCE_NETS`, optionally with changed options: `"bilstm-512x2:dropout=0.4,input_feeding=true"`.
        source_words: Size of the source vocabulary.
        target_words: Size of the target vocabulary.

    Returns:
        The network.

    Example:
        >>> from labelkin.translate import build_sequence_net
        >>> build_sequence_net("lstm-512x2:hidden=8,embedding=4", 10, 10).features
        8
    """
    name, _, changes = text.partition(":")
    if name not in SEQUENCE_NETS:
        hint = near(name, SEQUENCE_NETS)
        raise InputError(f"there is no sequence network {name!r}; expected one of {', '.join(SEQUENCE_NETS)}.{hint}")
    options = {**SEQUENCE_NETS[name], **_changes(name, changes)}
    try:
        return Seq2Seq(source_words, target_words, **options)
    except InputError as error:
        raise InputError(f"backbone {text!r}: {error}") from error


def _changes(name: str, text: str) -> dict[str, Any]:
    """Parse options such as `dropout=0.4,input_feeding=true`."""
    known = [p.name for p in signature(Seq2Seq).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        option, equals, value = part.partition("=")
        if not equals or option not in known:
            raise InputError(
                f"backbone {name!r}: expected OPTION=VALUE with an option of {listed(known, limit=9)}, "
                f"got {part!r}.{near(option, known)}"
            )
        found[option] = _value(value)
    return found


def _value(text: str) -> Any:
    """Parse a boolean or a number; other text stays."""
    words = {"true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text  # refused by the network, which checks types

"""The words that a model reads or writes; those it writes are its labels."""

from collections import Counter
from collections.abc import Iterable, Sequence

from labelkin._checks import InputError, check_count

END, UNKNOWN = 0, 1  # END also begins a sentence; padding needs no word, since its weight is 0
SPECIAL = ("</s>", "<unk>")


class Vocabulary:
    """Words by position. The first two are the end of a sentence and the unknown word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (*SPECIAL, *(word for word in words if word not in SPECIAL))
        self._positions = {word: position for position, word in enumerate(self.words)}

    @classmethod
    def of(
        cls, sentences: Iterable[Sequence[str]], *, min_count: int = 1, max_words: int | None = None
    ) -> "Vocabulary":
        """Words that occur `min_count` times or more, the `max_words` most frequent of them; equals by alphabet."""
        check_count("min_count", min_count)
        if max_words is not None:
            check_count("max_words", max_words)
        counts = Counter(token for sentence in sentences for token in sentence)
        kept = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
        found = cls(kept[:max_words])
        if len(found) == len(SPECIAL):
            most = max(counts.values(), default=0)
            raise InputError(
                f"min_count: the vocabulary lacks every word, since none occurs {min_count} times (at most {most}); lower it."
            )
        return found

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Positions, without the end; a sign of the end inside a sentence is an unknown word."""
        return [self._positions.get(token, UNKNOWN) or UNKNOWN for token in tokens]

    def decode(self, positions: Iterable[int]) -> list[str]:
        """Words up to the end of the sentence."""
        tokens = []
        for position in positions:
            if position == END:
                break
            tokens.append(self.words[position])
        return tokens

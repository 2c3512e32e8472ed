"""The translation task: each target word is a class, for the same training loop and objectives."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice
from labelkin._extras import require
from labelkin.training import Evaluation, Model, Place, Settings, Task
from labelkin.translate._batches import PairBatch, PairBatches
from labelkin.translate._corpus import END, Corpus
from labelkin.translate._net import Teacher
from labelkin.translate._search import Search, write
from labelkin.translate._text_metrics import bleu, rouge

EVALUATION_BATCH = 128  # sentences whose scores of all words are in memory at once
MEASURES = ("bleu", "rouge")


class Translate(Task):
    """Training task: train a sequence-to-sequence model on a corpus.

    After every epoch, sentences are decoded greedily, and the metric on the validation part selects the best epoch. At the end,
    the test part is decoded with `search`.

    Args:
        corpus: Pairs of sentences.
        search: The beam search for the final metrics.
        measure: "bleu", or "rouge" for summaries.

    Example:
        >>> from labelkin.translate import Translate
        >>> from labelkin.translate._corpus import build_corpus
        >>> texts = ["a cat"], ["eine katze"]
        >>> task = Translate(build_corpus("toy", {"train": texts, "test": texts}))
        >>> task.chosen_by, task.parts_evaluated
        ('bleu', ('test',))
    """

    def __init__(self, corpus: Corpus, *, search: Search | None = None, measure: str = "bleu") -> None:
        check_choice("measure", measure, MEASURES)
        require("sacrebleu" if measure == "bleu" else "rouge_score", extra="translate", use=measure.upper())
        self.corpus, self.measure = corpus, measure
        self.search = (search or Search()).check()
        self._ordered: dict[str, PairBatches] = {}

    @property
    def chosen_by(self) -> str:
        """The metric that selects the best epoch."""
        return "bleu" if self.measure == "bleu" else "rougeL"

    @property
    def parts_evaluated(self) -> tuple[str, ...]:
        """The validation and test parts, if the corpus has them."""
        return tuple(part for part in ("val", "test") if part in self.corpus.parts)

    def batches(self, settings: Settings, place: Place) -> PairBatches:
        """Return shuffled batches of sentence pairs of similar length."""
        for name in ("balanced", "augment"):
            if getattr(settings, name):
                raise InputError(f"{name}: does not apply to translation; leave it out.")
        train = self.corpus.parts["train"]
        return PairBatches(
            train,
            batch_size=min(settings.batch_size, len(train)),
            shuffle=True,
            seed=settings.seed,
            device=place.device,
            rank=place.rank,
            world=place.world,
        )

    def loss(self, model: Callable[..., Any], batch: PairBatch) -> Any:
        """Return the loss of a batch over all target words; padding has weight 0."""
        return model(_teacher(batch), batch.targets, weight=batch.weight if batch.weighted else None)

    def parts(self, batch: PairBatch, count: int) -> list[PairBatch]:
        """Split a batch into `count` parts."""
        if count == 1:
            return [batch]
        return [type(batch)(*part) for part in zip(*(torch.chunk(field, count) for field in batch), strict=True)]

    def refresh(self, model: Model, place: Place) -> None:
        """Give the objective the outputs of all training words."""
        model.objective.refresh(
            (model(_teacher(batch)), batch.targets, batch.weight) for batch in self._in_order("train", place.device)
        )

    def _in_order(self, part: str, device: torch.device) -> Iterator[PairBatch]:
        """Iterate over the pairs of a part by length, the same on every process; they are moved to the device once."""
        if part not in self._ordered:
            pairs = self.corpus.parts[part]
            self._ordered[part] = PairBatches(pairs, batch_size=min(EVALUATION_BATCH, len(pairs)), device=device)
        return self._ordered[part].epoch(0)

    def evaluate(self, model: Model, part: str, place: Place) -> Evaluation:
        """Return the accuracy of the next word given the true words before it, and the metrics of greedy decoding."""
        right = torch.zeros((), device=place.device)
        total = torch.zeros((), device=place.device)
        for batch in self._in_order(part, place.device):
            predicted = model.objective.scores(model(_teacher(batch))).argmax(-1)
            right += (batch.weight * (predicted == batch.targets)).sum()
            total += batch.weight.sum()
        words = self._written(model, part, place.device, Search(beam=1))
        found = {"accuracy": float(right / total), **self.measured(words, part)}
        return Evaluation(found, {"words": _table(words)})

    def final_metrics(self, model: Model, tested: Evaluation) -> dict[str, float]:
        """Return the metrics of the test part decoded with `search`, and also the metric of greedy decoding."""
        device = next(model.parameters()).device
        found = self.measured(self._written(model, "test", device, self.search), "test")
        greedy = {f"greedy_{self.chosen_by}": tested.metrics[self.chosen_by]}
        return {"accuracy": tested.metrics["accuracy"], **found, **greedy}

    def measured(self, words: Sequence[Sequence[int]], part: str) -> dict[str, float]:
        """Compare decoded sentences with the references.

        bleu         sacrebleu's default, on detokenized sentences; lower-cased if the corpus is
        bleu_tokens  the same on the corpus's tokens, comparable with papers that used multi-bleu.perl
        """
        pairs, language = self.corpus.parts[part], self.corpus.target
        tokens = [language.decode(sentence) for sentence in words]
        texts = [language.join(sentence) for sentence in tokens]
        if self.measure == "rouge":
            return rouge(texts, pairs.references, units="characters" if language.tokens == "characters" else "words")
        references = [" ".join(language.split(text)) for text in pairs.references]
        return {
            "bleu": bleu(texts, pairs.references),
            "bleu_tokens": bleu([" ".join(sentence) for sentence in tokens], references, tokenize="none"),
        }

    def _written(self, model: Model, part: str, device: torch.device, search: Search) -> list[list[int]]:
        """Decode all sentences of a part, in its order."""
        rows: dict[int, list[int]] = {}
        for batch in self._in_order(part, device):
            rows |= dict(zip(batch.index.tolist(), write(model, batch.source, batch.lengths, search), strict=True))
        return [rows[place] for place in range(len(rows))]


def _teacher(batch: PairBatch) -> Teacher:
    """Return the model's inputs for teacher forcing."""
    return Teacher(batch.source, batch.lengths, batch.previous)


def _table(words: Sequence[Sequence[int]]) -> Tensor:
    """Return sentences as one tensor (n, longest), padded with END."""
    longest = max(1, max(len(sentence) for sentence in words))
    return torch.tensor([[*sentence, *[END] * (longest - len(sentence))] for sentence in words], dtype=torch.int32)

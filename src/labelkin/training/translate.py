"""Translation: the same loop and the same objectives, a label a target word."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice
from labelkin._extras import require
from labelkin.data.corpora import END, Corpus, PairBatch, PairBatches
from labelkin.metrics.text import bleu, rouge
from labelkin.models.seq2seq import Teacher
from labelkin.training.model import Model
from labelkin.training.settings import Settings
from labelkin.training.task import Evaluation, Place, Task
from labelkin.training.writing import Search, write

EVALUATION_BATCH = 128  # whose scores of all words are held at once
MEASURES = ("bleu", "rouge")


class Translate(Task):
    """Translation of a `Corpus`; padding has weight 0.

    After every epoch sentences are written greedily, and those of the validation part choose the epoch; at the end the
    test part is written by `search`. `measure` is "bleu", or "rouge" for summaries.
    """

    def __init__(self, corpus: Corpus, *, search: Search | None = None, measure: str = "bleu") -> None:
        check_choice("measure", measure, MEASURES)
        require("sacrebleu" if measure == "bleu" else "rouge_score", extra="translate", use=measure.upper())
        self.corpus, self.measure = corpus, measure
        self.search = (search or Search()).check()
        self._ordered: dict[str, PairBatches] = {}

    @property
    def chosen_by(self) -> str:
        """The metric that chooses the epoch."""
        return "bleu" if self.measure == "bleu" else "rougeL"

    @property
    def parts_evaluated(self) -> tuple[str, ...]:
        return tuple(part for part in ("val", "test") if part in self.corpus.parts)

    def batches(self, settings: Settings, place: Place) -> PairBatches:
        for name in ("balanced", "augment"):
            if getattr(settings, name):
                raise InputError(f"{name}: has no meaning for sentences; leave it out.")
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
        return model(_teacher(batch), batch.targets, weight=batch.weight if batch.weighted else None)

    def parts(self, batch: PairBatch, count: int) -> list[PairBatch]:
        if count == 1:
            return [batch]
        fields = (torch.chunk(field, count) for field in batch[:-1])
        return [PairBatch(*part, batch.weighted) for part in zip(*fields, strict=True)]

    def refresh(self, model: Model, place: Place) -> None:
        model.objective.refresh(
            (model(_teacher(batch)), batch.targets, batch.weight) for batch in self._in_order("train", place.device)
        )

    def _in_order(self, part: str, device: torch.device) -> Iterator[PairBatch]:
        """All pairs of a part, by length, the same on every process; moved to the device once."""
        if part not in self._ordered:
            pairs = self.corpus.parts[part]
            self._ordered[part] = PairBatches(pairs, batch_size=min(EVALUATION_BATCH, len(pairs)), device=device)
        return self._ordered[part].epoch(0)

    def evaluate(self, model: Model, part: str, place: Place) -> Evaluation:
        """Token accuracy where the words before are given, and the measures of what is written greedily."""
        right = torch.zeros((), device=place.device)
        total = torch.zeros((), device=place.device)
        for batch in self._in_order(part, place.device):
            predicted = model.objective.scores(model(_teacher(batch))).argmax(-1)
            right += (batch.weight * (predicted == batch.targets)).sum()
            total += batch.weight.sum()
        words = self._written(model, part, place.device, Search(beam=1))
        found = {"accuracy": float(right / total), **self.measured(words, part)}
        return Evaluation(found, {"words": _table(words)})

    def conclude(self, model: Model, tested: Evaluation) -> dict[str, float]:
        """The test part written by the search asked for; what was written greedily stands beside it."""
        device = next(model.parameters()).device
        found = self.measured(self._written(model, "test", device, self.search), "test")
        greedy = {f"greedy_{self.chosen_by}": tested.metrics[self.chosen_by]}
        return {"accuracy": tested.metrics["accuracy"], **found, **greedy}

    def measured(self, words: Sequence[Sequence[int]], part: str) -> dict[str, float]:
        """What was written against the references.

        bleu         sacrebleu's default, on sentences as they are written; lower-cased where the corpus is
        bleu_tokens  the same on the corpus's tokens: what papers report that used multi-bleu.perl
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
        """The words written for each sentence of a part, in its order."""
        rows: dict[int, list[int]] = {}
        for batch in self._in_order(part, device):
            rows |= dict(zip(batch.index.tolist(), write(model, batch.source, batch.lengths, search), strict=True))
        return [rows[place] for place in range(len(rows))]


def _teacher(batch: PairBatch) -> Teacher:
    return Teacher(batch.source, batch.lengths, batch.previous)


def _table(words: Sequence[Sequence[int]]) -> Tensor:
    """(n, longest) with END behind each sentence."""
    longest = max(1, max(len(sentence) for sentence in words))
    return torch.tensor([[*sentence, *[END] * (longest - len(sentence))] for sentence in words], dtype=torch.int32)

"""Load a finished run as a translator, and list the nearest labels a run learned."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from labelkin._arrays import ranked
from labelkin._checks import InputError, check_count, listed, near
from labelkin._files import write_text
from labelkin.objectives import LabelEmbedding
from labelkin.runs import (
    RunFolder,
    RunSpec,
    accepted_options,
    check_no_overwrite,
    existing_run_folder,
    fastest_device,
    kind_in,
    load_run,
)
from labelkin.training import Model
from labelkin.translate._corpus import END, UNKNOWN, Language, Vocabulary
from labelkin.translate._corpus_files import file_at, read_sentences
from labelkin.translate._run import KIND, build_translator
from labelkin.translate._search import Search, translate_texts


class Translator(nn.Module):
    """The trained model of a translation run. It takes sentences and returns sentences."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__()
        config, setup = folder.config, folder.setup
        self.spec = RunSpec.from_dict(config)
        self.source, self.target = _language(setup["source"]), _language(setup["target"])
        self.model = build_translator(
            self.spec.objective,
            accepted_options(self.spec.objective, setup["options"]),
            config["resolved_backbone"],
            len(self.source.vocabulary),
            self.target.vocabulary.words,
            seed=0,
        )
        try:
            self.model.load_state_dict(folder.model_state())
        except RuntimeError as error:
            raise InputError(
                f"{folder.path}: the weights do not fit the model in config.json; train the run again."
            ) from error
        self.eval()

    def translate(
        self, texts: Sequence[str], *, beam: int | None = None, length_penalty: float | None = None
    ) -> list[str]:
        """Translate sentences. `beam` and `length_penalty` default to those that the run was evaluated with."""
        asked = self.spec.data_options
        search = Search(
            asked.get("beam", Search().beam) if beam is None else beam,
            asked.get("length_penalty", Search().length_penalty) if length_penalty is None else length_penalty,
        ).check()
        return translate_texts(self.model, self.source, self.target, texts, search)


def is_translation(run: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a translation run."""
    return kind_in(RunFolder(existing_run_folder(run)).config) == KIND


def load_translator(run: str | os.PathLike[str]) -> Translator:
    """Load the trained model of a translation run, on the CPU."""
    folder = RunFolder(existing_run_folder(run))
    if kind_in(folder.config) != KIND:
        raise InputError(f"{run}: is a classification run on {folder.config['data']!r}; use `labelkin predict` for it.")
    return Translator(folder)


def translate_file(
    run: str | os.PathLike[str],
    file: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    beam: int | None = None,
    length_penalty: float | None = None,
) -> list[str]:
    """Translate a file with one sentence per line. With `output`, write the translations there, one per line."""
    if output is not None and not Path(output).parent.is_dir():
        raise InputError(f"{output}: there is no folder {str(Path(output).parent)!r}; make it first.")
    translator, source = load_translator(run), file_at(Path(file))
    if output is not None:
        check_no_overwrite(output, inputs=[source], run=run, spec=translator.spec)
    texts = read_sentences(source)
    if all(word == UNKNOWN for text in texts for word in translator.source.encode(text)):
        raise InputError(
            f"{file}: none of its words is in the run's vocabulary; expected sentences in the source language of "
            f"{translator.spec.data!r}."
        )
    found = translator.to(fastest_device()).translate(texts, beam=beam, length_penalty=length_penalty)
    if output is not None:
        write_text(output, "".join(f"{line}\n" for line in found))
    return found


def _language(saved: Mapping[str, Any]) -> Language:
    return Language(Vocabulary(saved["words"]), saved["tokens"], saved["lower"])


class Neighbours(NamedTuple):
    label: str
    nearest: list[str]  # nearest first
    scores: list[float]  # entries of the label's embedding


@torch.no_grad()
def nearest_labels(run: str | os.PathLike[str], labels: Sequence[str], *, top: int = 10) -> list[Neighbours]:
    """Return the `top` labels with the largest `e_y[i]` for each label y.

    The label itself and the end and unknown tokens are left out. Works for runs that learn an embedding: label-embedding and
    compressed-label-embedding.
    """
    check_count("top", top)
    model, names, signs = _labels(run)
    if not isinstance(model.objective, LabelEmbedding):
        raise InputError(
            f"{run}: the run's objective learns no label embedding; train with label-embedding or compressed-label-embedding."
        )
    positions = [_position(label, names) for label in labels]
    most = len(names) - len(signs) - 1
    if top > most:
        raise InputError(f"top: expected at most {most}, the number of other labels, got {top}.")
    rows = model.objective.embed(torch.tensor(positions))
    rows[torch.arange(len(positions)), positions] = -torch.inf
    rows[:, signs] = -torch.inf
    places = ranked(rows, top)
    scores = rows.gather(-1, places)
    found = zip(labels, places.tolist(), scores.tolist(), strict=True)
    return [Neighbours(label, [names[i] for i in nearest], values) for label, nearest, values in found]


def _labels(run: str | os.PathLike[str]) -> tuple[Model, tuple[str, ...], list[int]]:
    """Return a run's model, the names of its labels, and the positions of tokens that are not words."""
    if is_translation(run):
        translator = load_translator(run)
        return translator.model, translator.target.vocabulary.words, [END, UNKNOWN]
    predictor = load_run(run)
    return predictor.model, predictor.classes, []


def _position(label: str, names: Sequence[str]) -> int:
    if label not in names:
        hint = near(label, names) or f" The first: {listed(names[2:])}."
        raise InputError(f"label: {label!r} is not among the run's {len(names)} labels.{hint}")
    return names.index(label)

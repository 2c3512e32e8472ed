"""Load a finished translation run and translate with it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from labelkin._checks import InputError
from labelkin._files import write_text
from labelkin.data.corpora import UNKNOWN, Language, Vocabulary, read_sentences
from labelkin.data.corpora.files import file_at
from labelkin.experiments.apart import check_apart
from labelkin.experiments.device import fastest_device
from labelkin.experiments.kinds import kind_in
from labelkin.experiments.predictor import run_at
from labelkin.experiments.spec import RunSpec, known_spelling
from labelkin.experiments.translation import KIND, build_translator
from labelkin.training import RunFolder
from labelkin.training.writing import Search, translate_texts


class Translator(nn.Module):
    """The trained model of a translation run. It takes sentences and returns sentences."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__()
        config, setup = folder.config, folder.setup
        self.spec = RunSpec.from_dict(config)
        self.source, self.target = _language(setup["source"]), _language(setup["target"])
        self.model = build_translator(
            self.spec.objective,
            known_spelling(self.spec.objective, setup["options"]),
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
    return kind_in(RunFolder(run_at(run)).config) == KIND


def load_translator(run: str | os.PathLike[str]) -> Translator:
    """Load the trained model of a translation run, on the CPU."""
    folder = RunFolder(run_at(run))
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
        check_apart(output, inputs=[source], run=run, spec=translator.spec)
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

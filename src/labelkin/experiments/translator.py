"""A finished run as a translator."""

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
from labelkin.experiments.predictor import run_at
from labelkin.experiments.spec import RunSpec
from labelkin.experiments.translation import KIND, build_translator
from labelkin.training import RunFolder
from labelkin.training.writing import Search, translate_texts


class Translator(nn.Module):
    """Sentences in, sentences out."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__()
        config, setup = folder.config, folder.setup
        self.spec = RunSpec.from_dict(config)
        self.source, self.target = _language(setup["source"]), _language(setup["target"])
        self.model = build_translator(
            self.spec.objective,
            setup["options"],
            config["resolved_backbone"],
            len(self.source.vocabulary),
            self.target.vocabulary.words,
            seed=0,
        )
        try:
            self.model.load_state_dict(folder.model_state())
        except RuntimeError as error:
            raise InputError(
                f"{folder.path}: the weights are of another model than config.json says; train anew."
            ) from error
        self.eval()

    def translate(
        self, texts: Sequence[str], *, beam: int | None = None, length_penalty: float | None = None
    ) -> list[str]:
        """A sentence for each, as the run was measured unless `beam` or `length_penalty` say otherwise."""
        asked = self.spec.data_options
        search = Search(
            asked.get("beam", Search().beam) if beam is None else beam,
            asked.get("length_penalty", Search().length_penalty) if length_penalty is None else length_penalty,
        ).check()
        return translate_texts(self.model, self.source, self.target, texts, search)


def is_translation(run: str | os.PathLike[str]) -> bool:
    return RunFolder(run_at(run)).config.get("kind") == KIND


def load_translator(run: str | os.PathLike[str]) -> Translator:
    """The trained model of a run's folder, on the CPU."""
    folder = RunFolder(run_at(run))
    if folder.config.get("kind") != KIND:
        raise InputError(f"{run}: a run that classifies, on {folder.config['data']!r}; use `labelkin predict` for it.")
    return Translator(folder)


def translate_file(
    run: str | os.PathLike[str],
    file: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    beam: int | None = None,
    length_penalty: float | None = None,
) -> list[str]:
    """Translate a file with a sentence a line; with `output`, write it there, line by line."""
    if output is not None and not Path(output).parent.is_dir():
        raise InputError(f"{output}: there is no folder {str(Path(output).parent)!r}; make it first.")
    translator, source = load_translator(run), file_at(Path(file))
    if output is not None:
        check_apart(output, inputs=[source], run=run, spec=translator.spec)
    texts = read_sentences(source)
    if all(word == UNKNOWN for text in texts for word in translator.source.encode(text)):
        raise InputError(
            f"{file}: the run's vocabulary lacks every word of it; expected sentences in the language that "
            f"{translator.spec.data!r} is translated from."
        )
    found = translator.to(fastest_device()).translate(texts, beam=beam, length_penalty=length_penalty)
    if output is not None:
        write_text(output, "".join(f"{line}\n" for line in found))
    return found


def _language(saved: Mapping[str, Any]) -> Language:
    return Language(Vocabulary(saved["words"]), saved["tokens"], saved["lower"])

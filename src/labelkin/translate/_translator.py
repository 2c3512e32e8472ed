"""Translators of finished runs, and the nearest labels that a run learned."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from labelkin._arrays import ranked
from labelkin._checks import InputError, check_count, counted, listed, near
from labelkin._files import check_replaceable, write_text
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
    r"""The trained model of a translation run, which `load_translator` returns.

    Args:
        folder: The run folder.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import labelkin
        >>> from labelkin.translate import load_translator
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.en").write_text("a cat\n" * 10)
        >>> _ = (folder / "a.de").write_text("eine katze\n" * 10)
        >>> run = labelkin.train(
        ...     f"{folder}/a.en:{folder}/a.de", out=folder / "run", epochs=1, backbone="lstm-500x1:hidden=4,embedding=4"
        ... )
        >>> translator = load_translator(run.path)
        >>> translator.source.vocabulary.words[2:], translator.target.vocabulary.words[2:]
        (('a', 'cat'), ('eine', 'katze'))
    """

    def __init__(self, folder: RunFolder) -> None:
        super().__init__()
        config, setup = folder.config, folder.setup
        self.spec = RunSpec.from_dict(config)
        self.source, self.target = _language(setup["source"]), _language(setup["target"])
        self.model = build_translator(
            self.spec.objective,
            accepted_options(self.spec.objective, setup["options"], config.get("revision")),
            config["resolved_backbone"],
            len(self.source.vocabulary),
            self.target.vocabulary.words,
            seed=0,
        )
        try:
            self.model.load_state_dict(folder.model_state())
        except RuntimeError as error:
            raise InputError(
                f"{folder.path}: the weights do not match the model in config.json; train the run again."
            ) from error
        self.eval()

    def translate(
        self, texts: Sequence[str], *, beam: int | None = None, length_penalty: float | None = None
    ) -> list[str]:
        """Translate sentences.

        Args:
            texts: The sentences.
            beam: Beam width; by default the one that the run was evaluated with.
            length_penalty: As in `beam_search`; by default the one that the run was evaluated with.

        Returns:
            The translations.
        """
        asked = self.spec.data_options
        search = Search(
            asked.get("beam", Search().beam) if beam is None else beam,
            asked.get("length_penalty", Search().length_penalty) if length_penalty is None else length_penalty,
        ).check()
        return translate_texts(self.model, self.source, self.target, texts, search)


def is_translation(run: str | os.PathLike[str]) -> bool:
    """Return whether a folder contains a translation run."""
    return kind_in(RunFolder(existing_run_folder(run)).config) == KIND


def load_translator(run: str | os.PathLike[str]) -> Translator:
    r"""Load the trained model of a translation run, on the CPU.

    Args:
        run: The run folder.

    Returns:
        The translator.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import labelkin
        >>> from labelkin.translate import load_translator
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.en").write_text("a cat\n" * 10)
        >>> _ = (folder / "a.de").write_text("eine katze\n" * 10)
        >>> run = labelkin.train(
        ...     f"{folder}/a.en:{folder}/a.de", out=folder / "run", epochs=1, backbone="lstm-500x1:hidden=4,embedding=4"
        ... )
        >>> len(load_translator(run.path).translate(["a cat", "cat"]))
        2
    """
    folder = RunFolder(existing_run_folder(run))
    if kind_in(folder.config) != KIND:
        raise InputError(
            f"{run}: expected a translation run, got a classification run on {folder.config['data']!r}; use `labelkin predict`."
        )
    return Translator(folder)


def translate_file(
    run: str | os.PathLike[str],
    file: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    beam: int | None = None,
    length_penalty: float | None = None,
) -> list[str]:
    r"""Translate a file with one sentence per line.

    Args:
        run: The run folder.
        file: The sentences, plain or .gz.
        output: File for the translations, one per line (default: none is written).
        beam: Beam width; by default the one that the run was evaluated with.
        length_penalty: As in `beam_search`; by default the one that the run was evaluated with.

    Returns:
        The translations.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import labelkin
        >>> from labelkin.translate import translate_file
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.en").write_text("a cat\n" * 10)
        >>> _ = (folder / "a.de").write_text("eine katze\n" * 10)
        >>> run = labelkin.train(
        ...     f"{folder}/a.en:{folder}/a.de", out=folder / "run", epochs=1, backbone="lstm-500x1:hidden=4,embedding=4"
        ... )
        >>> _ = (folder / "new.en").write_text("a cat\ncat\n")
        >>> found = translate_file(run.path, folder / "new.en", folder / "new.de")
        >>> len(found), (folder / "new.de").read_text() == "".join(f"{line}\n" for line in found)
        (2, True)
    """
    if output is not None and not Path(output).parent.is_dir():
        raise InputError(f"{output}: there is no folder {str(Path(output).parent)!r}; create it first.")
    translator, source = load_translator(run), file_at(Path(file))
    if output is not None:
        check_no_overwrite(output, inputs=[source], run=run, spec=translator.spec)
    texts = read_sentences(source)
    if all(word == UNKNOWN for text in texts for word in translator.source.encode(text)):
        raise InputError(
            f"{file}: expected sentences in the source language of {translator.spec.data!r}, got no word that is in the "
            "run's vocabulary."
        )
    found = translator.to(fastest_device()).translate(texts, beam=beam, length_penalty=length_penalty)
    if output is not None:
        text = "".join(f"{line}\n" for line in found)
        check_replaceable(output, by="this command", is_ours=lambda _: Path(output).read_bytes() == text.encode())
        write_text(output, text)
    return found


def _language(saved: Mapping[str, Any]) -> Language:
    """Rebuild a language from the values in a run folder."""
    return Language(Vocabulary(saved["words"]), saved["tokens"], saved["lower"])


DEFAULT_TOP = 10


class Neighbors(NamedTuple):
    """The nearest labels of a label."""

    label: str
    nearest: list[str]  # nearest first
    scores: list[float]  # entries of the label's embedding


@torch.no_grad()
def nearest_labels(run: str | os.PathLike[str], labels: Sequence[str], *, top: int | None = None) -> list[Neighbors]:
    """Return the nearest labels of each label: the `top` labels i with the largest entries `e_y[i]` of its embedding.

    The label itself and the end and unknown words are left out. The run's objective must learn an embedding: label-embedding or
    compressed-label-embedding.

    Args:
        run: The folder of a classification or translation run.
        labels: The labels to look up.
        top: Number of neighbors per label. None for 10, or all of them if there are fewer.

    Returns:
        One entry per label, with the names of the `nearest` labels and their `scores`.

    Example:
        >>> import tempfile
        >>> import labelkin
        >>> from labelkin.translate import nearest_labels
        >>> run = labelkin.train("digits", "label-embedding", out=tempfile.mkdtemp() + "/run", epochs=1)
        >>> [len(found.nearest) for found in nearest_labels(run.path, ["3", "8"], top=2)]
        [2, 2]
    """
    if top is not None:
        check_count("top", top)
    model, names, signs = _labels(run)
    if not isinstance(model.objective, LabelEmbedding):
        raise InputError(
            f"{run}: expected a run with the objective label-embedding or compressed-label-embedding, which learn an embedding."
        )
    positions = [_position(label, names) for label in labels]
    most = len(names) - len(signs) - 1
    wanted = min(DEFAULT_TOP, most) if top is None else top
    if wanted > most:
        raise InputError(f"top: expected at most {most}, the number of other labels, got {top}.")
    rows = model.objective.embed(torch.tensor(positions))
    rows[torch.arange(len(positions)), positions] = -torch.inf
    rows[:, signs] = -torch.inf
    places = ranked(rows, wanted)
    scores = rows.gather(-1, places)
    found = zip(labels, places.tolist(), scores.tolist(), strict=True)
    return [Neighbors(label, [names[i] for i in nearest], values) for label, nearest, values in found]


def _labels(run: str | os.PathLike[str]) -> tuple[Model, tuple[str, ...], list[int]]:
    """Return a run's model, the names of its labels, and the positions of tokens that are not words."""
    if is_translation(run):
        translator = load_translator(run)
        return translator.model, translator.target.vocabulary.words, [END, UNKNOWN]
    predictor = load_run(run)
    return predictor.model, predictor.classes, []


def _position(label: str, names: Sequence[str]) -> int:
    """Return the position of a label, or raise if there is none of that name."""
    if label not in names:
        hint = near(label, names) or f" The first: {listed(names[2:])}."
        raise InputError(f"label: the run has no label {label!r} among its {counted(len(names), 'label')}.{hint}")
    return names.index(label)

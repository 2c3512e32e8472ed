"""A run that translates, from its spec: a corpus, a sequence net, an objective whose labels are the target's words."""

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from inspect import Parameter, signature
from typing import Any

import torch

from labelkin._checks import InputError, listed, near
from labelkin.data.corpora import Corpus, Language, is_corpus, load_corpus
from labelkin.experiments.identity import run_id
from labelkin.experiments.lock import locked
from labelkin.experiments.run import check_machine, environment, other_process
from labelkin.experiments.spec import RunSpec
from labelkin.models.sequence_nets import DEFAULT, build_sequence_net
from labelkin.objectives import OBJECTIVES, Context
from labelkin.training import Model, Place, RunFolder, Trained, Trainer
from labelkin.training.progress import Progress, Silent
from labelkin.training.translate import Translate
from labelkin.training.writing import Search

__all__ = ["KIND", "build_translator", "is_corpus", "train_translation"]

KIND = "translation"  # in a run's config.json
TASK_OPTIONS = ("beam", "length_penalty", "measure")


def train_translation(
    spec: RunSpec,
    path: str | os.PathLike[str] | None = None,
    *,
    resume: bool = False,
    progress: Callable[[int], Progress] = lambda steps: Silent(),
    log: Callable[[Mapping[str, float]], None] = lambda row: None,
) -> Trained:
    """Train what a spec says whose data `is_corpus`. With a `path` the run is kept there, and `resume` goes on.

    `data_options` are those of `load_corpus`, and `beam`, `length_penalty` (see `beam_search`) and `measure` of `Translate`.
    """
    check_for_sentences(spec.objective)
    if spec.taxonomy is not None:
        raise InputError("taxonomy: words have none; leave it out.")
    corpus, task = _corpus_and_task(spec)
    backbone = spec.backbone or DEFAULT
    words = len(corpus.source.vocabulary), corpus.target.vocabulary.words
    model = build_translator(spec.objective, spec.options, backbone, *words, seed=spec.settings.seed)
    folder = None if path is None else RunFolder(os.fspath(path))
    trainer = Trainer(model, task, spec.settings, checkpoint=folder, progress=progress, log=log)
    task.batches(spec.settings, Place(torch.device("cpu")))
    check_machine(spec.settings)
    first = not other_process()
    with locked(folder.path) if folder is not None and first else nullcontext():
        if folder is not None and first and not (folder.path / "config.json").exists():
            _begin(folder, spec, backbone, corpus)
        trained = trainer.fit(resume=resume)
        if torch.distributed.is_initialized():
            torch.distributed.barrier()  # the first process has written what the others may read
    return trained


def build_translator(
    objective: str,
    options: Mapping[str, Any],
    backbone: str,
    source_words: int,
    target_words: tuple[str, ...],
    *,
    seed: int,
) -> Model:
    """The net's first weights depend on the seed alone, so that all objectives share them."""
    check_for_sentences(objective)
    torch.manual_seed(seed)
    net = build_sequence_net(backbone, source_words, len(target_words))
    return Model(net, OBJECTIVES[objective].build(Context(classes=target_words, features=net.features), **options))


def check_for_sentences(objective: str) -> None:
    """Refuse an objective that sentences cannot be trained with, and name those that they can."""
    if (why := _unfit(objective)) is not None:
        fit = ", ".join(name for name in OBJECTIVES if _unfit(name) is None)
        raise InputError(f"objective: {objective!r} is not for sentences: it {why}. These are: {fit}.")


def _unfit(objective: str) -> str | None:
    kind = OBJECTIVES[objective]
    if "index" in kind.needs:
        return "keeps a table of all samples, and a word has no place of its own in it"
    if not kind.has_probabilities:
        return "defines no probabilities to search by"
    try:
        kind.build(Context(classes=("a", "b"), features=1))
    except InputError:
        return "needs a tree of the classes or their relation, and words have none"
    return None


def _corpus_and_task(spec: RunSpec) -> tuple[Corpus, Translate]:
    known = [p.name for p in signature(load_corpus).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    for name in spec.data_options:
        if name not in (*known, *TASK_OPTIONS):
            hint = near(name, [*known, *TASK_OPTIONS])
            raise InputError(
                f"{name}: has no meaning for a corpus; it takes {listed(known + list(TASK_OPTIONS), 20)}.{hint}"
            )
    given = dict(spec.data_options)
    asked = {name: given.pop(name) for name in TASK_OPTIONS if name in given}
    measure = asked.pop("measure", "bleu")
    search = Search(**asked).check()  # before any file is read
    corpus = load_corpus(spec.data, **given)
    return corpus, Translate(corpus, search=search, measure=measure)


def _begin(folder: RunFolder, spec: RunSpec, backbone: str, corpus: Corpus) -> None:
    """Write what the run is."""
    config = {
        "id": run_id(spec),
        "kind": KIND,
        **spec.as_dict(),
        "resolved_backbone": backbone,
        "revision": OBJECTIVES[spec.objective].revision,
        "tree": "none",
        "environment": environment(),
    }
    setup = {
        "options": dict(spec.options),
        "source": _saved(corpus.source),
        "target": _saved(corpus.target),
    }
    RunFolder.create(folder.path, config, setup)


def _saved(language: Language) -> dict[str, Any]:
    return {"words": list(language.vocabulary.words), "tokens": language.tokens, "lower": language.lower}

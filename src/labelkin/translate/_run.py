"""Translation runs: a parallel corpus, a sequence network, and an objective whose classes are the target words."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import torch

from labelkin._checks import InputError, listed, near
from labelkin.objectives import OBJECTIVES, Context
from labelkin.runs import (
    DataWorkspace,
    RunFolder,
    RunSpec,
    check_machine,
    data_id,
    environment,
    is_other_process,
    locked,
    run_id,
    started_in,
)
from labelkin.training import Model, Place, Progress, Trained, Trainer
from labelkin.translate._corpus import Corpus, Language
from labelkin.translate._corpus_files import corpus_files, corpus_fingerprint, load_corpus
from labelkin.translate._net import DEFAULT, build_sequence_net
from labelkin.translate._search import Search
from labelkin.translate._task import Translate

KIND = "translation"
COMMAND = "translate"
TASK_OPTIONS = ("beam", "length_penalty", "measure")

fingerprint = corpus_fingerprint


def check(spec: RunSpec, workspace: DataWorkspace) -> None:
    """Refuse an objective, a taxonomy or options that do not apply to translation. Does not read the corpus."""
    check_for_sentences(spec.objective)
    if spec.taxonomy is not None:
        raise InputError("taxonomy: does not apply to translation, whose classes are words; leave it out.")
    for name in ("class_weight", "logit_adjustment", "costs"):
        if getattr(spec.settings, name):
            raise InputError(f"{name}: does not apply to translation, whose classes are words; leave it out.")
    if spec.settings.sampler != "random":
        raise InputError("sampler: expected 'random' for translation, whose samples are sentences; leave it out.")
    _split_options(spec)
    check_machine(spec.settings)


def train(
    spec: RunSpec,
    path: str | os.PathLike[str] | None,
    *,
    resume: bool,
    workspace: DataWorkspace,
    progress: Callable[[int], Progress],
    log: Callable[[Mapping[str, float]], None],
) -> Trained:
    """Train a translation model; see `labelkin.runs._train.train`.

    `spec.data_options` are the options of `load_corpus`, `beam` and `length_penalty` of `Search`, and `measure` of `Translate`.
    """
    check(spec, workspace)
    corpus_options, search, measure = _split_options(spec)
    corpus = workspace.keep("corpus", lambda: load_corpus(spec.data, **corpus_options))
    task = Translate(corpus, search=search, measure=measure)
    backbone = spec.backbone or DEFAULT
    words = len(corpus.source.vocabulary), corpus.target.vocabulary.words
    model = build_translator(spec.objective, spec.options, backbone, *words, seed=spec.settings.seed)
    folder = None if path is None else RunFolder(os.fspath(path))
    trainer = Trainer(model, task, spec.settings, checkpoint=folder, progress=progress, log=log)
    task.batches(spec.settings, Place(torch.device("cpu")))
    first = not is_other_process()
    with locked(folder.path) if folder is not None and first else nullcontext():
        if folder is not None and first and not (folder.path / "config.json").exists():
            _begin(folder, spec, backbone, corpus)
        trained = trainer.fit(resume=resume)
        if torch.distributed.is_initialized():
            torch.distributed.barrier()  # wait until the first process has written the run folder
    return trained


def data_files(spec: RunSpec) -> Iterator[Path]:
    """Yield the files that the run was trained on."""
    yield from corpus_files(spec.data)


def build_translator(
    objective: str,
    options: Mapping[str, Any],
    backbone: str,
    source_words: int,
    target_words: tuple[str, ...],
    *,
    seed: int,
) -> Model:
    """Build the model of a run. The network's initial weights depend only on the seed, so all objectives share them."""
    check_for_sentences(objective)
    torch.manual_seed(seed)
    net = build_sequence_net(backbone, source_words, len(target_words))
    return Model(net, OBJECTIVES[objective].build(Context(classes=target_words, features=net.features), **options))


def check_for_sentences(objective: str) -> None:
    """Refuse an objective that cannot be trained on sentences, and list those that can."""
    if (why := _unfit(objective)) is not None:
        fit = ", ".join(name for name in OBJECTIVES if _unfit(name) is None)
        raise InputError(f"objective: {objective!r} cannot be used for translation: it {why}. Use one of: {fit}.")


def _unfit(objective: str) -> str | None:
    """Return why an objective cannot be trained on sentences, or None if it can."""
    kind = OBJECTIVES[objective]
    if "index" in kind.needs:
        return "needs a table with one entry per sample, which words do not have"
    if not kind.has_probabilities:
        return "does not define probabilities, which the search needs"
    try:
        kind.build(Context(classes=("a", "b"), features=1))
    except InputError:
        return "needs a taxonomy or class similarities, which words do not have"
    return None


def _split_options(spec: RunSpec) -> tuple[dict[str, Any], Search, str]:
    """Split the data options into those of the corpus, the search and the measure, and check them before reading files."""
    known = [p.name for p in signature(load_corpus).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    for name in spec.data_options:
        if name not in (*known, *TASK_OPTIONS):
            hint = near(name, [*known, *TASK_OPTIONS])
            raise InputError(
                f"{name}: does not apply to translation; a corpus takes {listed(known + list(TASK_OPTIONS), 20)}.{hint}"
            )
    given = dict(spec.data_options)
    asked = {name: given.pop(name) for name in TASK_OPTIONS if name in given}
    measure = asked.pop("measure", "bleu")
    return given, Search(**asked).check(), measure


def _begin(folder: RunFolder, spec: RunSpec, backbone: str, corpus: Corpus) -> None:
    """Write the configuration of a new run."""
    config = {
        "id": run_id(spec),
        "data_id": data_id(spec),
        "kind": KIND,
        **spec.as_dict(),
        "resolved_backbone": backbone,
        "revision": OBJECTIVES[spec.objective].revision_of(spec.options),
        "tree": "none",
        "environment": environment(),
        **started_in(spec, folder.path),
    }
    setup = {
        "options": dict(spec.options),
        "source": _saved(corpus.source),
        "target": _saved(corpus.target),
    }
    RunFolder.create(folder.path, config, setup)


def _saved(language: Language) -> dict[str, Any]:
    """Return a language as plain values."""
    return {"words": list(language.vocabulary.words), "tokens": language.tokens, "lower": language.lower}

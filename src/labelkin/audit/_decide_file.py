"""Write better decisions for a file of scores."""

import csv
import io
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._checks import InputError, check_names, check_number, counted, listed
from labelkin._files import check_replaceable, open_whole
from labelkin.audit._decide_rules import Ready, Sample, choose_rule, scaled_scores, warn_of_shift
from labelkin.audit._doubts import first_matches
from labelkin.audit._names import (
    FROM_TREE,
    TreeChoice,
    check_order,
    is_built_in,
    load_taxonomy,
    read_names,
    restrict_tree,
)
from labelkin.audit._predictions import Predictions, check_predictions, checked_probs, doubt, read_raw
from labelkin.audit._read_files import Chunk
from labelkin.audit._schema import Fields, name_list
from labelkin.audit._scores import Scores
from labelkin.audit._stream import Stream, open_stream
from labelkin.decide import GuaranteeKind, Rule, reasons
from labelkin.structure import Taxonomy
from labelkin.training import costs_in_order, read_costs, shares_for

DECISION, KIND, PROBABILITY, PATH = "decision", "decision_kind", "decision_probability", "decision_path"
WRITTEN = (DECISION, KIND, PROBABILITY)


class FileDecisions(NamedTuple):
    """The result of `decide_file`.

    Attributes:
        output: The file that was written.
        rule: The rule: "crm", "argmax" or "fallback".
        samples: Number of decisions.
        changed: Decisions that differ from the most probable class.
        classes: Decisions that are classes.
        ancestors: Decisions that are inner nodes below the root.
        none: Decisions that are the root, which means "no answer".
        temperature: The number that logits were divided by; 1 if it was neither given nor fitted.
        thresholds: The thresholds of the guarantee by node; None without one.
        shifted: Whether the samples differ from the labeled ones; None without them, or with class shares.
        actions: Decisions for each action, an answer that is not a class; None if the rule has none to choose.

    Example:
        >>> from labelkin.audit import FileDecisions
        >>> FileDecisions("out.csv", "crm", 10, 1, 10, 0, 0, 1.0, None, None).changed
        1
    """

    output: str
    rule: str
    samples: int
    changed: int
    classes: int
    ancestors: int
    none: int
    temperature: float
    thresholds: dict[str, float] | None
    shifted: bool | None
    actions: dict[str, int] | None = None


def decide_file(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    kind: str | None = None,
    taxonomy: TreeChoice | None = None,
    costs: Any = None,
    rule: str | None = None,
    temperature: float | None = None,
    coverage: float | None = None,
    confidence: float | None = None,
    threshold: float | None = None,
    labeled: str | os.PathLike[str] | None = None,
    by: GuaranteeKind = "all",
    shares: Any = None,
    explain: bool = False,
    classes: Sequence[str] | str | os.PathLike[str] | None = None,
    target: str | None = None,
    scores: str | None = None,
    columns: Sequence[str] | str | None = None,
    ignore: Sequence[str] | str = (),
    seed: int = 0,
) -> FileDecisions:
    """Decide every sample of a file of logits or probabilities, and write the decisions to a .csv file.

    Tables are read and written in chunks, so a table of any length needs the same memory. The output has the columns of the
    input that are not scores, then `decision` (a class, an action of the costs, or with `rule="fallback"` a node of the tree),
    `decision_kind` ("class", "action", "ancestor", or "none" for the root), `decision_probability`, and with `explain` the
    probabilities along the path. An action has no probability: it says nothing about the true class.

    The output is written completely or not at all, and replaces an existing file only if this function wrote that too.

    Args:
        source: A .csv, .jsonl, .parquet or .npz file with scores, as `audit` reads it; true classes are not needed.
        output: The .csv file to write.
        kind: "logits" or "probs". By default it follows from the name of the array or column.
        taxonomy: The tree over the classes: a `Taxonomy`, a nested mapping of names, a file, the name of a built-in tree, or
            "wordnet".
        costs: Costs of decisions: a .csv or .npz file, a pandas DataFrame, a mapping `{true class: {answer: cost}}`, or a
            square matrix. Rows are true classes, columns answers; a column without a row is an action, such as "ask a person".
            With both, the costs decide.
        rule: "crm" for the least expected cost, "argmax" for the most probable class, "fallback" for an ancestor when unsure.
            By default "fallback" if a coverage or a threshold is given, otherwise "crm".
        temperature: The number that logits are divided by. By default it is fitted on `labeled`, and 1 without that file.
        coverage: With "fallback", the probability that an answer is right or the root, such as 0.95; see
            `decide.GuaranteedFallback`. It needs `labeled`, one random half of which fits the temperature and the other half
            the thresholds.
        confidence: The least probability that the labeled samples give this coverage, such as 0.9. By default the coverage
            holds on average over sets of labeled samples.
        threshold: With "fallback" and without a guarantee, the probability that a node needs to be answered.
        labeled: A file in the same format as `source`, with the true classes of samples that the model was not trained on.
        by: The scope of the guarantee: "all", "predicted" or "true"; see `decide.GuaranteedFallback`.
        shares: Shares or counts of the classes in `source`, if they differ from those in `labeled`, which is then needed: a
            .csv or .json file with a number for each class, a mapping, or numbers in the order of the classes; see
            `decide.adjust_shares`. `decision_probability` is then for these shares.
        explain: Add the column `decision_path`, such as "animal 0.93 > dog 0.71". For an action, and without a tree, it
            compares costs: "expected cost: review 0.2, dog 0.29" is an action and the best class, or without actions the
            answer and the next best class.
        classes: Class names in the order of the scores: a list, a text file with one name per line, or "taxonomy" for the
            order of the tree.
        target: The column or array with true classes, if the file has one; it is not a score. By default "target", "label" or
            "y".
        scores: The array, or the column of lists, with the scores; by default "logits" or "probs".
        columns: A table's columns of scores, one per class: names, or "p_*" for all that start with "p_". By default all
            columns but the target.
        ignore: Columns of a table that are not scores, such as a customer's number; one name or several.
        seed: Seed of the random halves.

    Returns:
        Counts of the decisions, and what was fitted.

    Example:
        >>> import pathlib, tempfile
        >>> from labelkin import Taxonomy
        >>> from labelkin.audit import decide_file
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     source, output = pathlib.Path(folder, "in.csv"), pathlib.Path(folder, "out.csv")
        ...     _ = source.write_text("cat,dog,car\\n0.30,0.28,0.42\\n")
        ...     decide_file(source, output, kind="probs", taxonomy=tree, explain=True).changed
        ...     print(output.read_text().strip())
        1
        decision,decision_kind,decision_probability,decision_path
        cat,class,0.3,animal 0.58 > cat 0.30
    """
    if Path(source).is_dir():
        raise InputError(
            f"{source}: this is a folder; expected a .csv, .jsonl, .parquet or .npz file with scores. For a run of labelkin "
            "use labelkin predict."
        )
    chosen = choose_rule(
        rule,
        tree=taxonomy is not None,
        costs=costs is not None,
        coverage=coverage,
        confidence=confidence,
        threshold=threshold,
        labeled=labeled is not None,
        shares=shares is not None,
        by=by,
    )
    if costs is not None and chosen != "crm":
        warnings.warn(f"costs: the rule {chosen!r} does not use them; --rule crm does.", stacklevel=2)
    if temperature is not None:
        check_number("temperature", temperature, low=0, open_low=True)
    check_output(output, inputs=(source, labeled, taxonomy, costs, classes))
    fields = Fields(target, None, scores, columns, name_list(ignore))
    stream = open_stream(Path(source), kind, fields)
    first = next(stream.chunks)
    question = doubt(Scores.of(torch.from_numpy(first.scores))) if stream.kind == "logits" else None
    if question is not None:
        warnings.warn(question, stacklevel=2)
    whole = load_taxonomy(taxonomy)
    names = _class_names(stream, first, classes, whole)
    if isinstance(classes, str) and classes == FROM_TREE and not is_built_in(taxonomy):
        warnings.warn(
            f"classes: the scores are taken in the order of the tree ({first_matches(names)}), which nothing in the file can "
            "confirm; pass the names if it is another (--classes).",
            stacklevel=2,
        )
    tree = restrict_tree(taxonomy, whole, names)
    table = None if costs is None else costs_in_order(read_costs(costs), names)
    if explain and tree is None and not (chosen == "crm" and table is not None):
        raise InputError(
            "explain: the path of an answer is a path in a tree; pass --taxonomy, or --costs to compare expected costs."
        )
    matrix, actions = (None, ()) if table is None else (table.costs, table.actions)
    scale = 1.0 if temperature is None else float(temperature)
    ready = Ready(Rule(chosen, tree, matrix, threshold, temperature=scale, actions=actions), names)
    if labeled is not None:
        samples, new = _labeled(labeled, stream, fields, names), None if shares is None else shares_for(shares, names)
        ready = ready.fitted(
            samples, temperature=temperature, coverage=coverage, confidence=confidence, by=by, shares=new, seed=seed
        )
    return _write(Path(output), chain([first], stream.chunks), stream, ready, explain=explain, seed=seed)


def check_output(output: str | os.PathLike[str], *, inputs: Iterable[Any]) -> None:
    """Refuse an output that is not a .csv file, is one of the inputs, or is a file that `decide_file` did not write."""
    path = Path(output)
    if path.suffix.lower() != ".csv":
        raise InputError(f"{path}: expected a name that ends in .csv for the decisions.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(path.parent)!r}; create it first.")
    if not path.exists():
        return
    for given in inputs:
        if isinstance(given, (str, os.PathLike)) and Path(given).exists() and os.path.samefile(path, given):
            raise InputError(f"{path}: this is one of the inputs, which would be overwritten; choose another name.")
    check_replaceable(path, by="labelkin decide", is_ours=lambda _: _is_ours(path))


def _is_ours(path: Path) -> bool:
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        header = next(csv.reader([file.readline()]), [])
    ends = header[:-1] if header[-1:] == [PATH] else header
    return tuple(ends[-len(WRITTEN) :]) == WRITTEN


def _class_names(
    stream: Stream, first: Chunk, chosen: Sequence[str] | str | os.PathLike[str] | None, tree: Taxonomy | None
) -> tuple[str, ...]:
    width = first.scores.shape[1]
    if chosen is not None:
        names = tuple(read_names(chosen, tree))
        check_order(names, stream.names)
    else:
        names = stream.names or tuple(str(k) for k in range(width))
    check_names("classes", names, least=2)
    if len(names) != width:
        raise InputError(f"classes: expected {counted(width, 'name')}, one for each score, got {len(names)}.")
    return names


def _labeled(path: str | os.PathLike[str], stream: Stream, fields: Fields, names: tuple[str, ...]) -> Predictions:
    """Read the labeled samples, with their scores in the order of the classes of the source."""
    raw = read_raw(path, stream.kind, fields._replace(has_ignored=False))
    own = names if stream.names is None else stream.names
    if raw.scores is None or raw.names is None:
        return check_predictions(raw, names, os.fspath(path))
    unknown = sorted(set(raw.names) ^ set(own))
    moved = any(name != other and name in own for name, other in zip(raw.names, own, strict=False))
    if unknown and (moved or stream.names is not None):
        raise InputError(
            f"labeled: {path} must have the same classes as the other file; only one of them has {listed(unknown)}."
        )
    if not unknown and raw.names != own:
        if not set(raw.target.distinct) <= set(names) and all(label.isdecimal() for label in raw.target.distinct):
            raise InputError(
                f"labeled: {path} has numbers as labels, and the classes in another order than the other file, so the numbers "
                "may be positions in either; write the names of the classes as labels."
            )
        order = [raw.names.index(name) for name in own]
        raw = raw._replace(scores=raw.scores.map(lambda block: block[:, order]), names=own)
    return check_predictions(raw, names, os.fspath(path))


def _write(
    path: Path, chunks: Iterator[Chunk], stream: Stream, ready: Ready, *, explain: bool, seed: int
) -> FileDecisions:
    written = (*WRITTEN, PATH) if explain else WRITTEN
    taken = [name for name in stream.kept if name in (*WRITTEN, PATH)]
    if taken:
        raise InputError(f"columns: the output has a column {taken[0]!r} of its own; rename that of the input.")
    rule = ready.rule
    sample = Sample(len(ready.classes), seed)
    counts: Counter[str] = Counter()
    acted = Counter(dict.fromkeys(rule.actions if rule.name == "crm" else (), 0))
    changed = 0
    compared = ready.calibration is not None and rule.share_ratios is None  # other shares differ by themselves
    with open_whole(path) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*stream.kept, *written))
        for chunk in chunks:
            probs = rule.adjusted(_probs(chunk, stream, rule.temperature))
            answers = rule.answer(probs)
            names, kinds = rule.names(answers.nodes, ready.classes), rule.kinds(answers.nodes)
            columns: list[Sequence[Any]] = [names, kinds, _short(answers.probs.tolist())]
            if explain:
                columns.append(reasons(rule, probs, answers.nodes, ready.classes))
            kept = (map(_text, row) for row in chunk.kept)
            writer.writerows((*own, *row) for own, row in zip(kept, zip(*columns, strict=True), strict=True))
            counts.update(kinds)
            acted.update(name for name, kind in zip(names, kinds, strict=True) if kind == "action")
            best = [ready.classes[at] for at in probs.argmax(-1).tolist()]
            changed += sum(name != other for name, other in zip(names, best, strict=True))
            if compared:
                sample.add(probs)
        file.detach()
    shifted = warn_of_shift(ready, sample.values) if compared else None
    thresholds = None if rule.guarantee is None else rule.guarantee.thresholds
    return FileDecisions(
        os.fspath(path),
        rule.name,
        counts.total(),
        changed,
        counts["class"],
        counts["ancestor"],
        counts["none"],
        rule.temperature,
        thresholds,
        shifted,
        dict(acted) or None,
    )


def _probs(chunk: Chunk, stream: Stream, temperature: float) -> Tensor:
    is_logits = stream.kind == "logits"
    scores = torch.from_numpy(chunk.scores)
    if not is_logits:
        scores = checked_probs(Scores.of(scores), chunk.sample_names)[0].tensor()
    return scaled_scores(scores, is_logits=is_logits, temperature=temperature)


def _text(cell: Any) -> Any:
    return cell.decode(errors="backslashreplace") if isinstance(cell, bytes) else cell


def _short(probs: Sequence[float]) -> list[str]:
    return ["" if isnan(prob) else f"{prob:.6g}" for prob in probs]  # an action has none

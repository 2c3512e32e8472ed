"""Describe how the runs of a comparison were produced, with the commands to repeat them."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from labelkin.comparison import REFERENCE, Comparison
from labelkin.report._page_model import Fold
from labelkin.runs import Record
from labelkin.training import Settings

# Command-line options whose name differs from the Python argument.
FLAGS = {"validation_fraction": "validation", "test_fraction": "test", "report": "reported-epoch"}
# Values that only a plan with `protocol: as-published` can set.
ONLY_IN_PLANS = {"evaluation": ("batch-statistics",), "report": ("best-test",)}


def provenance_sections(comparison: Comparison) -> tuple[Fold, ...]:
    """Return the sections at the end of the page: commands, versions, tree, settings and runs."""
    runs = _runs(comparison)
    versions = dict.fromkeys(_versions(record) for record in runs)
    listing = [f"{record.label}, seed {record.seed}: {record.path}" for record in runs]
    return (
        Fold(
            "Reproduce this page",
            f"{in_lines(compare_command(comparison))}\n{report_command(comparison)}",
            is_code=True,
        ),
        Fold("Versions", "\n".join(versions)),
        Fold("Tree", f"The tree is {comparison.tree}."),
        Fold(
            "Training",
            "\n".join(f"{name}: {_text(value)}" for name, value in runs[0].settings.items() if name != "seed"),
            is_code=True,
        ),
        Fold(f"Runs ({len(runs)})", "\n".join(listing), is_code=True),
    )


def in_lines(command: str) -> str:
    """Put each option on its own line, with backslashes for the shell."""
    return command.replace(" --", " \\\n    --")


def any_record(comparison: Comparison) -> Record:
    """Return one of the runs."""
    return _runs(comparison)[0]


def _runs(comparison: Comparison) -> list[Record]:
    return [record for found in (*comparison.records.values(), comparison.unfinished) for record in found]


def compare_command(comparison: Comparison) -> str:
    """Return the `labelkin compare` command that trains these runs, or a note if only a plan can."""
    runs = _runs(comparison)
    options = {record.objective: record.options for record in runs}
    if any(record.options != options[record.objective] or _published(record) for record in runs):
        return "labelkin compare PLAN.yaml   # these runs come from a plan, which is not stored with them"
    config = runs[0].config
    words = ["labelkin", "compare", config["data"], "--objectives", ",".join(options)]
    words += ["--seeds", ",".join(map(str, sorted({record.seed for record in runs})))]
    for name in ("backbone", "taxonomy"):
        if config[name] is not None:
            words += [f"--{name}", str(config[name])]
    words += _flags(_split_options(config["data_options"]), {}) + _flags(runs[0].settings, asdict(Settings()))
    for objective, given in options.items():
        words += [part for name, value in given.items() for part in ("--set", f"{objective}.{name}={_text(value)}")]
    return shlex.join([*words, "--out", str(comparison.folder)])


def _split_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return data options under the names of the command line, which trains all folds."""
    return {"split_seed" if name == "seed" else name: value for name, value in options.items() if name != "fold"}


def _published(record: Record) -> bool:
    """Whether the run has settings that only a plan can set."""
    return any(record.settings.get(name) in values for name, values in ONLY_IN_PLANS.items())


def report_command(comparison: Comparison) -> str:
    """Return the `labelkin report` command for this page."""
    named = [] if comparison.reference in (None, REFERENCE) else ["--reference", str(comparison.reference)]
    return shlex.join(["labelkin", "report", str(comparison.folder), *named, "-o", "report.html"])


def _flags(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in given.items():
        if name == "seed" or _text(value) == _text(defaults.get(name)):
            continue
        flag = "--" + FLAGS.get(name, name).replace("_", "-")
        words += [flag] if value is True else [flag, _text(value)]
    return words


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _versions(record: Record) -> str:
    return ", ".join(f"{name} {version}" for name, version in record.config["environment"].items())

"""The commands that do what an audit advises."""

import shlex
from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelkin.audit import Audit

OUTPUT = "decisions.csv"


def next_steps(found: "Audit", given: Mapping[str, str | PathLike[str] | None]) -> str:
    """Return the commands as text; empty if the audit advises to change nothing.

    They decide the audited file, so that they run as they are, and read it as the audit did.

    Args:
        found: An audit of a file.
        given: The options of the audit by name, with `taxonomy` and `costs`; None for one that was not given.
    """
    same = {name: value for name, value in given.items() if name not in ("taxonomy", "costs")}
    tree, costs = given["taxonomy"], given["costs"]
    lines = list[str]()
    if found.advice.rule == "crm":
        by = {"costs": costs} if costs is not None else {"taxonomy": tree}
        lines.append(_decide(found.source, {**same, **by, "temperature": _temperature(found.advice.temperature)}))
    answers, threshold = found.fallback, found.advice.threshold
    if tree is not None and answers is not None and threshold is not None:
        scale = _temperature(answers.temperature)
        lines.append(
            _decide(found.source, {**same, "taxonomy": tree, "threshold": f"{threshold:g}", "temperature": scale})
        )
    if not lines:
        return ""
    either = "Next step" if len(lines) == 1 else "Next step, one or the other"
    return "\n".join([f"{either}, with the file of new samples in place of {found.source}", *lines])


def _temperature(value: float) -> str | None:
    return None if value == 1 else f"{value:.3f}"


def _decide(source: str, options: Mapping[str, str | PathLike[str] | None]) -> str:
    parts = ["labelkin", "decide", source, "-o", OUTPUT]
    for name, value in options.items():
        parts += [] if value is None else [f"--{name}", fspath(value)]
    return f"  {shlex.join(parts)}"

"""The code of documents, run and compared with the output that they show."""

import contextlib
import io
import itertools
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND_GROUPS = ("taxonomy", "data", "runs", "bench")


def fences(text: str) -> list[tuple[str, str]]:
    """Return the blocks of code of a Markdown text as (language, code)."""
    return [(language, code) for language, code in FENCE.findall(text)]


def printed_and_shown(text: str) -> list[tuple[str, str]]:
    """Run the Python of a Markdown text in one namespace; return what each block printed, and the `text` block after it."""
    names: dict[str, Any] = {"__name__": "document"}
    pairs = []
    blocks = [*fences(text), ("", "")]
    for (language, code), (following, shown) in itertools.pairwise(blocks):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(code, "document", "exec"), names)
            pairs.append((printed.getvalue(), shown if following == "text" else ""))
    return pairs


def command_lines(path: Path) -> list[str]:
    """Return the lines of a Markdown file that call `labelkin` in a shell, without variables in front of the command."""
    shell = [code for language, code in fences(path.read_text(encoding="utf-8")) if language == "sh"]
    lines = [re.sub(r"^([A-Z_]+=\S+ )+", "", line) for code in shell for line in code.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("labelkin ")]


def unknown_words(line: str) -> list[str]:
    """Return the words of a command line that the command's help does not know: the command itself, or options."""
    words = shlex.split(line, comments=True)[1:]
    command = words[: 2 if words[0] in COMMAND_GROUPS else 1]
    if command[0].startswith("-"):
        command = []
    shown = _help(*command)
    if shown is None:
        return command
    return [word for word in words if word.startswith("-") and not re.search(rf"(?<![\w-]){word}(?![\w-])", shown)]


@cache
def _help(*command: str) -> str | None:
    """Return the help of a command; None if there is no such command."""
    from typer.testing import CliRunner

    from labelkin.cli._app import app

    shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    return None if shown.exit_code else shown.output

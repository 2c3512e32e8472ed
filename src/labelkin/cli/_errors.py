"""Errors of commands: one sentence on stderr, with exit code 2 for bad input and 130 for Ctrl-C."""

import errno
import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from labelkin._checks import InputError, print_note, visible
from labelkin._extras import MissingExtra
from labelkin._files import is_full

BAD_INPUT, INTERRUPTED = 2, 130


class ErrorGroup(TyperGroup):
    """The group of all commands. Errors that the user can fix are printed without a traceback."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _tidy_help(self)

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain_flags(super().get_params(ctx))  # Typer adds those for completion later

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = print_note
            try:
                return super().invoke(ctx)
            except (InputError, MissingExtra) as error:
                _exit(f"Error: {error}", BAD_INPUT)
            except OSError as error:
                if error.errno == errno.EPIPE:
                    raise  # the reader of the output closed the pipe; Typer handles this
                _exit(f"Error: {_describe(error)}", BAD_INPUT)
            except KeyboardInterrupt:
                _exit("Interrupted. All files written so far are complete.", INTERRUPTED)


def _tidy_help(command: Any) -> None:
    """Let the help of a command, and of those below it, show a flag as `--json`, and join the lines of each paragraph.

    Newer versions of Typer show `--json <bool>`, as if it took a value, and keep the line ends of the docstring, which fall in
    the middle of the terminal's lines.
    """
    _plain_flags(command.get_params(command.context_class(command)))
    command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(command.help or ""))
    for below in getattr(command, "commands", {}).values():
        _tidy_help(below)


def _plain_flags(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


@contextmanager
def suggest_resuming(command: Callable[[], str]) -> Iterator[None]:
    """Print the command that resumes training after Ctrl-C or on a full disk."""
    from labelkin.training import Interrupted

    try:
        yield
    except Interrupted:
        _exit(f"Interrupted; the current step is saved. Resume with: {command()}", INTERRUPTED)
    except KeyboardInterrupt:
        _exit(f"Interrupted; training resumes from the last save. Resume with: {command()}", INTERRUPTED)
    except OSError as error:
        if not is_full(error):
            raise
        message = (
            f"Error: no space left on the disk; the last save is intact. Free some space, then resume with: {command()}"
        )
        _exit(message, BAD_INPUT)


def _exit(message: str, code: int) -> NoReturn:
    if int(os.environ.get("LOCAL_RANK", "0")) == 0:
        typer.echo(visible(message), err=True)
    raise typer.Exit(code)


def _describe(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if is_full(error):
        return f"{where}no space left on the disk; nothing was written. Free some space and run the command again."
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return f"{where}a file is where a folder is needed; choose another name, or remove it."
    return f"{where}{error.strerror or error}."

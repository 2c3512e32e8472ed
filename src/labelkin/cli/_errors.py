"""What goes wrong is said in one sentence on stderr: exit code 2, or 130 where the user stopped it."""

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from labelkin._checks import InputError
from labelkin._extras import MissingExtra
from labelkin._files import is_full

WRONG_INPUT, STOPPED = 2, 130


class ErrorGroup(TyperGroup):
    """The group of all commands, in which errors that a user can mend have no traceback."""

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            try:
                return super().invoke(ctx)
            except (InputError, MissingExtra) as error:
                _leave(f"Error: {error}", WRONG_INPUT)
            except OSError as error:
                if error.errno == errno.EPIPE:
                    raise  # the reader of our output went away, which Typer knows how to end
                _leave(f"Error: {_in_words(error)}", WRONG_INPUT)
            except KeyboardInterrupt:
                _leave("Stopped; no file is left half-written.", STOPPED)


@contextmanager
def going_on(command: Callable[[], str]) -> Iterator[None]:
    """Training that the user or a full disk stops ends with the command that goes on."""
    from labelkin.training import Interrupted

    try:
        yield
    except Interrupted:
        _leave(f"Stopped after a step, which is saved. Go on with: {command()}", STOPPED)
    except KeyboardInterrupt:
        _leave(f"Stopped at once; what was saved before is whole. Go on with: {command()}", STOPPED)
    except OSError as error:
        if not is_full(error):
            raise
        told = "Error: no space left; what was saved before is whole."
        _leave(f"{told} Make room and go on with: {command()}", WRONG_INPUT)


def _leave(message: str, code: int) -> NoReturn:
    if int(os.environ.get("LOCAL_RANK", "0")) == 0:
        typer.echo(message, err=True)
    raise typer.Exit(code)


def _in_words(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if is_full(error):
        return f"{where}no space left; nothing is written, make room and give the same command again."
    return f"{where}{error.strerror or error}."


def _warned(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning):
        print(f"Note: {message}", file=sys.stderr)

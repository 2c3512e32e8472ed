"""Imports of optional packages; the error for a missing package contains the command that installs it."""

from importlib import import_module
from types import ModuleType

from labelkin._checks import LIBRARY_ERRORS


class MissingExtra(ImportError):
    """An optional package is not installed; the message contains the `pip install` command."""


def require(module: str, *, extra: str, use: str) -> ModuleType:
    """Import an optional package.

    Args:
        module: The module to import.
        extra: The extra of labelkin that installs it.
        use: What needs it, for the error message.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"{use} needs {package}, which is not installed: pip install 'labelkin[{extra}]'") from error


def loading_errors() -> tuple[type[Exception], ...]:
    """Return what other libraries raise if a model has no such name, or its files are missing or damaged."""
    try:
        from safetensors import SafetensorError
    except ImportError:
        return LIBRARY_ERRORS
    return (*LIBRARY_ERRORS, SafetensorError)

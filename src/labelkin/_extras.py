"""Optional packages, imported where they are used; missing one gives the line that installs it."""

from importlib import import_module
from types import ModuleType


class MissingExtra(ImportError):
    """An optional package is not installed; the message holds the `pip install` line."""


def require(module: str, *, extra: str, use: str) -> ModuleType:
    """Import `module`, which the extra `labelkin[extra]` brings, for `use`."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"{use} needs {package}, which is not installed: pip install 'labelkin[{extra}]'") from error

"""Lazy exports for the `__init__` of a room (PEP 562): a name is imported when it is first used."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

Homes = Mapping[str, Sequence[str]]


def lazy_exports(
    package: str, public: Homes, *, internal: Homes | None = None, deprecated: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are imported on first use.

    Args:
        package: the package's `__name__`.
        public: submodule -> its public names; they make up `__all__`.
        internal: submodule -> names for other rooms of labelkin, which are not part of the public interface.
        deprecated: old name -> the name that replaces it; using the old one gives a DeprecationWarning.
    """
    homes = {name: module for part in (public, internal or {}) for module, names in part.items() for name in names}
    exported = sorted(name for names in public.values() for name in names)

    def load(name: str) -> Any:
        if deprecated is not None and name in deprecated:
            new = deprecated[name]
            warnings.warn(f"{package}.{name} is deprecated; use {package}.{new}.", DeprecationWarning, stacklevel=2)
            name = new
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: exported, exported

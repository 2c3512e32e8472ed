"""Train with labelkin's objectives in PyTorch Lightning. Names are imported when they are first used."""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.doors.lightning._module import KinModule as KinModule

__getattr__, __dir__, __all__ = lazy_exports(__name__, {"_module": ["KinModule"]})

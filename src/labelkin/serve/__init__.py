"""A small web server for one run: a page to try it on a photo, a text or a row of features, and the same as JSON."""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.serve._server import create_app as create_app
    from labelkin.serve._server import serve as serve

__getattr__, __dir__, __all__ = lazy_exports(__name__, {"_server": ["create_app", "serve"]})

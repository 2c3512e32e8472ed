"""How the API reference reads labelkin's docstrings: `Example:` is a section of code that runs, as `Examples:` is to griffe."""

import re
from typing import Any

from griffe import Extension, Object


class RunningExamples(Extension):
    """Show the doctests of a docstring as code."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Rename the section of a docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)

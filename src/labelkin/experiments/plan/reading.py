"""Read plans from YAML files."""

import os
import re
from pathlib import Path
from typing import Any

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.experiments.plan.model import Plan

_SCIENTIFIC = re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read the plan of a YAML file. Duplicate keys are refused, because YAML would silently drop the first."""
    yaml = require("yaml", extra="yaml", use="reading a plan")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such plan.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text, got another encoding at byte {error.start}.") from error
    try:
        values = yaml.load(text, Loader=_loader(yaml))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}"
        raise InputError(f"{path}: not YAML{where} ({getattr(error, 'problem', None) or error}).") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected keys such as `data` and `objectives`, got {type(values).__name__}.")
    try:
        return Plan.from_dict(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _loader(yaml: Any) -> Any:
    """Return a safe loader that refuses duplicate keys and reads `1e-3` as a number, which YAML 1.1 reads as text."""

    class Strict(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for key in keys:
                if keys.count(key) > 1:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is given twice", node.start_mark
                    )
            found: dict[Any, Any] = super().construct_mapping(node, deep)
            return found

    Strict.yaml_implicit_resolvers = {k: list(v) for k, v in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    Strict.add_implicit_resolver("tag:yaml.org,2002:float", _SCIENTIFIC, list("-+0123456789."))
    return Strict

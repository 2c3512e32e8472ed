"""Read comparison plans from YAML files."""

import os
import re
from pathlib import Path
from typing import Any

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.comparison._plan import Plan
from labelkin.structure import yaml_problem

_SCIENTIFIC = re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan from a YAML file.

    Duplicate keys are refused, because YAML would silently drop the first.

    Args:
        path: The file.

    Returns:
        The plan.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from labelkin.comparison import read_plan
        >>> file = Path(tempfile.mkdtemp(), "plan.yaml")
        >>> size = file.write_text("data: digits\\nobjectives: [one-hot, label-smoothing]\\nseeds: [0, 1, 2]")
        >>> len(read_plan(file).runs())
        6
    """
    yaml = require("yaml", extra="yaml", use="reading a plan")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such plan.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text, got another encoding at byte {error.start}.") from error
    try:
        values = yaml.load(text, Loader=_loader(yaml))
    except RecursionError as error:
        raise InputError(f"{path}: not a plan, because its lists are nested too deeply.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}"
        raise InputError(f"{path}: not YAML{where} ({yaml_problem(error)}).") from error
    if values is None:
        raise InputError(
            f"{path}: the plan is empty; expected keys such as `data: digits` and `objectives: [one-hot, kin]`."
        )
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected keys such as `data` and `objectives`, got {type(values).__name__}.")
    try:
        plan = Plan.from_dict(values)
        if values.get("data") is None:
            raise InputError("expected the key `data`, a name or path such as `data: digits`; it is missing.")
        plan.runs()  # checks the names and settings of each run
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return plan


def _loader(yaml: Any) -> Any:
    """Return a safe loader that refuses duplicate keys and reads `1e-3` as a number (YAML 1.1 reads it as text)."""

    class Strict(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            known: list[Any] = []
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in known:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is given twice", key_node.start_mark
                    )
                known.append(key)
            mapping: dict[Any, Any] = super().construct_mapping(node, deep)
            return mapping

    Strict.yaml_implicit_resolvers = {k: list(v) for k, v in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    Strict.add_implicit_resolver("tag:yaml.org,2002:float", _SCIENTIFIC, list("-+0123456789."))
    return Strict

"""What stands on the command line."""

from collections.abc import Collection

import typer


def typed_besides(context: typer.Context, allowed: Collection[str]) -> str | None:
    """The first option that was given and is not among the parameters allowed, as it is typed; None without one."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in allowed and source is not None and source.name == "COMMANDLINE":
            return parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.opts[0].upper()
    return None

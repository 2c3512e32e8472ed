"""The command line: `labelkin` and `python -m labelkin`.

Commands parse arguments, call other rooms and print results. Heavy modules are imported inside the commands, so
`labelkin --help` needs neither torch nor numpy.
"""

import sys

from labelkin._extras import MissingExtra, require


def main() -> None:
    """Run the command line."""
    try:
        require("typer", extra="cli", use="the command line")
    except MissingExtra as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    from labelkin.cli._app import app

    app(prog_name="labelkin")

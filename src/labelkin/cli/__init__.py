"""The command line: `labelkin` and `python -m labelkin`. Commands parse, call and print; what they do lives elsewhere.

Everything heavy is imported inside the commands, so that `labelkin --help` needs neither torch nor numpy.
"""

import sys

from labelkin._extras import MissingExtra, require


def main() -> None:
    try:
        require("typer", extra="cli", use="the command line")
    except MissingExtra as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    from labelkin.cli._app import app

    app(prog_name="labelkin")

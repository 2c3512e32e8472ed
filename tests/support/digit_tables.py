"""Digits as a table with two columns of labels, the kind of a digit and the digit; some samples have the kind alone."""

from support.commands import FOUND

KINDS = {0: "round", 6: "round", 8: "round", 1: "straight", 4: "straight", 7: "straight"}


def rows_of(count=20, unknown=6):
    """Lines of a table: `unknown` of the `count` samples of each digit have only a kind."""
    for digit, kind in KINDS.items():
        for i, x in enumerate(FOUND.data[FOUND.target == digit][:count]):
            name = "" if i < unknown else f"d{digit}"
            yield ",".join([*map(str, x[:32]), kind, name])


def write_table(path, lines):
    """Write lines to a file with a heading and return the file."""
    path.write_text("\n".join([",".join([*(f"p{i}" for i in range(32)), "kind", "digit"]), *lines]))
    return path

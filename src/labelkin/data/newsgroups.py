"""20 Newsgroups: what of a post is the author's own words, and the tree that the groups' names are."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from labelkin._checks import check_choice
from labelkin.structure.taxonomy import Taxonomy

QUOTE = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^[|>]")


def without_headers(post: str) -> str:
    """What follows the first empty line."""
    return post.partition("\n\n")[2]


def without_footers(post: str) -> str:
    """Without the last block, set apart by an empty line or one of hyphens: most often a signature."""
    lines = post.strip().split("\n")
    gaps = [place for place, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: gaps[-1]]) if gaps and gaps[-1] else post


def without_quotes(post: str) -> str:
    """Without lines that quote another post or announce that they will."""
    return "\n".join(line for line in post.split("\n") if not QUOTE.search(line))


# In the order they are applied: a footer is sought before quotes leave gaps of their own.
REMOVABLE: dict[str, Callable[[str], str]] = {
    "headers": without_headers,
    "footers": without_footers,
    "quotes": without_quotes,
}


def stripper(remove: Sequence[str] | None) -> Callable[[str], str]:
    """Removes what is named, all of it by default, nothing for `("none",)` or nothing named."""
    named = list(REMOVABLE) if remove is None else [remove] if isinstance(remove, str) else list(remove)
    for name in named:
        check_choice("remove", name, (*REMOVABLE, "none"))
    chosen = [step for name, step in REMOVABLE.items() if name in named]

    def strip(post: str) -> str:
        for step in chosen:
            post = step(post)
        return post

    return strip


def group_tree(groups: Sequence[str]) -> Taxonomy:
    """A node for each beginning that several names share: `comp`, and below it `comp.sys` beside `comp.graphics`."""
    edges: dict[tuple[str, str], None] = {}
    for group in groups:
        parts = group.split(".")
        chain = ["newsgroups", *(".".join(parts[:depth]) for depth in range(1, len(parts) + 1))]
        edges.update(dict.fromkeys(pairwise(chain)))
    return Taxonomy.from_edges(edges, classes=groups).collapse()

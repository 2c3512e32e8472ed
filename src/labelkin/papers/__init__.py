"""Reproduce the five papers: recipes, published numbers, claims and the generated documents.

Names are imported on first use, so reading recipes and published numbers needs no torch.
"""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.papers._documents import documents as documents
    from labelkin.papers._documents import write_documents as write_documents
    from labelkin.papers._format import reproduction_as_dict as reproduction_as_dict
    from labelkin.papers._format import reproduction_as_markdown as reproduction_as_markdown
    from labelkin.papers._format import reproduction_notes as reproduction_notes
    from labelkin.papers._format import reproduction_tables as reproduction_tables
    from labelkin.papers._leaderboard import method_evidence as method_evidence
    from labelkin.papers._published import published_figure as published_figure
    from labelkin.papers._published import published_paper as published_paper
    from labelkin.papers._published import published_table as published_table
    from labelkin.papers._recipe import list_recipes as list_recipes
    from labelkin.papers._recipe import listing_as_dict as listing_as_dict
    from labelkin.papers._recipe import recipe as recipe
    from labelkin.papers._recipe import recipe_ids as recipe_ids
    from labelkin.papers._run_recipe import reproduce as reproduce

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_documents": ["documents", "write_documents"],
        "_format": ["reproduction_as_dict", "reproduction_as_markdown", "reproduction_notes", "reproduction_tables"],
        "_published": ["published_figure", "published_paper", "published_table"],
        "_recipe": ["recipe", "recipe_ids"],
        "_run_recipe": ["reproduce"],
    },
    internal={
        "_leaderboard": ["method_evidence"],
        "_recipe": ["list_recipes", "listing_as_dict"],
    },
)

"""The options of training on a parallel corpus."""

from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from typer import Option

from labelkin._checks import InputError

PANEL = "Corpus"


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """A field is called as the argument of `load_corpus` or of a translation that it becomes."""

    tokens: Annotated[
        Literal["words", "space", "characters"] | None,
        Option(help="How sentences are cut. Default: words, punctuation apart.", rich_help_panel=PANEL),
    ] = None
    cased: Annotated[bool, Option("--cased", help="Keep capitals.", rich_help_panel=PANEL)] = False
    min_count: Annotated[int | None, Option(help="Rarer words are unknown. Default: 1.", rich_help_panel=PANEL)] = None
    max_words: Annotated[int | None, Option(help="Size of each vocabulary at most.", rich_help_panel=PANEL)] = None
    max_length: Annotated[
        int | None, Option(help="Training pairs with more tokens are left out.", rich_help_panel=PANEL)
    ] = None
    beam: Annotated[
        int | None, Option(help="Of the search at the end; 1 is greedy. Default: 10.", rich_help_panel=PANEL)
    ] = None
    length_penalty: Annotated[
        float | None, Option(help="0: plain probability. 1: mean over words. Default: 0.", rich_help_panel=PANEL)
    ] = None
    measure: Annotated[Literal["bleu", "rouge"] | None, Option(help="Default: bleu.", rich_help_panel=PANEL)] = None

    def check(self, data: str) -> None:
        """Refuse these options where the data are no sentence pairs."""
        from labelkin.data.corpora import is_corpus

        given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        if given and not is_corpus(data):
            raise InputError(
                f"--{given[0].replace('_', '-')}: is for sentence pairs, given as FILE:FILE, FOLDER:en-de or multi30k:en-de; "
                f"leave it out for {data!r}."
            )

    def chosen(self) -> dict[str, Any]:
        """What was given, as `RunSpec.data_options` keeps it."""
        given = {name: value for name, value in asdict(self).items() if value is not None and name != "cased"}
        return {**given, "lower": False} if self.cased else given

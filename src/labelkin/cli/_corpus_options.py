"""Options of sentence pairs and of their translation."""

from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from typer import Option

from labelkin._checks import InputError

PANEL = "Corpus"


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """Options of sentence pairs and of their translation."""

    tokens: Annotated[
        Literal["words", "space", "characters"] | None,
        Option(
            help="Split sentences into words (with punctuation separate), at spaces, or into characters. Default: words.",
            rich_help_panel=PANEL,
        ),
    ] = None
    cased: Annotated[bool, Option("--cased", help="Keep upper case.", rich_help_panel=PANEL)] = False
    min_count: Annotated[
        int | None, Option(help="Treat rarer words as unknown. Default: 1.", rich_help_panel=PANEL)
    ] = None
    max_words: Annotated[int | None, Option(help="Maximum size of each vocabulary.", rich_help_panel=PANEL)] = None
    max_length: Annotated[
        int | None, Option(help="Leave out training pairs with more tokens.", rich_help_panel=PANEL)
    ] = None
    beam: Annotated[
        int | None, Option(help="Beam width of the final evaluation; 1 is greedy. Default: 10.", rich_help_panel=PANEL)
    ] = None
    length_penalty: Annotated[
        float | None,
        Option(
            help="Length penalty: 0 ranks by probability, 1 by mean log-probability per word. Default: 0.",
            rich_help_panel=PANEL,
        ),
    ] = None
    measure: Annotated[
        Literal["bleu", "rouge"] | None, Option(help="Metric for translations. Default: bleu.", rich_help_panel=PANEL)
    ] = None

    def check(self, data: str) -> None:
        """Raise InputError if one of these options is given for data other than sentence pairs."""
        from labelkin.data import is_corpus

        given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        if given and not is_corpus(data):
            raise InputError(
                f"--{given[0].replace('_', '-')}: applies only to sentence pairs (FILE:FILE, FOLDER:en-de or multi30k:en-de); "
                f"leave it out for {data!r}."
            )

    def chosen(self) -> dict[str, Any]:
        """Return the given options as `RunSpec.data_options` stores them."""
        given = {name: value for name, value in asdict(self).items() if value is not None and name != "cased"}
        return {**given, "lower": False} if self.cased else given

"""Translation with words as labels (paper 003): corpora, the sequence network, search, metrics, runs and translators."""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.translate._corpus import Corpus as Corpus
    from labelkin.translate._corpus import Vocabulary as Vocabulary
    from labelkin.translate._corpus_files import load_corpus as load_corpus
    from labelkin.translate._net import Seq2Seq as Seq2Seq
    from labelkin.translate._net import build_sequence_net as build_sequence_net
    from labelkin.translate._search import beam_search as beam_search
    from labelkin.translate._search import greedy_search as greedy_search
    from labelkin.translate._task import Translate as Translate
    from labelkin.translate._text_metrics import bleu as bleu
    from labelkin.translate._text_metrics import rouge as rouge
    from labelkin.translate._translator import Translator as Translator
    from labelkin.translate._translator import load_translator as load_translator
    from labelkin.translate._translator import nearest_labels as nearest_labels
    from labelkin.translate._translator import translate_file as translate_file

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_corpus": ["Corpus", "Vocabulary"],
        "_corpus_files": ["load_corpus"],
        "_net": ["Seq2Seq", "build_sequence_net"],
        "_search": ["beam_search", "greedy_search"],
        "_task": ["Translate"],
        "_text_metrics": ["bleu", "rouge"],
        "_translator": ["Translator", "load_translator", "nearest_labels", "translate_file"],
    },
)

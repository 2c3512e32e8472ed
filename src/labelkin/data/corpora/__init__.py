"""Parallel corpora: two files with a sentence a line, their vocabularies, and batches of like length.

`corpus = load_corpus("multi30k:en-de", min_count=2)`; then `PairBatches(corpus.parts["train"], batch_size=64, shuffle=True)`.
"""

from labelkin.data.corpora.batches import PairBatch, PairBatches
from labelkin.data.corpora.corpus import Corpus, Language, Pairs, Sentences, build_corpus
from labelkin.data.corpora.files import read_sentences
from labelkin.data.corpora.loading import corpus_files, corpus_fingerprint, load_corpus
from labelkin.data.corpora.tokens import TOKENIZERS
from labelkin.data.corpora.vocabulary import END, UNKNOWN, Vocabulary
from labelkin.data.sources import is_corpus

__all__ = [
    "END",
    "TOKENIZERS",
    "UNKNOWN",
    "Corpus",
    "Language",
    "PairBatch",
    "PairBatches",
    "Pairs",
    "Sentences",
    "Vocabulary",
    "build_corpus",
    "corpus_files",
    "corpus_fingerprint",
    "is_corpus",
    "load_corpus",
    "read_sentences",
]

"""A linear model on labelkin's text features and on scikit-learn's TfidfVectorizer, as a baseline.

    python benchmarks/text_linear.py [--sets 20-newsgroups,20-newsgroups:none,imdb] [--encoders hashed-tfidf]

Prints Markdown: test accuracy of logistic regression (C = 10) on each. `20-newsgroups:none` removes nothing of a post.
"""

import argparse
import warnings

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from labelkin.data import Dataset, load


def loaded(name: str, encoder: str) -> Dataset:
    title, _, remove = name.partition(":")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*features are all zero")
        return load(title, encoder=encoder, remove=[remove] if remove else None, download=False)


def accuracy(train, targets, test, truth) -> float:
    model = LogisticRegression(C=10, tol=1e-3, max_iter=300).fit(train, targets)
    return float(np.mean(model.predict(test) == truth))


def vocabulary(data: Dataset) -> tuple[float, int]:
    """Return the accuracy and the width of TF-IDF over the complete vocabulary of words and pairs of words."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    train, test = vectorizer.fit_transform(data.train.texts), vectorizer.transform(data.test.texts)
    return accuracy(train, data.train.targets.numpy(), test, data.test.targets.numpy()), train.shape[1]


def features(data: Dataset) -> float:
    train, test = (csr_array(split.inputs.numpy()) for split in (data.train, data.test))
    return accuracy(train, data.train.targets.numpy(), test, data.test.targets.numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="20-newsgroups,20-newsgroups:none,imdb")
    parser.add_argument("--encoders", default="hashed-tfidf")
    asked = parser.parse_args()
    print("| set | features | width | accuracy % |\n| --- | --- | --- | --- |", flush=True)
    for name in asked.sets.split(","):
        for encoder in asked.encoders.split(","):
            data = loaded(name, encoder)
            print(f"| {name} | {encoder} | {data.shape[0]} | {100 * features(data):.2f} |", flush=True)
        found, width = vocabulary(data)
        print(f"| {name} | TfidfVectorizer | {width} | {100 * found:.2f} |", flush=True)


if __name__ == "__main__":
    main()

"""Real English for tests: what scikit-learn says about its data sets, by paragraph."""

from functools import cache

from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

SOURCES = {
    "cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
}


@cache
def paragraphs() -> list[tuple[str, str]]:
    """(topic, text), some hundred of them, none empty."""
    found = []
    for topic, load in SOURCES.items():
        parts = [part.strip() for part in load().DESCR.split("\n\n")]
        found += [(topic, part) for part in parts if len(part.split()) > 3]
    return found


def texts() -> list[str]:
    return [text for _, text in paragraphs()]

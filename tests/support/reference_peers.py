"""The equations of methods from the field as slow loops over plain numbers, one sample a call; see `reference.py`."""

import math

from support import reference


def frame_similarity(distance, gamma, steps=20_000):
    """HAFrame's cosines by a search: the smallest s in [-1, -1 / (K - 1)] that keeps S positive semidefinite."""
    import numpy as np

    k, farthest = len(distance), max(map(max, distance))

    def cosines(s):
        return [[(1 - s) * math.exp(-gamma * distance[i][j] / farthest) + s for j in range(k)] for i in range(k)]

    low, high = -1.0, -1 / (k - 1)
    for step in range(steps + 1):
        s = low + (high - low) * step / steps
        if float(np.linalg.eigvalsh(cosines(s))[0]) > -1e-9:
            return cosines(s)
    return None


def cosine(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))


def haframe(f, y, vectors, similarity, share):
    """`(1 - share) CE(W f, y) + share sum_k (cos(f, w_k) - S_yk)^2`."""
    logits = [math.fsum(w * x for w, x in zip(row, f, strict=True)) for row in vectors]
    gaps = math.fsum((cosine(f, row) - similarity[y][k]) ** 2 for k, row in enumerate(vectors))
    return (1 - share) * reference.cross_entropy(logits, y) + share * gaps

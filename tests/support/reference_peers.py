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


def cut(parents, leaf, depth):
    """The node at `depth` above a leaf, or the leaf where it lies higher."""
    path = reference.path(parents, leaf)
    return path[min(depth, len(path)) - 1]


def bilt_level(z, y, costs, delta, beta, eps, gamma, released):
    """One level of BiLT: `CE(z, y) + CE(s, y~)`."""
    k = range(len(z))
    p = reference.softmax(z)
    delta = [[0.0 if i == j else delta[i][j] for j in k] for i in k]
    softened = costs
    if released:
        delta = [[x / math.hypot(*row) for x in row] for row in delta]
        softened = [[costs[i][j] - beta * delta[i][j] for j in k] for i in k]
        delta = [[delta[i][j] + (i == j) for j in k] for i in k]
    s = [math.fsum((beta * delta[i][j] - costs[i][j]) * p[j] for j in k) for i in k]
    kin = reference.softmax([-gamma * c for c in softened[y]])
    soft = [(1 - eps) * (i == y) + eps * kin[i] for i in k]
    return reference.cross_entropy(z, y) + reference.soft_cross_entropy(s, soft)


def tree_soft_labels(distance, y, beta):
    """Bertinetto et al.: `exp(-beta d(y, k) / max d)` over all k, the class included, divided by its sum."""
    farthest = max(map(max, distance))
    weights = [math.exp(-beta * d / farthest) for d in distance[y]]
    return [w / math.fsum(weights) for w in weights]


def hier_cos(z, parents, leaf):
    """`KL(t_y || softmax|z|)` and the sum over levels of `|| e_l - |z_l| / ||z_l||_2 ||_1`; node i has `z[i - 1]`."""
    nodes = range(1, len(parents))
    path = reference.path(parents, leaf)
    h = len(path)
    weights = {n: math.exp(2 / (h + 1 - level)) for level, n in enumerate(path, start=1)}
    log_q = reference.log_softmax([abs(x) for x in z])
    t = {n: w / math.fsum(weights.values()) for n, w in weights.items()}
    divergence = math.fsum(t[n] * (math.log(t[n]) - log_q[n - 1]) for n in path)
    levels = 0.0
    for level in range(1, max(len(reference.path(parents, n)) for n in nodes) + 1):
        here = [n for n in nodes if len(reference.path(parents, n)) == level]
        length = math.hypot(*(z[n - 1] for n in here))
        for n in here:
            levels += abs((n in path) - abs(z[n - 1]) / length) if level <= h else abs(z[n - 1])
    return divergence, levels


def subspace_score(z, parents, leaf):
    return math.sqrt(math.fsum(z[n - 1] ** 2 for n in reference.path(parents, leaf)))


def hops(order, distance, k):
    """HOPS@k of one sample from the classes in the order of their scores and their distances to the true class."""
    if k == 1:
        return float(distance[order[0]] == 0)
    different = sorted(set(distance))
    rank = [different.index(d) for d in distance]
    expected = sorted(rank)
    reverse = expected[:k][::-1]
    weights = []
    for place, r in enumerate(expected):
        many, before = expected.count(r), expected.index(r)
        start = 0.5**r
        end = 0.0 if r == max(expected) else 0.5 ** (r + 1)
        weights.append(start + (end - start) * (place - before) / many)
    found = math.fsum(weights[i] * abs(expected[i] - rank[order[i]]) for i in range(k))
    worst = math.fsum(weights[i] * abs(expected[i] - reverse[i]) for i in range(k))
    return max(0.0, 1 - found / worst)


def online_labels(probs, targets, classes, weights=None):
    """OLS: the mean probabilities of the correct samples of each class, uniform where there are none."""
    weights = weights or [1.0] * len(targets)
    table = []
    for y in range(classes):
        own = [(w, p) for p, t, w in zip(probs, targets, weights, strict=True) if t == y and max(p) == p[y] and w > 0]
        total = math.fsum(w for w, _ in own)
        table.append([math.fsum(w * p[k] for w, p in own) / total if own else 1 / classes for k in range(classes)])
    return table

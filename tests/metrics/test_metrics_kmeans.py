"""k-means against scikit-learn's and literal loops."""

import math

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from labelkin import InputError
from labelkin.metrics import _kmeans as kmeans
from labelkin.metrics import superclass_accuracy_by_kmeans

DIGITS = torch.tensor(load_digits().data)


def centres_of(found: kmeans.Clusters) -> torch.Tensor:
    return found.centers.double() * found.scale + found.origin


@pytest.mark.long
@pytest.mark.parametrize("clusters", [5, 10, 40])  # 12, 6 and 1 starts at once
def test_as_good_as_scikit_learns_best_of_ten(clusters: int):
    theirs = [KMeans(clusters, n_init=10, random_state=seed).fit(DIGITS).inertia_ for seed in range(3)]
    ours = [kmeans.fit(DIGITS, clusters, seed=seed).inertia for seed in range(3)]
    assert np.mean(ours) < 1.01 * np.mean(theirs)
    assert max(ours) < 1.02 * min(theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_fit_has_nowhere_to_go_by_a_literal_step(dtype: torch.dtype):
    rows = DIGITS[:300].to(dtype)
    found = kmeans.fit(rows, 8)
    centres = centres_of(found).tolist()
    nearest, inertia = [], 0.0
    for row in rows.tolist():
        squares = [math.dist(row, centre) ** 2 for centre in centres]
        nearest.append(squares.index(min(squares)))
        inertia += min(squares)
    assert found.place(rows).tolist() == nearest
    assert found.inertia == pytest.approx(inertia, rel=1e-5)
    for cluster, centre in enumerate(centres):
        own = rows[torch.tensor(nearest) == cluster].double()
        assert centre == pytest.approx(own.mean(0).tolist(), abs=1e-3)


@pytest.mark.long
def test_more_starts_are_never_worse_and_a_seed_repeats():
    few, many = (kmeans.fit(DIGITS, 10, starts=starts, seed=3).inertia for starts in (1, 6))
    assert many <= few
    assert torch.equal(kmeans.fit(DIGITS, 10, seed=3).centers, kmeans.fit(DIGITS, 10, seed=3).centers)


@pytest.mark.long
@pytest.mark.parametrize(("factor", "offset"), [(1e-25, 0), (1e25, 0), (1.0, 1e6)])
def test_neither_size_nor_place_of_the_rows_matters(factor: float, offset: float):
    plain, changed = kmeans.fit(DIGITS, 10), kmeans.fit(factor * DIGITS + offset, 10)
    assert torch.equal(plain.place(DIGITS), changed.place(factor * DIGITS + offset))
    assert changed.inertia == pytest.approx(plain.inertia * factor**2, rel=1e-4)


def test_fewer_different_rows_than_clusters():
    rows = torch.tensor([[0.0, 0.0]] * 5 + [[1.0, 0.0]] * 5)
    found = kmeans.fit(rows, 4)
    assert found.inertia == 0
    assert len(found.place(rows)[:5].unique()) == len(found.place(rows)[5:].unique()) == 1
    assert found.place(rows)[0] != found.place(rows)[5]
    assert kmeans.fit(torch.zeros(6, 3), 3).inertia == 0
    assert kmeans.fit(DIGITS[:7], 7).inertia == pytest.approx(0, abs=1e-6)


def test_inertia_of_tight_clusters_far_apart():
    noise = torch.randn(40, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = 1e-4 * noise + torch.arange(40)[:, None] % 2
    expected = sum((1e-8 * (part - part.mean(0)).square().sum()).item() for part in (noise[::2], noise[1::2]))
    assert kmeans.fit(rows, 2).inertia == pytest.approx(expected, rel=1e-3)


def test_a_cluster_left_without_rows_takes_the_farthest():
    rows = torch.tensor([[0.0], [1.0], [2.0], [30.0]])
    centres = torch.tensor([[1.0], [100.0]])  # none is nearest to the second
    runs = kmeans._Runs(rows, rows.square().sum(1), centres[None].clone(), kmeans._scores(rows, centres)[None])
    kmeans._iterate(runs)
    assert runs.centers.flatten().tolist() == [1.0, 30.0]


@pytest.mark.parametrize("which", ["train_outputs", "outputs"])
def test_infinite_outputs_are_refused(which: str):
    given = {"train_outputs": torch.rand(6, 3), "outputs": torch.rand(6, 3)}
    given[which][0, 0] = -math.inf
    with pytest.raises(InputError, match=f"{which}: expected finite numbers, got 1 infinite"):
        superclass_accuracy_by_kmeans(**given, target=torch.arange(6) % 3, groups=[0, 1, 1])

"""Checks that look inside runs, against slow readings of the same files."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from labelkin.comparison import compare
from labelkin.data._sets.sources import inventory
from labelkin.papers import _claim_checks as looking
from labelkin.papers import recipe, reproduce
from labelkin.papers._claims import check
from labelkin.papers._measured import Run
from labelkin.runs import RunFolder, Store, load_run
from support.requires import skip_unless

TRAINED = {"label-embedding": {}, "semantic-smoothing": {"relation": "ordinal", "sigma": 0.5}}


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    """Two short runs on digits as the rows of one column."""
    store = tmp_path_factory.mktemp("runs")
    compare("digits", objectives=list(TRAINED), options=TRAINED, out=store, epochs=3, backbone="mlp", lr=0.005)
    return {"digits": {r.objective: [Run(r.objective, r.seed, r.final, (), record=r)] for r in Store(store).records()}}


def objective_of(columns, row):
    return load_run(columns["digits"][row][0].record.path).model.objective


@pytest.mark.long
def test_nearest_labels(columns):
    embedding = objective_of(columns, "label-embedding").label_vectors()
    rows = embedding.clone().fill_diagonal_(-torch.inf)
    best = {str(k): [str(int(rows[k].argmax()))] for k in range(10)}
    claim = {"of": ["digits", "label-embedding"], "pairs": best}
    holds, told = looking.nearest(claim, columns)
    assert holds is True
    assert told.startswith("10 of 10 as published.")
    best["3"] = ["3"]  # never its own neighbour
    assert looking.nearest(claim, columns)[0] is False


def test_the_first_split_of_the_labels(columns):
    vectors = objective_of(columns, "label-embedding").label_vectors().double().numpy()
    side = fcluster(linkage(pdist(vectors), "average"), 2, "maxclust")
    half = [str(k) for k in np.flatnonzero(side == side[0])]
    claim = {"of": ["digits", "label-embedding"], "half": half}
    assert looking.halves(claim, columns)[0] is True
    assert looking.halves({**claim, "half": half[1:]}, columns)[0] is False


def test_an_embedding_is_handed_on(columns):
    run = columns["digits"]["label-embedding"][0]
    given = torch.tensor(looking.embedding_of(run))
    torch.testing.assert_close(given.float(), objective_of(columns, "label-embedding").label_vectors())


def test_hidden_distances_approach_those_of_the_targets(columns):
    place = ["digits", "semantic-smoothing"]
    holds, told = looking.approach({"of": place, "than": place}, columns)
    assert holds is False  # no nearer than itself
    value = float(told.rsplit(" ", 1)[1])
    assert 0.3 < value <= 1  # smoothing by order leaves its mark after three epochs


def test_class_accuracies_at_the_end(columns):
    record = columns["digits"]["label-embedding"][0].record
    outputs = RunFolder(record.path).outputs()
    right = outputs["scores"].argmax(-1) == outputs["target"]
    holds, told = looking.class_accuracies({"of": ["digits", "label-embedding"]}, columns)
    assert holds is None
    assert f"0 {float(right[outputs['target'] == 0].float().mean()):.2f}/" in told


def test_a_claim_is_told_by_the_run_it_names(columns):
    claim = next(c for c in recipe("003-figure3").claims if c["claim"] == "cifar10")
    found = check({**claim, "of": ["digits", "label-embedding"], "pairs": {"0": ["0"]}}, recipe("003-figure3"), columns)
    assert found.holds is False
    assert found.claim.startswith("the most similar label of automobile")


def test_confusions_beside_those_in_print(tmp_path):
    present = any(entry.name == "cifar10" and entry.at_hand for entry in inventory())
    skip_unless(present, "CIFAR-10", "cifar10")
    asked = {"rows": ["hierarchical"], "backbone": "mlp", "seeds": 1, "scale": 0.02, "subset": 0.02}
    found = reproduce("002-figure12", **asked, store=tmp_path)
    (record,) = Store(tmp_path).records()
    outputs, classes = RunFolder(record.path).outputs(), load_run(record.path).classes
    pairs = zip(outputs["target"].tolist(), outputs["scores"].argmax(-1).tolist(), strict=True)
    counts = Counter(f"{classes[true]} as {classes[said]}" for true, said in pairs if true != said)
    columns = {"LeNet": {"hierarchical": [Run("hierarchical", 0, record.final, (), record=record)]}}
    _, told = looking.confusions({"of": ["LeNet", "hierarchical"], "table": "figure3c"}, columns)
    assert f"automobile as truck {counts['automobile as truck']} times (published: 100)" in told
    assert f"cat as dog {counts['cat as dog']} times (published: 168)" in told
    assert told.split("most frequent: ")[1].split(", ")[0] in [name for name, _ in counts.most_common(1)]
    assert "plain/weighted" in found.claims[0].found

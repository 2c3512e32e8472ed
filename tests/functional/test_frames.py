"""Fixed class vectors from a tree (HAFrame, unit sphere) against slow loops, known cases and the order of classes."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin import HAFrame, InputError, Taxonomy, UnitSphere
from labelkin.functional import cosine_to_vectors, frame_similarity, frame_vectors, haframe
from support import reference_peers as reference
from support.numeric import check_gradient, close, each, each_soft, positions, probabilities, renamed, values
from support.reference import cross_entropy
from support.trees import taxonomies
from support.worlds import default_dtype

TREE = Taxonomy.from_paths(["a/b/x", "a/b/y", "a/z", "c/u", "c/v", "w"])
DISTANCE = torch.from_numpy(TREE.distance("height"))
K = len(TREE.leaves)
SIMILARITY = frame_similarity(DISTANCE, 2.0)
FRAME = frame_vectors(SIMILARITY)


def loop(f, y, share=0.4):
    return reference.haframe(f, y, FRAME.tolist(), SIMILARITY.tolist(), share)


def parts(f, target, share=0.4):
    return haframe(f, target, FRAME, SIMILARITY, share=share)


@pytest.mark.long
@pytest.mark.parametrize("gamma", [0.3, 2.0, 6.0])
def test_the_offset_is_the_one_that_a_search_finds(gamma):
    found = frame_similarity(DISTANCE, gamma)
    close(found, reference.frame_similarity(DISTANCE.tolist(), gamma), atol=2e-4)
    assert float(torch.linalg.eigvalsh(found)[0]) > -1e-12
    decay = torch.exp(-gamma * DISTANCE / DISTANCE.max())
    offset = float((found[0, 1] - decay[0, 1]) / (1 - decay[0, 1]))
    assert -1 <= offset <= -1 / (K - 1)
    if gamma > 1:  # one step further no frame exists
        lower = offset - 1e-3
        assert float(torch.linalg.eigvalsh((1 - lower) * decay + lower)[0]) < -1e-5
    else:
        assert offset == pytest.approx(-1)


def test_without_structure_the_frame_is_the_simplex():
    """The equiangular tight frame of neural collapse: all cosines are -1 / (K - 1)."""
    expected = torch.full((K, K), -1 / (K - 1), dtype=torch.float64).fill_diagonal_(1)
    close(frame_similarity(1 - torch.eye(K), 2.0), expected)


@given(taxonomy=taxonomies(max_leaves=12), gamma=st.floats(0.2, 8))
@settings(max_examples=12, deadline=None)
def test_frames_of_random_trees_have_the_angles_and_order_of_the_tree(taxonomy, gamma):
    distance = torch.from_numpy(taxonomy.distance("height"))
    similarity = frame_similarity(distance, gamma)
    vectors = frame_vectors(similarity)
    close(vectors @ vectors.T, similarity)
    for i in range(len(distance)):
        nearer = distance[i][:, None] < distance[i][None, :]
        assert (similarity[i][:, None] - similarity[i][None, :])[nearer].gt(0).all()


def test_permuted_classes_have_permuted_vectors():
    order, _ = renamed(3, K)
    moved = frame_vectors(frame_similarity(DISTANCE[order][:, order], 2.0))
    close(moved, FRAME[order][:, order])


def test_similarities_that_no_vectors_have_are_refused():
    with pytest.raises(
        InputError, match=r"similarity: expected a positive semidefinite matrix, got an eigenvalue of -1"
    ):
        frame_vectors(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    broken = torch.tensor([[0.0, 1.0, 0.01], [1.0, 0.0, 0.01], [0.01, 0.01, 0.0]])
    with pytest.raises(InputError, match=r"distance: .* is not positive definite"):
        frame_similarity(broken, 4.0)


@pytest.mark.parametrize("lead", [(9,), (2, 3)])
def test_haframe_is_the_loop(lead):
    f, target, soft = values(0, *lead, K), positions(1, K, *lead), 1.7 * probabilities(2, *lead, K)
    total, hard, cosine = parts(f, target)
    close(total, each(loop, f, target))
    close(hard, F.cross_entropy((f @ FRAME.T).reshape(-1, K), target.reshape(-1), reduction="none").reshape(lead))
    close(cosine, each(lambda row, y: loop(row, y, 1.0), f, target))
    close(parts(f, soft)[0], each_soft(loop, f, soft))


def test_haframe_without_share_is_cross_entropy_and_a_class_vector_has_no_cosine_loss():
    f, target = values(3, 7, K), positions(4, K, 7)
    close(parts(f, target, 0.0)[0], F.cross_entropy(f @ FRAME.T, target, reduction="none"))
    close(parts(5 * FRAME, torch.arange(K), 1.0)[0], torch.zeros(K))


def test_the_cosine_term_ignores_the_length_of_features():
    f, target = values(5, 6, K), positions(6, K, 6)
    close(parts(7 * f, target)[2], parts(f, target)[2])


def test_haframe_gradient():
    target, soft = positions(7, K, 4), probabilities(8, 4, K)
    check_gradient(lambda f: parts(f, target)[0], values(9, 4, K))
    check_gradient(lambda f: parts(f, soft)[0], values(10, 4, K))


def test_cosine_to_vectors_is_the_loop():
    z, target, soft = values(11, 8, K), positions(12, K, 8), 0.6 * probabilities(13, 8, K)
    vectors = frame_vectors(1 - DISTANCE / DISTANCE.max())

    def slow(row, y):
        return 1 - reference.cosine(row, vectors[y].tolist())

    close(cosine_to_vectors(z, target, vectors), each(slow, z, target))
    close(cosine_to_vectors(z, soft, vectors), each_soft(slow, z, soft))
    close(cosine_to_vectors(3 * z, target, vectors), cosine_to_vectors(z, target, vectors))
    check_gradient(lambda x: cosine_to_vectors(x, target, vectors), z)


def test_a_sample_on_the_vector_of_its_class_is_predicted_and_kin_come_next():
    head = HAFrame(TREE)
    found = head.scores(4 * head.label_vectors())
    assert torch.equal(found.argmax(-1), torch.arange(K))
    order = found.argsort(-1, descending=True)
    near = DISTANCE.gather(1, order)
    assert (near.diff(dim=1) >= 0).all()


@pytest.mark.parametrize("distance", ["height", "depth", "edges"])
def test_every_distance_of_a_tree_has_a_frame(distance):
    w = HAFrame(TREE, distance=distance).label_vectors().double()
    torch.testing.assert_close((w @ w.T).diagonal(), torch.ones(K, dtype=torch.float64), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0}, "gamma: expected"),
        ({"share": 1.5}, "share: expected"),
        ({"distance": "miles"}, "distance: expected one of"),
    ],
)
def test_wrong_options_of_haframe_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        HAFrame(TREE, **options)


# Barz & Denzler's unit sphere.


def sphere(**options):
    with default_dtype(torch.float64), torch.random.fork_rng():
        torch.manual_seed(0)
        return UnitSphere(TREE, reduction="none", **options)


@pytest.mark.parametrize("distance", ["height", "depth"])
def test_inner_products_are_the_similarities_of_the_tree(distance):
    v, apart = sphere(distance=distance).label_vectors(), torch.from_numpy(TREE.distance(distance))
    close(v @ v.T, 1 - apart / apart.max())


@pytest.mark.parametrize("ce_weight", [0.0, 0.1, 2.0])
def test_the_loss_of_the_sphere_is_the_loop(ce_weight):
    head = sphere(ce_weight=ce_weight)
    vectors = head.label_vectors().tolist()

    def slow(z, y):
        loss = 1 - reference.cosine(z, vectors[y])
        if ce_weight:
            weight, bias = head.classifier.weight.tolist(), head.classifier.bias.tolist()
            logits = [b + sum(w * x for w, x in zip(row, z, strict=True)) for row, b in zip(weight, bias, strict=True)]
            loss += ce_weight * cross_entropy(logits, y)
        return loss

    z, target, soft = values(20, 7, K), positions(21, K, 7), probabilities(22, 7, K)
    close(head(z, target).detach(), each(slow, z, target))
    close(head(z, soft).detach(), each_soft(slow, z, soft))
    check_gradient(lambda x: head(x, target), z)


def test_without_a_classifier_the_nearest_vector_is_the_prediction():
    head = sphere(ce_weight=0.0)
    z = values(23, 30, K)
    scores = head.scores(z)
    nearest = torch.cdist(F.normalize(z, dim=-1), head.label_vectors()).argmin(-1)
    assert torch.equal(scores.argmax(-1), nearest)
    close(head.scores(5 * z), scores)
    close(head.log_probs(z), F.log_softmax(scores, -1))
    assert head.classifier is None


def test_the_classifier_gives_the_probabilities():
    head = sphere()
    z = values(24, 6, K)
    close(head.log_probs(z).detach(), F.log_softmax(head.classifier(z), -1).detach())
    assert torch.equal(head.scores(z), head.log_probs(z))


def test_wrong_options_of_the_sphere_are_refused():
    with pytest.raises(InputError, match="ce_weight: expected"):
        sphere(ce_weight=-1)
    with pytest.raises(InputError, match="distance: expected one of"):
        sphere(distance="miles")

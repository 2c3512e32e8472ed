"""Train a transformer of texts further: `--backbone hf:NAME` on a table of texts, from training to the exported file."""

import csv
import json
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

import labelkin
from labelkin import InputError
from labelkin.data import Tokens
from labelkin.data._encoders import encoder, restored
from labelkin.runs import DataWorkspace, RunSpec, run_id
from labelkin.training import context_for
from support.tiny_bert import CLASSES, TREE, WORDS, config, tokenizer

transformers = pytest.importorskip("transformers")


def save_model(folder, **options):
    torch.manual_seed(0)
    transformers.BertModel(config(hidden_size=32, **options)).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """The folder of a small BERT with drawn weights, for at most 16 tokens."""
    return save_model(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A table of 400 short texts of four classes in two groups."""
    path = tmp_path_factory.mktemp("data") / "texts.csv"
    drawn = random.Random(0)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["group", "label", "body"])
        for position in range(400):
            name = CLASSES[position % 4]
            words = [drawn.choice(WORDS[name].split()) for _ in range(drawn.randint(3, 8))]
            rows.writerow([TREE.names[TREE.parents[TREE.node(name)]], name, " ".join(words)])
    return path


@pytest.fixture(scope="module")
def trained(bert, texts, tmp_path_factory):
    """A run that was trained with a copy of the model, which is gone."""
    place = tmp_path_factory.mktemp("run")
    copy = shutil.copytree(bert, place / "copy")
    run = labelkin.train(
        texts,
        "kin",
        backbone=f"hf:{copy}",
        out=place / "run",
        data_options={"text": "body", "label": ["group", "label"]},
        epochs=12,
        lr=0.005,
        batch_size=32,
        backbone_lr=0.5,
        unfreeze_after=1,
        ema=0.9,
    )
    accuracy = labelkin.evaluate(run).metrics["accuracy"]
    assert accuracy == run.metrics["accuracy"]
    shutil.rmtree(copy)
    return run


def test_all_weights_are_trained(trained, bert):
    """Frozen, or with the features of the drawn weights, it would stay near a quarter."""
    assert trained.metrics["accuracy"] > 0.8
    kept = labelkin.load_run(trained).model.backbone.state_dict()
    first = transformers.BertModel.from_pretrained(bert).state_dict()
    name = "embeddings.word_embeddings.weight"
    assert not torch.allclose(next(value for key, value in kept.items() if key.endswith(name)), first[name], atol=1e-3)


def test_a_run_predicts_without_the_folder_of_the_model(trained, texts, tmp_path):
    rows = labelkin.runs.write_predictions(trained, [texts], tmp_path / "predicted.csv")
    assert rows == 400
    with texts.open() as given, (tmp_path / "predicted.csv").open() as found:
        pairs = list(zip(csv.DictReader(given), csv.DictReader(found), strict=True))
    assert np.mean([given["label"] == answer["class"] for given, answer in pairs]) > 0.8
    assert labelkin.load_run(trained).samples.encoder["length"] == 10  # eight words and two marks


@pytest.mark.parametrize("suffix", ["onnx", "pt2"])
def test_the_exported_file_takes_token_ids_and_has_the_tokenizer(trained, tmp_path, suffix):
    pytest.importorskip("onnxscript")
    path = tmp_path / f"model.{suffix}"
    assert labelkin.runs.export_model(trained, path, decide="crm").checked_by is not None
    model = labelkin.load_run(trained)
    texts = ["the cat purrs", "a ship with sails at sea at sea at sea at sea at sea"]
    samples = restored(model.samples.encoder).encode(texts)
    expected = model.predict(samples, decide="crm")
    if suffix == "onnx":
        session = pytest.importorskip("onnxruntime").InferenceSession(path)
        about = json.loads(session.get_modelmeta().custom_metadata_map["labelkin"])
        found = torch.from_numpy(session.run(["class_index"], {"inputs": samples.long().numpy()})[0])
    else:
        extra = {"labelkin.json": ""}
        found = torch.export.load(path, extra_files=extra).module()(samples.long())["class_index"]
        about = json.loads(extra["labelkin.json"])
    assert found.tolist() == expected.positions.tolist()
    assert about["inputs"] == "token ids (n, length), int64"
    own = pytest.importorskip("tokenizers").Tokenizer.from_str(about["tokenizer"])
    ids = own.encode(texts[0]).ids
    assert samples[0].tolist() == ids + [about["padding"]] * (about["shape"][0] - len(ids))


def test_ids_are_those_of_the_tokenizer(bert):
    fitted = encoder(f"tokens:{bert}").fitted(["the cat", "a dog barks at night"])
    expected = tokenizer()(["the dog", "a " * 20], padding="max_length", truncation=True, max_length=7)["input_ids"]
    for tokens in (fitted, restored(fitted.state())):
        assert tokens.encode(["the dog", "a " * 20]).tolist() == expected
    long = encoder(f"tokens:{bert}").fitted(["a " * 50])
    assert long.encode(["a"]).shape == (1, 16)  # as many as the model has positions


def test_token_ids_are_not_scaled_and_trees_come_from_counts(bert, texts):
    workspace = DataWorkspace(
        RunSpec(data=str(texts), backbone=f"hf:{bert}", data_options={"text": "body"}, objective="kin")
    )
    data = workspace.dataset
    assert isinstance(data.train.encoder, Tokens)
    assert torch.equal(data.normalize(data.train.inputs), data.train.inputs)
    context = context_for(data, None)
    means = torch.stack([context.inputs[context.targets == k].mean(0) for k in range(4)])
    near = torch.cdist(means, means)
    names = list(data.classes)
    assert near[names.index("cat"), names.index("dog")] < near[names.index("cat"), names.index("ship")]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"data_options": {"text": "body", "encoder": "hashed-tfidf"}}, r"expected texts, .* encoded by hashed-tfidf"),
        ({"augment": ["mixup:0.2"]}, r"augment: mixup:0\.2 cannot change texts"),
        ({"backbone": "mlp", "data_options": {"text": "body", "encoder": "tokens:BERT"}}, r"gives token ids; train on"),
        ({"backbone": "hf:nowhere/at-all"}, r"backbone 'hf:nowhere/at-all': .* could not be loaded"),
    ],
)
def test_what_a_transformer_of_texts_cannot_take_is_refused(bert, texts, options, sentence, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    given = {"backbone": f"hf:{bert}", "data_options": {"text": "body"}, **options}
    if "encoder" in given["data_options"]:
        named = given["data_options"]["encoder"].replace("BERT", str(bert))
        given["data_options"] = {**given["data_options"], "encoder": named}
    with pytest.raises(InputError, match=sentence):
        labelkin.train(texts, "one-hot", epochs=1, **given)


def test_data_without_texts_are_refused(bert):
    with pytest.raises(InputError, match=r"encoder: does not apply to digits|expected texts"):
        labelkin.train("digits", backbone=f"hf:{bert}", epochs=1)


def test_a_model_without_padding_is_refused_with_the_encoder_to_use(bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "model")
    stated = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**stated, "pad_token_id": None}))
    with pytest.raises(InputError, match=r"no padding token .* --encoder hf:"):
        encoder(f"tokens:{folder}").fitted(["the cat"])


def test_the_id_is_the_content_of_the_model(bert, texts, tmp_path):
    spec = RunSpec(data=str(texts), backbone=f"hf:{bert}", data_options={"text": "body"})
    copy = shutil.copytree(bert, tmp_path / "copy")
    assert run_id(replace(spec, backbone=f"hf:{copy}")) == run_id(spec)
    save_model(copy, intermediate_size=24)
    assert run_id(replace(spec, backbone=f"hf:{copy}")) != run_id(spec)


def test_features_of_texts_can_be_frozen(bert, texts, tmp_path):
    run = labelkin.train(
        texts, backbone=f"hf:{bert}", freeze=True, out=tmp_path / "run", epochs=1, data_options={"text": "body"}
    )
    kept = labelkin.load_run(run).model.backbone.state_dict()
    first = transformers.BertModel.from_pretrained(bert).state_dict()
    assert all(
        torch.equal(value, next(first[key] for key in first if name.endswith(key))) for name, value in kept.items()
    )

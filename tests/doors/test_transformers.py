"""The Hugging Face door: texts end to end with a tiny BERT, against plain loops of torch."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from labelkin import AdaptiveLabels, Hierarchical, InputError, LabelEmbedding, Objective, OneHot, Retrospection, metrics
from support.later import Later, later_or_skip
from support.requires import skip_unless
from support.tiny_bert import CLASSES, TREE, collated, config, samples, tokenizer

if TYPE_CHECKING:
    from transformers import BertModel, TrainingArguments

    from labelkin.doors.transformers import KinModel

transformers = later_or_skip("transformers")
door = Later("labelkin.doors.transformers")

WIDTH = 16
HEADS: dict[str, Callable[[], Objective]] = {
    "one-hot": lambda: OneHot(CLASSES, features=WIDTH),
    "label-embedding": lambda: LabelEmbedding(CLASSES, features=WIDTH),
    "hierarchical": lambda: Hierarchical(TREE, features=WIDTH),
    "adaptive-labels": lambda: AdaptiveLabels(CLASSES, features=WIDTH, preset="memory"),
    "retrospection": lambda: Retrospection(CLASSES, samples=24, features=WIDTH, every=1),
}
every_head = pytest.mark.parametrize("name", HEADS)


def encoder(seed: int = 0, **options: Any) -> "BertModel":
    torch.manual_seed(seed)
    return transformers.BertModel(config(**options))


def headed(name: str, **options: Any) -> "KinModel":
    net = encoder(**options)
    return door.KinModel(net, HEADS[name]())


def inputs_of(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: value for key, value in batch.items() if key != "labels"}


def close(ours: nn.Module, theirs: nn.Module) -> None:
    found, wanted = dict(ours.named_parameters()), dict(theirs.named_parameters())
    assert found.keys() == wanted.keys()
    for key, value in found.items():
        torch.testing.assert_close(value, wanted[key], rtol=1e-5, atol=1e-6, msg=lambda m, k=key: f"{k}: {m}")


# The model


@every_head
def test_a_step_is_that_of_the_encoder_and_the_objective_written_out(name: str):
    model, net = headed(name, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).train(), encoder().eval()
    torch.manual_seed(0)
    transformers.BertModel(config())  # the same random numbers as `headed` drew before its objective
    objective = HEADS[name]().train()
    batch, index = collated(samples(8)), torch.arange(8)
    for part in (model.objective, objective):
        part.begin_epoch(0, 1)
    loss = model(**batch, index=index).loss
    pooled = net(**inputs_of(batch)).pooler_output
    wanted = objective.loss(objective(pooled), batch["labels"], index=index)
    torch.testing.assert_close(loss, wanted)
    loss.backward()
    wanted.backward()
    for ours, theirs in ((model.model, net), (model.objective, objective)):
        for (key, left), (_, right) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
            torch.testing.assert_close(left.grad, right.grad, msg=lambda m, k=key: f"{k}: {m}")
    torch.testing.assert_close(dict(model.objective.named_buffers()), dict(objective.named_buffers()))


def test_a_criterion_takes_the_logits_of_a_model_with_a_head():
    torch.manual_seed(0)
    net = transformers.BertForSequenceClassification(config(num_labels=4)).eval()
    batch = collated(samples(8))
    model = door.KinModel(net, OneHot(CLASSES)).eval()
    theirs = net(**batch)
    ours = model(**batch)
    torch.testing.assert_close(ours.loss, theirs.loss)  # one-hot is the model's own cross-entropy
    torch.testing.assert_close(ours.logits, theirs.logits.log_softmax(-1))
    assert model(**inputs_of(batch)).loss is None


def test_pooling_by_hand():
    net, batch = encoder().eval(), collated(samples(6))
    hidden, mask = net(**inputs_of(batch)).last_hidden_state, batch["attention_mask"]
    means = torch.stack([row[: int(kept.sum())].mean(0) for row, kept in zip(hidden, mask, strict=True)])
    for pooling, wanted in (("first", hidden[:, 0]), ("mean", means)):
        found = door.KinModel(net, OneHot(4, features=WIDTH), pooling=pooling).features(inputs_of(batch))
        torch.testing.assert_close(found, wanted)
    without = transformers.BertModel(config(), add_pooling_layer=False).eval()
    without.load_state_dict(net.state_dict(), strict=False)
    torch.testing.assert_close(door.KinModel(without, OneHot(4, features=WIDTH)).features(inputs_of(batch)), means)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_trainer_turns_checkpointing_on_by_either_name():
    """Version 5 of transformers calls the new name, and warned that it would not call the former one much longer."""
    for name in ("gradient_checkpointing_enable", "activation_checkpointing_enable"):
        model = headed("one-hot")
        if not hasattr(model.model, name):
            continue
        assert not model.model.is_gradient_checkpointing
        getattr(model, name)(**{name.replace("enable", "kwargs"): {"use_reentrant": False}})
        assert model.model.is_gradient_checkpointing


@every_head
def test_a_saved_model_comes_back_without_pickle(name: str, tmp_path: Path):
    model = headed(name).train()
    model.objective.begin_epoch(0, 2)
    batch = collated(samples(8))
    model(**batch, index=torch.arange(8)).loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "model.safetensors", "objective.safetensors"}
    loaded = door.KinModel.from_pretrained(tmp_path, HEADS[name]())
    close(loaded, model)
    torch.testing.assert_close(dict(loaded.named_buffers()), dict(model.named_buffers()))
    model.eval()
    torch.testing.assert_close(loaded(**batch).logits, model(**batch).logits)
    plain = transformers.BertModel.from_pretrained(tmp_path)  # the folder is a model of transformers on its own
    torch.testing.assert_close(plain.embeddings.word_embeddings.weight, model.model.embeddings.word_embeddings.weight)


def test_a_saved_objective_does_not_load_as_another(tmp_path: Path):
    headed("label-embedding").save_pretrained(tmp_path)
    with pytest.raises(InputError, match="expected the state of OneHot, got that of LabelEmbedding"):
        door.KinModel.from_pretrained(tmp_path, HEADS["one-hot"]())
    with pytest.raises(InputError, match=r"tau: this LabelEmbedding has 3\.0"):
        door.KinModel.from_pretrained(tmp_path, LabelEmbedding(CLASSES, features=WIDTH, tau=3.0))
    with pytest.raises(InputError, match="pooling: expected 'auto'"):
        door.KinModel.from_pretrained(tmp_path, HEADS["label-embedding"](), pooling="mean")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: door.KinModel(encoder(), OneHot(4, features=8)),
            "features: expected 16, the model's hidden_size, got 8",
        ),
        (lambda: door.KinModel(nn.Linear(2, 2), OneHot(2)), "expected a Hugging Face model with a config, got Linear"),
        (lambda: door.KinModel(encoder(), LabelEmbedding(4)), "LabelEmbedding needs two heads"),
        (
            lambda: door.KinModel(transformers.BertForSequenceClassification(config(num_labels=3)), OneHot(4)),
            "classes: expected 3, the model's num_labels, got 4",
        ),
        (
            lambda: door.KinModel(transformers.BertForSequenceClassification(config(num_labels=4)), Hierarchical(TREE)),
            "Hierarchical takes 6 outputs for 4 classes, and the model has 4; give it features=",
        ),
        (lambda: door.KinModel(encoder(), OneHot(4, features=16), pooling="max"), "pooling: expected one of 'auto'"),
    ],
    ids=["features", "no config", "two heads", "classes", "nodes", "pooling"],
)
def test_models_and_objectives_that_do_not_fit_are_named(make: "Callable[[], KinModel]", sentence: str):
    with pytest.raises(InputError, match=sentence):
        make()


def test_classes_in_another_order_than_the_models_labels_are_refused():
    def named(*names: str) -> "BertModel":
        return encoder(id2label=dict(enumerate(names)), label2id={name: k for k, name in enumerate(names)})

    shuffled = TREE.classes[::-1]
    with pytest.raises(InputError, match=f"classes: label 0 is '{shuffled[0]}' in the model's config.id2label, and '"):
        door.KinModel(named(*shuffled), Hierarchical(TREE, features=WIDTH))
    door.KinModel(named(*shuffled), Hierarchical(TREE, classes=shuffled, features=WIDTH))
    door.KinModel(named(*shuffled), OneHot(len(shuffled), features=WIDTH))
    door.KinModel(named("a", "b", "c", "d"), Hierarchical(TREE, features=WIDTH))


# Metrics


def test_metrics_are_those_of_the_functions():
    scores = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
    target = torch.arange(40) % 4
    labels = torch.where(torch.arange(40) < 30, target, -100)
    found = door.compute_metrics_for(TREE)(transformers.EvalPrediction(scores.numpy(), labels.numpy()))
    scores, target = scores[:30], target[:30]
    predicted = scores.argmax(-1)
    assert found == {
        "accuracy": metrics.accuracy(predicted, target).mean,
        "severity": metrics.mistake_severity(predicted, target, TREE).mean,
        "cost": metrics.average_distance(scores, target, TREE).mean,
        "hierarchical_f1": metrics.hierarchical_f1(predicted, target, TREE).mean,
    }
    assert set(door.compute_metrics_for()(transformers.EvalPrediction((scores.numpy(),), target.numpy()))) == {
        "accuracy"
    }
    with pytest.raises(InputError, match="one row of scores for each"):
        door.compute_metrics_for()(transformers.EvalPrediction(np.zeros((3, 4)), np.zeros(2)))


# The callback, without a Trainer


@pytest.mark.parametrize("name", ["adaptive-labels", "retrospection"])
def test_the_callback_does_what_a_loop_must(name: str):
    from labelkin.doors.transformers._trainer import ObjectiveCallback

    called, written = headed(name), headed(name)
    batches = [collated(samples()[start : start + 8]) for start in (0, 8, 16)]
    callback = ObjectiveCallback(lambda: called, lambda: batches)
    state = transformers.TrainerState(num_train_epochs=3, epoch=1.0)  # one epoch was trained before
    callback.on_train_begin(None, state, None)
    for epoch in (1, 2):
        callback.on_epoch_begin(None, state, None)
        written.objective.begin_epoch(epoch, 3)
        for model in (called, written):
            torch.manual_seed(epoch)
            model.train()
            for place, batch in enumerate(batches):
                model(**batch, index=torch.arange(8) + 8 * place)
        callback.on_epoch_end(None, state, None)
        assert called.training
        written.eval()
        with torch.no_grad():
            outputs = [(written.objective(written.features(inputs_of(batch))), batch["labels"]) for batch in batches]
        written.objective.refresh(outputs)
    torch.testing.assert_close(dict(called.named_buffers()), dict(written.named_buffers()))
    assert called.objective.label_vectors().abs().sum() > 0


# The Trainer


def arguments(folder: Path, **options: Any) -> "TrainingArguments":
    plain = {
        "num_train_epochs": 3,
        "per_device_train_batch_size": 8,
        "learning_rate": 0.02,
        "lr_scheduler_type": "constant",
        "optim": "sgd",
        "max_grad_norm": 0.0,
        "weight_decay": 0.1,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
        "seed": 0,
    }
    return transformers.TrainingArguments(str(folder), **{**plain, **options})


def trainer_for(model: nn.Module | None, folder: Path, **options: Any) -> Any:
    skip_unless(transformers.utils.is_accelerate_available(), "accelerate", "transformers")
    from labelkin.doors.transformers import KinTrainer

    class InOrder(KinTrainer):
        def _get_train_sampler(self, *args: Any) -> Any:
            return torch.utils.data.SequentialSampler(self.train_dataset)

    ours = ("objective", "pooling", "eval_dataset", "compute_metrics", "model_init")
    given = {key: options.pop(key) for key in ours if key in options}
    collator = transformers.DataCollatorWithPadding(tokenizer())
    return InOrder(model, arguments(folder, **options), train_dataset=samples(), data_collator=collator, **given)


def trained_by_hand(model: "KinModel", *, epochs: int = 3, size: int = 8, parts: int = 1) -> None:
    """SGD, written out: weight decay on all but biases, norms and what the objective spares."""
    data, spared = samples(), {f"objective.{name}" for name in model.objective.no_weight_decay()}
    free = [p for n, p in model.named_parameters() if "bias" in n or "LayerNorm" in n or n in spared]
    decayed = [p for n, p in model.named_parameters() if not ("bias" in n or "LayerNorm" in n or n in spared)]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": free, "weight_decay": 0.0}]
    optimizer = torch.optim.SGD(groups, lr=0.02)
    for epoch in range(epochs):
        model.train()
        model.objective.begin_epoch(epoch, epochs)
        for start in range(0, len(data), size * parts):
            for part in range(start, start + size * parts, size):
                batch = collated(data[part : part + size])
                (model(**batch, index=torch.arange(part, part + size)).loss / parts).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            batch = collated(data)
            model.objective.refresh([(model.objective(model.features(inputs_of(batch))), batch["labels"])])


NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.mark.long
@every_head
def test_training_gives_the_weights_of_a_plain_loop(name: str, tmp_path: Path):
    trainer = trainer_for(headed(name, **NO_DROPOUT), tmp_path)
    trainer.train()
    written = headed(name, **NO_DROPOUT)
    trained_by_hand(written)
    close(trainer.model, written)
    torch.testing.assert_close(dict(trainer.model.named_buffers()), dict(written.named_buffers()), rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_accumulated_batches_give_the_weights_of_a_plain_loop(tmp_path: Path):
    trainer = trainer_for(headed("one-hot", **NO_DROPOUT), tmp_path, gradient_accumulation_steps=3)
    trainer.train()
    written = headed("one-hot", **NO_DROPOUT)
    trained_by_hand(written, parts=3)
    close(trainer.model, written)


@pytest.mark.long
def test_texts_are_learned_and_evaluated_end_to_end(tmp_path: Path):
    trainer = trainer_for(
        encoder(),
        tmp_path,
        objective=LabelEmbedding(CLASSES, features=WIDTH),
        pooling="mean",
        eval_dataset=samples(),
        compute_metrics=door.compute_metrics_for(TREE),
        optim="adamw_torch",
        learning_rate=0.01,
        num_train_epochs=15,
    )
    before = trainer.evaluate()
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_accuracy"] > 0.9 > before["eval_accuracy"]
    assert after["eval_cost"] < before["eval_cost"]
    assert not torch.equal(trainer.objective.embedding, torch.eye(4))


@pytest.mark.long
def test_every_training_with_model_init_begins_anew(tmp_path: Path):
    trainer = trainer_for(None, tmp_path, model_init=lambda: headed("retrospection", **NO_DROPOUT))
    written = headed("retrospection", **NO_DROPOUT)
    trained_by_hand(written)
    for _ in range(2):
        trainer.train()
        close(trainer.model, written)
        buffers = dict(trainer.model.named_buffers())
        torch.testing.assert_close(buffers, dict(written.named_buffers()), rtol=1e-5, atol=1e-6)


def test_model_init_makes_a_whole_model(tmp_path: Path):
    with pytest.raises(InputError, match="model_init: expected a function that returns a KinModel, got BertModel"):
        trainer_for(None, tmp_path, model_init=lambda: encoder())
    with pytest.raises(InputError, match="objective: expected none beside model_init"):
        trainer_for(None, tmp_path, model_init=lambda: headed("one-hot"), objective=HEADS["one-hot"]())


@pytest.mark.long
def test_a_checkpoint_resumes_to_the_same_weights(tmp_path: Path):
    whole = trainer_for(headed("retrospection", **NO_DROPOUT), tmp_path / "whole")
    whole.train()
    first = trainer_for(headed("retrospection", **NO_DROPOUT), tmp_path / "parts", save_strategy="epoch")
    first.train()
    second = trainer_for(headed("retrospection", **NO_DROPOUT), tmp_path / "parts")
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-6"))
    close(second.model, whole.model)
    loaded = door.KinModel.from_pretrained(tmp_path / "parts" / "checkpoint-9", HEADS["retrospection"]())
    close(loaded, whole.model)


@pytest.mark.long
def test_the_best_checkpoint_comes_back_with_its_objective(tmp_path: Path):
    trainer = trainer_for(
        headed("label-embedding"),
        tmp_path,
        eval_dataset=samples(),
        save_strategy="epoch",
        eval_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=True,  # so that the first epoch is the best
    )
    trainer.train()
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-3")
    best = door.KinModel.from_pretrained(trainer.state.best_model_checkpoint, HEADS["label-embedding"]())
    close(trainer.model, best)


def test_arguments_that_would_go_past_the_objective_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="label_smoothing_factor: expected 0"):
        trainer_for(headed("one-hot"), tmp_path, label_smoothing_factor=0.1)
    with pytest.raises(InputError, match="gradient accumulation: expected 1 batch per step for LabelEmbedding"):
        trainer_for(headed("label-embedding"), tmp_path, gradient_accumulation_steps=2)
    with pytest.raises(InputError, match="a KinModel without objective"):
        trainer_for(encoder(), tmp_path)

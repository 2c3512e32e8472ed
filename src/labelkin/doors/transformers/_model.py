"""A Hugging Face model with an objective as its head or its criterion."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from torch import Tensor, nn

from labelkin._checks import InputError, check_choice
from labelkin._extras import require
from labelkin.models import pooled
from labelkin.objectives import Objective
from labelkin.training import load_packed, save_packed

transformers = require("transformers", extra="transformers", use="labelkin.doors.transformers")

OBJECTIVE_FILE = "objective.safetensors"
POOLINGS = ("auto", "first", "mean")


class KinModel(nn.Module):
    """A Hugging Face model with an objective, for `KinTrainer` or your own loop.

    An objective with `features=` is the head of an encoder (`AutoModel`): it gets the pooled features, and its own
    parameters, such as a label embedding, train with the encoder. An objective without is the criterion of a model that
    already has a head (`AutoModelForSequenceClassification`), and gets its logits.

    The loss is computed inside `forward`, so that data-parallel training covers the objective's parameters.

    Args:
        model: An encoder with one vector per sample, or a model with `logits`.
        objective: An objective with `features=model.config.hidden_size`, or without features for a model with logits.
        pooling: The features of an encoder: "first" for the first token, "mean" for the mean over all tokens but
            padding, or "auto" for the pooled output of the model if it has one, else the mean.

    Example:
        >>> import torch
        >>> from transformers import BertConfig, BertModel
        >>> from labelkin import LabelEmbedding
        >>> from labelkin.doors.transformers import KinModel
        >>> config = BertConfig(
        ...     vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
        ... )
        >>> model = KinModel(BertModel(config), LabelEmbedding(3, features=8))
        >>> model(input_ids=torch.tensor([[1, 2, 3]]), labels=torch.tensor([2])).loss.backward()
        >>> outputs = model.eval()(input_ids=torch.tensor([[1, 2, 3]]), labels=torch.tensor([2]))
        >>> outputs.loss.shape, outputs.logits.shape
        (torch.Size([]), torch.Size([1, 3]))
    """

    accepts_loss_kwargs = False  # the loss is a mean over the batch, which the Trainer divides by the batches of a step

    def __init__(self, model: nn.Module, objective: Objective, *, pooling: str = "auto") -> None:
        super().__init__()
        check_choice("pooling", pooling, POOLINGS)
        _check_fit(model, objective)
        self.model = model
        self.objective = objective
        self.pooling = pooling

    @property
    def config(self) -> Any:
        """The configuration of the Hugging Face model."""
        return self.model.config

    def forward(
        self,
        labels: Tensor | None = None,
        node: Tensor | None = None,
        weight: Tensor | None = None,
        index: Tensor | None = None,
        **inputs: Any,
    ) -> Any:
        """Return a `SequenceClassifierOutput`: the loss if labels are given, and the scores of the classes as `logits`.

        In training mode with labels it contains only the loss.

        Args:
            labels: (B,) class positions, -100 for samples without a class.
            node, weight, index: See `Objective.loss`.
            **inputs: Inputs of the Hugging Face model, such as `input_ids` and `attention_mask`.
        """
        features = self.features(inputs)
        if labels is None:
            return _output(None, self.objective.scores(self.objective(features)))
        if self.training:  # the outputs of many classes are never held together: see `Objective.loss_from_features`
            return _output(self.objective(features, labels, node=node, weight=weight, index=index), None)
        outputs = self.objective(features)
        loss = self.objective.loss(outputs, labels, node=node, weight=weight, index=index)
        return _output(loss, self.objective.scores(outputs))

    def features(self, inputs: Mapping[str, Any]) -> Tensor:
        """Return the pooled features (B, F) of an encoder, or the logits of a model that has a head."""
        outputs = self.model(**inputs)
        if self.objective.features is None:
            logits: Tensor = outputs.logits
            return logits
        if self.pooling == "first":
            first: Tensor = outputs.last_hidden_state[:, 0]
            return first
        if self.pooling == "mean":
            outputs = transformers.modeling_outputs.BaseModelOutput(last_hidden_state=outputs.last_hidden_state)
        return pooled(outputs, inputs.get("attention_mask"))

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """Turn on gradient checkpointing in the Hugging Face model; a `Trainer` calls this if its arguments ask for it."""
        self.model.gradient_checkpointing_enable(**options)  # type: ignore[operator]

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """The name of `gradient_checkpointing_enable` from version 5 of transformers."""
        self.model.activation_checkpointing_enable(**options)  # type: ignore[operator]

    def save_pretrained(self, folder: str | os.PathLike[str], **options: Any) -> None:
        """Save the model as `from_pretrained` of transformers reads it, and the objective beside it in safetensors.

        With several processes, call `objective.synchronize()` on all of them first.

        Args:
            folder: The folder.
            **options: Further arguments of the model's own `save_pretrained`.
        """
        self.model.save_pretrained(folder, **options)  # type: ignore[operator]
        self.save_objective(folder)

    def save_objective(self, folder: str | os.PathLike[str]) -> None:
        """Save the objective's parameters and state to `objective.safetensors` in the folder."""
        state = {"pooling": self.pooling, "objective": self.objective.state_dict()}
        save_packed(Path(folder) / OBJECTIVE_FILE, state)

    def load_objective(self, folder: str | os.PathLike[str]) -> None:
        """Load what `save_objective` wrote; raises `InputError` if it is from another objective, tree or pooling."""
        saved = load_packed(Path(folder) / OBJECTIVE_FILE)
        if saved["pooling"] != self.pooling:
            raise InputError(f"pooling: expected {saved['pooling']!r}, as in the saved model, got {self.pooling!r}.")
        self.objective.load_state_dict(saved["objective"])

    @classmethod
    def from_pretrained(
        cls, folder: str | os.PathLike[str], objective: Objective, *, pooling: str = "auto", **options: Any
    ) -> Self:
        """Load a model that `save_pretrained` saved.

        Args:
            folder: The folder.
            objective: An objective built with the same arguments as the saved one; its state is replaced by the saved state.
            pooling: The pooling of the saved model.
            **options: Further arguments of `from_pretrained` of transformers.

        Returns:
            The model, in evaluation mode.
        """
        config = transformers.AutoConfig.from_pretrained(folder)
        (name,) = config.architectures
        model = cls(getattr(transformers, name).from_pretrained(folder, **options), objective, pooling=pooling)
        model.load_objective(folder)
        return model.eval()


def _output(loss: Tensor | None, scores: Tensor | None) -> Any:
    return transformers.modeling_outputs.SequenceClassifierOutput(loss=loss, logits=scores)


def _check_order(classes: int | tuple[str, ...], names: Mapping[int, str]) -> None:
    """Refuse classes in another order than that of the labels, which the model's configuration states."""
    own = [name for _, name in sorted(names.items())]
    if isinstance(classes, int) or list(classes) == own or sorted(classes) != sorted(own):
        return
    place = next(k for k, (ours, theirs) in enumerate(zip(classes, own, strict=True)) if ours != theirs)
    raise InputError(
        f"classes: label {place} is {own[place]!r} in the model's config.id2label, and {classes[place]!r} in the objective; "
        "build the objective with classes=list(model.config.id2label.values())."
    )


def _check_fit(model: nn.Module, objective: Objective) -> None:
    """Refuse an objective whose width is not that of the model."""
    config = getattr(model, "config", None)
    if config is None:
        raise InputError(f"model: expected a Hugging Face model with a config, got {type(model).__name__}.")
    _check_order(objective.classes, getattr(config, "id2label", None) or {})
    if objective.features is None and objective.outputs_type is not None:
        raise InputError(
            f"objective: {type(objective).__name__} needs two heads, and the model has one; give it "
            "features=model.config.hidden_size and an encoder (AutoModel)."
        )
    named, given = (
        ("num_labels", objective.width) if objective.features is None else ("hidden_size", objective.features)
    )
    wanted = getattr(config, named, given)
    if wanted == given:
        return
    if objective.features is not None:
        raise InputError(f"features: expected {wanted}, the model's {named}, got {given}.")
    if objective.width != objective.num_classes:
        raise InputError(
            f"objective: {type(objective).__name__} takes {given} outputs for {objective.num_classes} classes, and the model "
            f"has {wanted}; give it features=model.config.hidden_size and an encoder (AutoModel)."
        )
    raise InputError(f"classes: expected {wanted}, the model's {named}, got {given}.")

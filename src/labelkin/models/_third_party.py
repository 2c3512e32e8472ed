"""Encoders of other libraries as backbones: `timm:NAME`, `timm-scratch:NAME` and `hf:NAME` (transformers), each optional."""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from labelkin._checks import LIBRARY_ERRORS, InputError, near
from labelkin._extras import MissingExtra, loading_errors, require
from labelkin.models._blocks import Backbone, Shape, checked_shape, image_shape

T = TypeVar("T")
AT_ONCE = 64  # texts that are passed to a network at once


def timm_backbone(
    name: str,
    input_shape: Shape,
    *,
    pretrained: bool = True,
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> Backbone:
    """Build a timm model without its classifier.

    Args:
        name: Name of the timm model; `hf-hub:USER/MODEL`; or a folder that timm's `save_for_hf` wrote.
        input_shape: `(channels, height, width)`.
        pretrained: Whether to load pretrained weights.
        config: The architecture and its arguments, as `timm_config` returns them, instead of the files under that name.
        **options: Further arguments of `timm.create_model`, such as `img_size=32` for a ViT.

    Returns:
        The backbone.
    """
    timm = import_timm(name)
    channels, _, _ = image_shape(input_shape, least=1)
    if config is None:
        source = timm_source(name)
    else:
        source, options = config["architecture"], {**config["arguments"], **options}
    if pretrained and source.startswith("local-dir:"):
        _check_safe(Path(source.removeprefix("local-dir:")))
    own = {"num_classes": 0, "in_chans": channels, **options}
    encoder = _load(lambda: timm.create_model(source, pretrained=pretrained, **own))
    return _as_backbone(encoder, torch.zeros(1, *input_shape))


def timm_untrained(name: str, input_shape: Shape, **options: Any) -> Backbone:
    """Build a timm model of timm's own list without its classifier, with random weights.

    Args:
        name: Name of the timm model.
        input_shape: `(channels, height, width)`.
        **options: Further arguments of `timm.create_model`.

    Returns:
        The backbone.
    """
    if timm_source(name) != name or ":" in name:
        raise InputError(
            f"expected the name of a model in timm's own list, because weights are not loaded; got {name!r}."
        )
    return timm_backbone(name, input_shape, pretrained=False, **options)


def timm_source(name: str) -> str:
    """Return the name that timm has for a model of its list, of the hub or in a folder; refuse others."""
    timm = import_timm(name)
    if name.startswith(("hf-hub:", "local-dir:")):
        return name
    if Path(name).expanduser().is_dir():
        return f"local-dir:{Path(name).expanduser()}"
    if not timm.is_model(name):
        hint = near(name, timm.list_models()) or " A folder or hf-hub:USER/MODEL works as well."
        raise InputError(f"timm has no model {name!r}.{hint}")
    return name


def _check_safe(folder: Path) -> None:
    """Refuse a folder whose weights are pickled, because a pickle can run code; timm prefers this file if there are several."""
    if not (folder / "model.safetensors").is_file():
        raise InputError(
            f"{folder}: expected the weights as model.safetensors, and there is no such file; save the model again with "
            "timm.models.save_for_hf, which writes it."
        )


class TimmFiles(NamedTuple):
    """What is published with the weights of a timm model: preprocessing, architecture and its arguments."""

    pretrained_cfg: Mapping[str, Any]
    architecture: str
    arguments: Mapping[str, Any]


def timm_files(name: str) -> TimmFiles | None:
    """Read the config.json of a timm model of the hub or in a folder; None for a model of timm's own list."""
    library, colon, place = timm_source(name).partition(":")
    if not colon:
        return None
    if library == "hf-hub":
        return TimmFiles(*_load(lambda: import_timm(name).models.load_model_config_from_hf(place)))

    def read() -> TimmFiles:
        found = json.loads(Path(place, "config.json").read_text(encoding="utf-8"))
        return TimmFiles(found["pretrained_cfg"], found["architecture"], found.get("model_args", {}))

    return _load(read)


def timm_config(name: str) -> dict[str, Any] | None:
    """Return the architecture of a timm model and its arguments as JSON values; None if the name determines them."""
    files = timm_files(name)
    if files is None:
        return None
    arguments = {key: value for key, value in files.arguments.items() if key not in ("num_classes", "in_chans")}
    return {"architecture": files.architecture, "arguments": arguments}


def import_timm(name: str) -> ModuleType:
    """Import timm; the error if it cannot be imported names the model that needs it."""
    try:
        return import_module("timm")
    except (ImportError, RuntimeError) as error:  # torchvision raises RuntimeError if it was built for another torch
        raise MissingExtra(
            f"the backbone timm:{name} needs timm, which cannot be imported ({_first_line(error)}): pip install timm, "
            "with the torchvision version that matches your torch"
        ) from error


def hf_backbone(
    name: str, input_shape: Shape, *, pretrained: bool = True, config: Mapping[str, Any] | None = None
) -> Backbone:
    """Build a transformers image or text encoder with its pooled output.

    An image encoder takes images `(B, channels, height, width)`. A text encoder takes token ids `(B, length)`, padded with its
    own padding id, which it does not attend to. Features are the encoder's pooled output, or the mean over its tokens
    (without padding) if it has none.

    Args:
        name: A model of the hub or a local folder.
        input_shape: `(channels, height, width)` for images, `(length,)` for texts.
        pretrained: Whether to load the weights; if not, they are drawn from the configuration.
        config: The configuration, as `hf_config` returns it, instead of the one under that name.

    Returns:
        The backbone.
    """
    transformers = require("transformers", extra="text", use=f"the backbone hf:{name}")
    shape = checked_shape(input_shape)

    def load() -> nn.Module:
        if pretrained:
            model: nn.Module = transformers.AutoModel.from_pretrained(name)
        elif config is not None:
            model = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(**config))
        else:
            model = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(name))
        return model

    model = _load(load)
    if model.main_input_name == "pixel_values":
        return _as_backbone(ImageEncoder(model), torch.zeros(1, *image_shape(shape, least=1)))
    if model.main_input_name != "input_ids":
        raise InputError(f"the model takes {model.main_input_name!r}; expected an encoder of images or of text.")
    if len(shape) != 1:
        raise InputError(f"input_shape: a text encoder expects (length,), the number of token ids, got {shape}.")
    return _as_backbone(TextEncoder(model), torch.ones(1, *shape, dtype=torch.long))


def hf_config(name: str) -> dict[str, Any]:
    """Return the configuration of a transformers model as JSON values."""
    transformers = require("transformers", extra="text", use=f"the backbone hf:{name}")
    try:
        config = _load(lambda: transformers.AutoConfig.from_pretrained(name))
    except InputError as error:
        raise InputError(f"backbone 'hf:{name}': {error}") from error
    found: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return found


class ImageEncoder(nn.Module):
    """Map images to the pooled output of a transformers model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return pooled(self.model(pixel_values=x))


class TextEncoder(nn.Module):
    """Map token ids, as whole numbers of any type, to the pooled output of a transformers model.

    Outside of training, long batches are passed in parts, so that they need little memory.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.padding: int | None = getattr(model.config, "pad_token_id", None)

    def forward(self, ids: Tensor) -> Tensor:
        ids = ids.long()
        if not self.training and not torch.compiler.is_compiling() and len(ids) > AT_ONCE:
            return torch.cat([self._features(part) for part in torch.split(ids, AT_ONCE)])
        return self._features(ids)

    def _features(self, ids: Tensor) -> Tensor:
        mask = torch.ones_like(ids) if self.padding is None else (ids != self.padding).long()
        return pooled(self.model(input_ids=ids, attention_mask=mask), mask)


def pooled(outputs: Any, mask: Tensor | None = None) -> Tensor:
    """Return features (B, F) from the outputs of a transformers encoder of images or texts.

    Args:
        outputs: The outputs of the encoder. Its pooled output is used if it has one, else the mean over its tokens.
        mask: (B, length) 1 for tokens and 0 for padding, which the mean leaves out.

    Returns:
        The features.
    """
    found: Tensor | None = getattr(outputs, "pooler_output", None)
    if found is not None:
        return found.flatten(1)
    hidden: Tensor = outputs.last_hidden_state  # (B, tokens, F) or (B, F, height, width)
    if hidden.ndim == 4:
        return hidden.mean((2, 3))
    if mask is None:
        return hidden.mean(1)
    kept = mask.to(hidden.dtype).unsqueeze(-1)
    return (hidden * kept).sum(1) / kept.sum(1).clamp_min(1)


def _load(load: Callable[[], T]) -> T:
    try:
        return load()
    except ImportError:
        raise  # the message names the missing package
    except loading_errors() as error:
        raise InputError(
            f"the model could not be loaded ({_first_line(error)}); check the name and that its weights can be "
            "downloaded, or name the folder of a downloaded model; in Python, pretrained=False uses random weights."
        ) from error


def _as_backbone(encoder: nn.Module, example: Tensor) -> Backbone:
    """Wrap an encoder as a backbone; an example determines the number of features."""
    encoder.eval()
    try:
        with torch.no_grad():
            features = encoder(example)
    except LIBRARY_ERRORS as error:  # a wrong size raises different errors in different networks
        shape = tuple(example.shape[1:])
        raise InputError(f"input_shape: the model cannot take {shape} ({_first_line(error)}).") from error
    if features.ndim != 2:
        raise InputError(
            f"the model gives features of shape {tuple(features.shape[1:])}; expected one vector per sample."
        )
    return Backbone(features=features.shape[1], encoder=encoder).train()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__

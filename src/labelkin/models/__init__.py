"""Backbones: the networks of the papers, small ones, and encoders of timm and transformers.

A backbone is a module that maps inputs `(B, *input_shape)` to features `(B, F)` and stores F as `features`. The classifier
belongs to the objective. Weights are drawn from torch's global generator, so `torch.manual_seed` determines them.
"""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.models._blocks import Backbone as Backbone
    from labelkin.models._describe import BackboneSummary as BackboneSummary
    from labelkin.models._describe import describe_backbones as describe_backbones
    from labelkin.models._preprocessing import Prepare as Prepare
    from labelkin.models._preprocessing import Preprocessing as Preprocessing
    from labelkin.models._registry import BACKBONES as BACKBONES
    from labelkin.models._registry import LIBRARIES as LIBRARIES
    from labelkin.models._registry import PRETRAINED as PRETRAINED
    from labelkin.models._registry import build as build
    from labelkin.models._registry import default as default
    from labelkin.models._registry import is_pretrained as is_pretrained
    from labelkin.models._registry import network_config as network_config
    from labelkin.models._registry import preprocessing as preprocessing
    from labelkin.models._registry import split_residual as split_residual
    from labelkin.models._registry import text_model as text_model
    from labelkin.models._residual_head import ResidualHead as ResidualHead
    from labelkin.models._third_party import pooled as pooled

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_blocks": ["Backbone"],
        "_describe": ["BackboneSummary", "describe_backbones"],
        "_preprocessing": ["Preprocessing"],
        "_registry": ["BACKBONES", "LIBRARIES", "PRETRAINED", "build", "default", "is_pretrained", "preprocessing"],
        "_residual_head": ["ResidualHead"],
    },
    internal={
        "_preprocessing": ["Prepare"],
        "_registry": ["network_config", "split_residual", "text_model"],
        "_third_party": ["pooled"],
    },
)

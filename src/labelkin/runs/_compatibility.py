"""Tables that keep run folders of earlier versions readable and their ids unchanged, without torch.

- To rename an option of an objective, add the old and the new name to `RENAMED_OPTIONS`. Run folders and plans with the old
  name are translated when they are read. Ids are computed with the old name, so they never change.
- To add a training setting, add its name to `ADDED_SETTINGS`, with the value that reproduces earlier runs. A run
  that does not record the setting is read with this value, and ids leave the setting out if it has this value. New runs may
  have another default.
- To change the default rule of an objective, raise its revision, name the rules with an option, and add the former default to
  `FORMER_DEFAULTS`. Runs of the earlier revision are read with that default, and ids leave it out, so they never change.
"""

from collections.abc import Mapping
from typing import Any

from labelkin._checks import InputError

# Data options in which the runs of one comparison may differ. Earlier versions allowed only the fold.
NOT_OF_THE_TEST_SET = ("fold", "partial")

# (objective, old name) -> new name
RENAMED_OPTIONS: dict[tuple[str, str], str] = {
    ("label-embedding", "weights"): "preset",
    ("compressed-label-embedding", "weights"): "preset",
}
# Training settings that were added after the first ids were published, with the values of runs that do not record them.
ADDED_SETTINGS: dict[str, Any] = {
    "calibration": 0.0,  # earlier runs held out nothing
    "preprocessing": "data",  # earlier runs normalized all images by the data
    "freeze": False,
    "backbone_lr": 1.0,
    "unfreeze_after": 0,
    "ema": 0.0,
    "patience": None,
    "dropout": 0.0,
    "sampler": "random",
    "class_weight": None,
    "logit_adjustment": 0.0,
    "costs": None,
}
# (objective, revision) -> options that state the defaults of that revision
FORMER_DEFAULTS: dict[tuple[str, int], dict[str, Any]] = {
    ("adaptive-labels", 1): {"preset": "paper", "eval_labels": "epoch"},
    ("adaptive-labels", 2): {"preset": "memory"},
    ("kin", 1): {"learning": "gradient"},
}
# objective -> options that ids leave out, because runs had them before they were options
UNSTATED_OPTIONS: dict[str, dict[str, Any]] = {
    "adaptive-labels": FORMER_DEFAULTS["adaptive-labels", 2],
    "kin": FORMER_DEFAULTS["kin", 1],
}


def current_options(objective: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return an objective's options under their current names; refuse an option given under both."""
    for (owner, old), new in RENAMED_OPTIONS.items():
        if owner == objective and old in options and new in options:
            raise InputError(
                f"{old}: this is the former name of {new!r}, and {objective!r} got both; give only {new!r}."
            )
    return {RENAMED_OPTIONS.get((objective, name), name): value for name, value in options.items()}


def original_options(objective: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return an objective's options as they enter its id: under their original names, without `UNSTATED_OPTIONS`."""
    old = {new: name for (owner, name), new in RENAMED_OPTIONS.items() if owner == objective}
    unstated = UNSTATED_OPTIONS.get(objective, {})
    stated = {name: value for name, value in options.items() if name not in unstated or value != unstated[name]}
    return {old.get(name, name): value for name, value in stated.items()}


def complete_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training settings of a run of any version, with the values of settings that were added after it."""
    return {**settings, **ADDED_SETTINGS, **settings}  # the run's own settings come first


def settings_that_count(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training settings that enter an id: all but those in `ADDED_SETTINGS` that have the value of earlier runs."""
    return {
        name: value for name, value in settings.items() if name not in ADDED_SETTINGS or value != ADDED_SETTINGS[name]
    }

"""Augmentations by name, as settings state them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from labelkin._checks import InputError, near
from labelkin.data import AUGMENTATIONS, MIXINGS, PRESETS, Augmentation, Mixing


class Chosen(NamedTuple):
    """The augmentations of images, in order, and the mixture of samples, if any."""

    steps: list[Augmentation]
    mix: Mixing | None


def augmentations(names: Sequence[str]) -> Chosen:
    """Return the augmentations that names stand for.

    Args:
        names: Names with a number where they take one, such as "flip", "pad-crop:4", "mixup:0.2", or "imagenet" for several.
    """
    single = [part for name in names for part in PRESETS.get(name, (name,))]
    mixing = [name for name in single if is_mixing(name)]
    if len(mixing) > 1:
        raise InputError(f"augment: expected one of mixup and cutmix, got {', '.join(mixing)}; leave one of them out.")
    steps = [augmentation(name) for name in single if name not in mixing]
    return Chosen(steps, augmentation(mixing[0]) if mixing else None)


def is_mixing(name: str) -> bool:
    """Return whether a name stands for a mixture of samples, whose targets are class probabilities."""
    return name.partition(":")[0] in MIXINGS


def augmentation(text: str) -> Any:
    """Return an augmentation by name, with a number where it takes one: "flip", "pad-crop:4", "rotation:15"."""
    name, _, argument = text.partition(":")
    known: dict[str, Any] = {**AUGMENTATIONS, **MIXINGS}
    if name not in known:
        names = [*known, *PRESETS]
        raise InputError(f"augment: expected names from {', '.join(names)}, got {name!r}.{near(name, names)}")
    if not argument:
        return known[name]()
    try:
        number = float(argument)
        return known[name](int(number) if number.is_integer() else number)
    except InputError:
        raise
    except ValueError:
        raise InputError(f"augment: expected a number after {name}:, got {argument!r}.") from None
    except TypeError:
        raise InputError(f"augment: {name} takes no number, got {argument!r}.") from None

"""The options of a decision rule: the choice of the rule, and checks of options that contradict it or each other."""

from typing import Literal, get_args

from labelkin._checks import InputError, check_choice, check_number, counted
from labelkin.decide._guarantee import check_confidence, least_samples

RuleName = Literal["argmax", "crm", "fallback"]
RULES: tuple[RuleName, ...] = get_args(RuleName)


def choose_rule(
    chosen: str | None,
    *,
    default: RuleName,
    coverage: float | None,
    threshold: float | None,
    confidence: float | None = None,
    argument: str = "decide",
) -> RuleName:
    """Return the rule, and refuse options that contradict it or each other.

    Args:
        chosen: The name of the rule, if one was given.
        default: The rule if none was given and neither a coverage nor a threshold asks for "fallback".
        coverage: The coverage of "fallback", if it was given.
        threshold: The threshold of "fallback", if it was given.
        confidence: The confidence of the coverage, if it was given.
        argument: The name of the argument `chosen` in error messages.
    """
    given = "coverage" if coverage is not None else "threshold" if threshold is not None else None
    rule = chosen if chosen is not None else default if given is None else "fallback"
    check_choice(argument, rule, RULES)
    if rule != "fallback" and given is not None:
        raise InputError(
            f"{given}: applies to the rule 'fallback', got {rule!r}; leave it out, or choose 'fallback' "
            f"(--{argument} fallback)."
        )
    if coverage is not None and threshold is not None:
        raise InputError("coverage: expected either a coverage or a threshold, got both; leave one of them out.")
    if coverage is not None:
        check_coverage(coverage)
    elif confidence is not None:
        raise InputError(
            "confidence: it is that of a coverage, which is missing; add one, such as 0.95 (--coverage 0.95)."
        )
    check_confidence(confidence)
    if threshold is not None:
        check_number("threshold", threshold, low=0, high=1)
    return next(name for name in RULES if name == rule)


def check_coverage(coverage: float) -> None:
    """Refuse a coverage that is not between 0 and 1."""
    check_number("coverage", coverage, low=0, high=1, open_low=True)
    if coverage == 1:
        raise InputError("coverage: only the root is always right; expected a number below 1, such as 0.95, got 1.")


def check_enough(samples: int, coverage: float, confidence: float | None) -> None:
    least = least_samples(1 - coverage, confidence)
    if samples < least:
        sure = "" if confidence is None else f" with a confidence of {confidence:g}"
        raise InputError(
            f"coverage: {coverage:g}{sure} needs at least {counted(least, 'calibration sample')} besides those for the "
            f"temperature, got {samples:,}; use more samples or a smaller coverage."
        )

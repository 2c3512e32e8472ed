"""The decision rule for a file of scores: its choice, its calibration on labeled samples, and its check on new ones."""

import warnings
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin import decide
from labelkin._checks import InputError
from labelkin.audit._predictions import Predictions
from labelkin.decide import GuaranteeKind, Rule, RuleName

MOST_COMPARED, MOST_NUMBERS = 2000, 2**21  # of the sample that is compared with the calibration samples


class Ready(NamedTuple):
    """A decision rule that is ready for a file.

    Attributes:
        rule: The rule, with its temperature.
        classes: The class names.
        calibration: (m, K) probabilities of the samples that the guarantee or the temperature was fitted on.
    """

    rule: Rule
    classes: tuple[str, ...]
    calibration: Tensor | None = None

    def fitted(
        self,
        labeled: Predictions,
        *,
        temperature: float | None,
        coverage: float | None,
        confidence: float | None,
        by: GuaranteeKind,
        shares: Tensor | None,
        seed: int,
    ) -> "Ready":
        """Return the rule with temperature and guarantee from labeled samples; see `decide.Rule.fitted`."""
        is_logits, logits = labeled.kind == "logits", labeled.logits
        given = logits if is_logits else labeled.probs
        assert logits is not None
        assert given is not None
        scores: Tensor = given
        rule, probs = self.rule.fitted(
            logits,
            labeled.target,
            coverage=coverage,
            confidence=confidence,
            temperature=temperature,
            by=by,
            shares=shares,
            seed=seed,
            scaled=lambda value: scaled_scores(scores, is_logits=is_logits, temperature=value),
        )
        return self._replace(rule=rule, calibration=probs)


def scaled_scores(scores: Tensor, *, is_logits: bool, temperature: float) -> Tensor:
    """Return (n, K) probabilities at a temperature; a probability of 0 stays 0, so rows do not depend on each other."""
    if not is_logits and temperature == 1:
        return scores
    return ((scores if is_logits else scores.log()) / temperature).softmax(-1)


def warn_of_shift(ready: Ready, sample: Tensor) -> bool:
    """Warn if a sample of the new probabilities differs from the calibration samples; return whether it does."""
    least = 10
    if ready.calibration is None or min(len(sample), len(ready.calibration)) < least:
        return False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        found = decide.check_shift(ready.calibration, sample, classes=ready.classes)
    for warning in caught:
        warnings.warn(str(warning.message), stacklevel=3)
    return found.shifted


def choose_rule(
    chosen: str | None,
    *,
    tree: bool,
    costs: bool,
    coverage: float | None,
    confidence: float | None,
    threshold: float | None,
    labeled: bool,
    shares: bool,
    by: GuaranteeKind,
) -> RuleName:
    """Return the rule, and refuse options that contradict it or each other."""
    rule = decide.choose_rule(
        chosen, default="crm", coverage=coverage, threshold=threshold, confidence=confidence, argument="rule"
    )
    if rule == "fallback" and not tree:
        raise InputError("taxonomy: the rule 'fallback' answers with nodes of a tree; pass --taxonomy.")
    if rule == "fallback" and coverage is None and threshold is None:
        raise InputError(
            "coverage: the rule 'fallback' needs either a coverage, such as --coverage 0.95 with --labeled FILE, or a "
            "--threshold."
        )
    if coverage is not None and not labeled:
        raise InputError(
            "labeled: a coverage needs samples with true classes that the model was not trained on; pass --labeled FILE."
        )
    if shares and not labeled:
        raise InputError(
            "labeled: class shares need samples with the former shares and true classes, that the model was not trained on; "
            "pass --labeled FILE."
        )
    if coverage is None and by != "all":
        raise InputError("by: it is that of a coverage, which is missing; add one, such as 0.95 (--coverage 0.95).")
    if rule == "crm" and not (tree or costs):
        raise InputError("taxonomy: the rule 'crm' needs costs; pass --taxonomy or --costs, or --rule argmax.")
    return rule


class Sample:
    """A random sample of fixed size of the rows of a stream; it does not depend on the size of the chunks."""

    def __init__(self, width: int, seed: int) -> None:
        self.size = max(100, min(MOST_COMPARED, MOST_NUMBERS // width))
        self.values = torch.empty(0, width, dtype=torch.float64)
        self._keys = np.empty(0)
        self._random = np.random.default_rng(seed)

    def add(self, rows: Tensor) -> None:
        """Add rows; only those with the smallest random keys stay in the sample."""
        keys = np.concatenate([self._keys, self._random.random(len(rows))])
        kept = np.sort(np.argsort(keys, kind="stable")[: self.size])
        self._keys, self.values = keys[kept], torch.cat([self.values, rows])[torch.from_numpy(kept)]

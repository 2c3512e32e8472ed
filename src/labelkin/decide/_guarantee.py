"""Fallback with a guarantee: right, or no answer, with a chosen probability (conformal prediction).

Hierarchical selective classification (Goren et al., 2024) with split conformal thresholds (Vovk et al., 2005), which are
training-conditional if there is a confidence (Vovk, Conditional validity of inductive conformal predictors, 2012). Temperature
and threshold come from two disjoint halves of the held-out samples.
"""

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_number, counted, listed
from labelkin.decide._class_shares import checked_shares
from labelkin.decide._fallback import deepest, ways_down
from labelkin.decide._validation import check_node_probs, check_target
from labelkin.structure import Taxonomy

GuaranteeKind = Literal["all", "predicted", "true"]
KINDS: tuple[GuaranteeKind, ...] = ("all", "predicted", "true")
ROUNDING = 1e-12  # of sums of weights
TOO_FEW = "belong to classes that are frequent in the new shares"


@dataclass
class GuaranteedFallback:
    """Answer as `fallback`, at a threshold that makes answers right with probability 1 - alpha or more.

    An answer is right if it is the true class or a node above it; the root is always right, and means "no answer". `fit` takes
    from each calibration sample the smallest threshold from which on all its answers are right. Of these n numbers it uses the
    one of rank `ceil((n + 1) (1 - alpha))`. Answers of `fallback` are nested, so a higher threshold cannot make a right answer
    wrong, and a new sample is right with probability 1 - alpha or more, whatever the model and however bad its calibration.

    The probability is over the calibration samples and the new sample together. They must be exchangeable: from one source, and
    not used to train the model or to fit its temperature (see `split_halves`). A single calibration set may give a little less
    or more: if the numbers of all samples differ, the share of right answers after a fit follows a Beta distribution with the
    parameters `rank` and `n + 1 - rank`, and is below 1 - alpha in almost half of all fits. `check_shift` looks for new data
    that differ from the calibration samples.

    With a `confidence`, the rank is the smallest one for which this Beta distribution lies above 1 - alpha with at least that
    probability, and not below the rank without it. So with this confidence, the share of right answers after this fit is
    1 - alpha or more. Fewer samples are answered in return.

    `by` chooses the samples that the guarantee holds for. The top-level subtrees are the children of the root, or of the first
    node below it that has more than one child.

    - `"all"`: all samples together.
    - `"predicted"`: the samples for which the walk of `fallback` enters a top-level subtree, with one threshold each.
      This depends on the input alone, so it is known for a new sample. A subtree with too few samples is never answered.
    - `"true"`: the samples that belong to each top-level subtree. Nobody knows the subtree of a new sample, so the largest
      threshold of all subtrees is used for every sample. It holds under any change of the shares of the subtrees.

    A confidence holds for each subtree by itself, not for all of them at once.

    With `share_ratios`, `fit` weights each calibration sample by the ratio of its class, and a new one by the largest ratio
    (with `"true"`, by that of its subtree): weighted conformal prediction for label shift, Podkopaev and Ramdas, 2021. The
    guarantee then holds for samples whose classes occur in the new shares, if the ratios are right and the samples of each
    class are as before.

    Args:
        alpha: The largest probability of a wrong answer, between 0 and 1.
        by: `"all"`, `"predicted"` or `"true"`.
        thresholds: The thresholds that `fit` finds, by the name of the node below which they apply: the root, or each top-level
            subtree. A node is answered if its probability is at least the threshold; infinity stands for "no answer".
        confidence: The least probability that the calibration samples give a share of right answers of 1 - alpha or more, such
            as 0.9. None promises this share on average over calibration sets.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> probs, target = torch.tensor([[0.6, 0.3, 0.1]]).repeat(10, 1), torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1, 1])
        >>> safe = decide.GuaranteedFallback(alpha=0.2).fit(decide.node_probs(probs, tree), target, tree)
        >>> [tree.names[node] for node in safe.apply(decide.node_probs(probs[:1], tree), tree)]
        ['animal']
    """

    alpha: float
    by: GuaranteeKind = "all"
    thresholds: dict[str, float] | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, low=0, high=1)
        check_choice("by", self.by, KINDS)
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha: expected a number between 0 and 1, such as 0.05, got {self.alpha!r}.")
        check_confidence(self.confidence)

    def fit(
        self, node_probs: Tensor, target: Tensor, taxonomy: Taxonomy, *, share_ratios: Tensor | None = None
    ) -> Self:
        """Find the thresholds on calibration samples.

        Args:
            node_probs: (n, N) probabilities of the nodes, as returned by `decide.node_probs`.
            target: (n,) true class positions.
            taxonomy: The tree.
            share_ratios: (K,) the share of each class in new samples, divided by its share in the calibration samples. None if
                they have the same shares.

        Returns:
            The object itself.
        """
        check_node_probs("node_probs", node_probs, taxonomy)
        check_target("target", target, len(node_probs), len(taxonomy.leaves))
        nodes, probs = ways_down(node_probs.detach().double(), taxonomy)
        scores = wrong_up_to(nodes, probs, target, taxonomy)
        ratios = None if share_ratios is None else self._checked(share_ratios, len(taxonomy.leaves))
        if self.by == "all":
            _check_enough(len(scores), self.alpha, self.confidence)
            found = self._threshold(scores, target, ratios)
            if math.isnan(found):
                raise InputError(
                    f"share_ratios: too few calibration samples {TOO_FEW}; use more samples, or a larger alpha."
                )
            self.thresholds = {taxonomy.names[0]: found}
            return self
        fork = first_fork(taxonomy)
        below = int(taxonomy.depth[fork]) + 1
        predicted = self.by == "predicted"
        subtree = nodes[:, below].cpu().numpy() if predicted else taxonomy.level(below)[target.cpu().numpy()]
        samples_of = {top: torch.from_numpy(subtree == top).to(scores.device) for top in taxonomy.children[fork]}
        by_name = {}
        for top, samples in samples_of.items():
            classes = None if predicted else torch.from_numpy(taxonomy.level(below) == top)
            by_name[taxonomy.names[top]] = self._threshold(scores[samples], target[samples], ratios, classes)
        self.thresholds = self._merged(by_name, taxonomy, weighted=ratios is not None)
        return self

    def apply(self, node_probs: Tensor, taxonomy: Taxonomy) -> Tensor:
        """Return the answers.

        Args:
            node_probs: (n, N) probabilities of the nodes, as returned by `decide.node_probs`.
            taxonomy: The tree that `fit` was called with.

        Returns:
            (n,) indices of nodes; 0, the root, means "no answer".
        """
        if self.thresholds is None:
            raise InputError(
                "GuaranteedFallback: it has no thresholds yet; call fit(node_probs, target, taxonomy) on held-out data first."
            )
        check_node_probs("node_probs", node_probs, taxonomy)
        nodes, probs = ways_down(node_probs.detach().double(), taxonomy)
        least = self.least(taxonomy).to(probs.device)
        return deepest(nodes, probs, least[nodes[:, self.step(taxonomy)]].unsqueeze(-1))

    def least(self, taxonomy: Taxonomy) -> Tensor:
        """Return the thresholds (N,) that apply below each node, in float64; infinity for nodes without one.

        Args:
            taxonomy: The tree that `fit` was called with.
        """
        least = torch.full((len(taxonomy),), math.inf, dtype=torch.float64)
        for name, threshold in (self.thresholds or {}).items():
            least[taxonomy.node(name)] = threshold
        return least

    def step(self, taxonomy: Taxonomy) -> int:
        """Return the step of the walk of `fallback` whose node selects the threshold.

        Args:
            taxonomy: The tree that `fit` was called with.
        """
        return int(taxonomy.depth[first_fork(taxonomy)]) + 1 if self.by == "predicted" else 0

    def _checked(self, share_ratios: Tensor, classes: int) -> Tensor:
        if self.confidence is not None:
            raise InputError(
                "confidence: it is known only where new samples have the same class shares; leave one of them out."
            )
        return checked_shares("share_ratios", share_ratios, classes)

    def _threshold(self, scores: Tensor, target: Tensor, ratios: Tensor | None, classes: Tensor | None = None) -> float:
        """Return the threshold for samples like these, whose classes are among `classes` (K,); NaN if there are too few."""
        if ratios is None:
            return threshold_of(scores, self.alpha, self.confidence)
        most = float((ratios if classes is None else ratios[classes]).max())
        return weighted_threshold(scores.cpu(), ratios[target.cpu().long()], most, self.alpha)

    def _merged(self, found: dict[str, float], taxonomy: Taxonomy, *, weighted: bool) -> dict[str, float]:
        """Return the thresholds to apply, and report the subtrees that have too few samples."""
        few = [name for name, threshold in found.items() if math.isnan(threshold)]
        least = counted(least_samples(self.alpha, self.confidence), "calibration sample")
        lack = f"fewer than the {least} that {_promise(self.alpha, self.confidence)} needs"
        problem = f"{listed(few)} {'has' if len(few) == 1 else 'have'} {lack}"
        if weighted:
            problem = f"too few calibration samples of {listed(few)} {TOO_FEW}"
        if few and (self.by == "true" or len(few) == len(found)):
            raise InputError(
                f'node_probs: {problem}, so no sample could be answered; use more samples, a larger alpha or by="all".'
            )
        if few:
            warnings.warn(f"GuaranteedFallback: {problem}; no answer will lie there.", stacklevel=3)
        if self.by == "true":
            return {taxonomy.names[0]: max(found.values())}
        return {name: math.inf if math.isnan(threshold) else threshold for name, threshold in found.items()}


def wrong_up_to(nodes: Tensor, probs: Tensor, target: Tensor, taxonomy: Taxonomy) -> Tensor:
    """Return the largest threshold (n,) at which the answer of each sample is wrong; -1 if it is right at all of them.

    Args:
        nodes: (n, L) the walks of `fallback`; see `ways_down`.
        probs: (n, L) the probabilities of their nodes.
        target: (n,) true class positions.
        taxonomy: The tree.
    """
    walk = nodes.cpu().numpy()
    true = taxonomy.leaves[target.cpu().numpy()][:, None]
    right = (walk < 0) | (np.asarray(taxonomy.lca(np.maximum(walk, 0), true)) == walk)
    return probs.masked_fill(torch.from_numpy(right).to(probs.device), -1).amax(-1)


def threshold_of(scores: Tensor, alpha: float, confidence: float | None = None) -> float:
    """Return the threshold just above the score of this `rank`; NaN if there are too few scores."""
    place = rank(len(scores), alpha, confidence)
    if place > len(scores):
        return math.nan
    return _just_above(float(scores.double().sort().values[place - 1]))


def weighted_threshold(scores: Tensor, weights: Tensor, most: float, alpha: float) -> float:
    """Return the threshold of weighted scores; NaN if there are too few.

    It lies just above the first score up to which the scores have `1 - alpha` of all weights, that of a new sample (`most`)
    among them.
    """
    order = scores.double().argsort()
    need = (1 - alpha) * (float(weights.sum()) + most) * (1 - ROUNDING)
    reached = (weights[order].cumsum(0) >= need).nonzero().flatten()
    return math.nan if not len(reached) else _just_above(float(scores[order[reached[0]]].double()))


def _just_above(score: float) -> float:
    if score >= 1:
        return math.inf
    return 0.0 if score < 0 else math.nextafter(score, math.inf)


def rank(samples: int, alpha: float, confidence: float | None = None) -> int:
    """Return `ceil((samples + 1) (1 - alpha))`, in exact arithmetic on the decimal that was meant.

    With a confidence, return at least the smallest r with P(X < r) >= confidence, where X counts right answers among as many
    samples and each is right with probability 1 - alpha. This is P(Beta(r, samples + 1 - r) >= 1 - alpha) >= confidence.
    """
    on_average = math.ceil((samples + 1) * (1 - _exact(alpha)))
    if confidence is None:
        return on_average
    return max(on_average, int(binom.ppf(confidence, samples, float(1 - _exact(alpha)))) + 1)


def least_samples(alpha: float, confidence: float | None = None) -> int:
    """Return the least number of samples whose rank exists: `ceil(1 / alpha) - 1`, or more with a confidence."""
    count = math.ceil(1 / _exact(alpha)) - 1
    if confidence is not None:
        right = math.log1p(-float(_exact(alpha)))
        count = max(count, math.floor(math.log1p(-confidence) / right))
        if -math.expm1(count * right) < confidence:  # the largest rank needs 1 - (1 - alpha) ** count >= confidence
            count += 1
    return count


def check_confidence(confidence: float | None) -> None:
    """Refuse a confidence that is not strictly between 0 and 1."""
    if confidence is None:
        return
    check_number("confidence", confidence, low=0, high=1)
    if not 0 < confidence < 1:
        raise InputError(f"confidence: expected a number between 0 and 1, such as 0.9, got {confidence!r}.")


def first_fork(taxonomy: Taxonomy) -> int:
    """Return the root, or the first node below it with more than one child."""
    node = 0
    while len(taxonomy.children[node]) == 1:
        node = int(taxonomy.children[node][0])
    return node


def _exact(alpha: float) -> Fraction:
    """Return 1/20 for 0.05 and for 1 - 0.95, whose floating-point numbers differ."""
    found = Fraction(alpha).limit_denominator(10**9)
    return found if 0 < found < 1 else Fraction(alpha)


def _promise(alpha: float, confidence: float | None) -> str:
    return f"alpha = {alpha:g}" + ("" if confidence is None else f" with a confidence of {confidence:g}")


def _check_enough(samples: int, alpha: float, confidence: float | None) -> None:
    least = least_samples(alpha, confidence)
    if samples < least:
        raise InputError(
            f"node_probs: expected at least {counted(least, 'calibration sample')} for {_promise(alpha, confidence)}, got "
            f"{counted(samples, 'sample')}; with fewer, only the root has the guarantee. Use more samples or a larger alpha."
        )

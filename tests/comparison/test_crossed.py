"""Intervals for seeds x test samples: a loop reference, known cases, and how often they hold the truth."""

from math import isnan, sqrt

import numpy as np
import pytest
from scipy import stats

from labelkin import InputError
from labelkin.comparison._crossed import Variances, crossed, mean_squares
from labelkin.comparison._statistics import paired, student


def loop_mean_squares(given: np.ndarray) -> tuple[float, float, float]:
    """The mean squares of a two-way layout without replication, sum by sum."""
    seeds, samples = given.shape
    center = sum(given[s, i] for s in range(seeds) for i in range(samples)) / (seeds * samples)
    rows = [sum(given[s, i] for i in range(samples)) / samples for s in range(seeds)]
    columns = [sum(given[s, i] for s in range(seeds)) / seeds for i in range(samples)]
    by_seed = sum(samples * (row - center) ** 2 for row in rows) / (seeds - 1)
    by_sample = sum(seeds * (column - center) ** 2 for column in columns) / (samples - 1)
    rest = 0.0
    for s in range(seeds):
        for i in range(samples):
            rest += (given[s, i] - rows[s] - columns[i] + center) ** 2
    return by_seed, by_sample, rest / ((seeds - 1) * (samples - 1))


def drawn(generator: np.random.Generator, seeds: int, samples: int, parts: Variances, mean: float = 0.0) -> np.ndarray:
    return (
        mean
        + generator.normal(0, sqrt(parts.seed), (seeds, 1))
        + generator.normal(0, sqrt(parts.sample), (1, samples))
        + generator.normal(0, sqrt(parts.residual), (seeds, samples))
    )


@pytest.mark.parametrize(("seeds", "samples"), [(2, 30), (3, 40), (5, 12)])
def test_the_interval_is_that_of_the_loop(seeds: int, samples: int):
    given = drawn(np.random.default_rng(seeds), seeds, samples, Variances(0.5, 2.0, 1.0), 0.3)
    by_seed, by_sample, rest = loop_mean_squares(given)
    found = crossed(given)
    assert found.variances is not None
    assert min(found.variances) > 0  # so that nothing was cut off at 0
    assert found.variances == pytest.approx(((by_seed - rest) / samples, (by_sample - rest) / seeds, rest))
    cells = seeds * samples
    variance = (by_seed + by_sample - rest) / cells
    doubt = (by_seed / cells) ** 2 / (seeds - 1) + (by_sample / cells) ** 2 / (samples - 1)
    freedom = variance**2 / (doubt + (rest / cells) ** 2 / ((seeds - 1) * (samples - 1)))
    assert mean_squares(given).freedom == pytest.approx(freedom)
    reach = stats.t.ppf(0.975, freedom) * sqrt(variance)
    alone = paired(given.mean(1).tolist())
    assert found.mean == pytest.approx(given.mean())
    assert found.low == pytest.approx(min(found.mean - reach, alone.low))
    assert found.high == pytest.approx(max(found.mean + reach, alone.high))


def test_without_sample_effects_it_is_students_interval_over_seeds():
    """Each seed's difference is the same on all samples, so that only seeds matter."""
    by_seed = np.array([0.1, 0.4, -0.2, 0.3])
    found, alone = crossed(np.repeat(by_seed[:, None], 50, 1)), paired(by_seed.tolist())
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high))
    assert found.seeds_to_settle == alone.seeds_to_settle


def test_without_seed_effects_it_is_students_interval_over_samples():
    """All seeds agree on every sample; seeds then give no information of their own."""
    given = np.random.default_rng(0).normal(0.2, 1.0, 200)
    found = crossed(np.repeat(given[None], 5, 0))
    low, high = stats.t.interval(0.95, 199, given.mean(), stats.sem(given))
    squares = mean_squares(np.repeat(given[None], 5, 0))
    assert squares.components() == pytest.approx((0.0, given.var(ddof=1), 0.0), abs=1e-12)
    assert found.mean - squares.half_width == pytest.approx(low)
    assert found.mean + squares.half_width == pytest.approx(high)
    few = crossed(np.repeat(given[None, :50], 5, 0))
    assert few.seeds_to_settle is None  # no number of seeds helps
    assert few.samples_to_settle is not None
    assert few.samples_to_settle > 50


@pytest.mark.long
def test_it_is_never_narrower_than_over_seeds_alone():
    generator = np.random.default_rng(3)
    for _ in range(200):
        given = drawn(generator, int(generator.integers(2, 6)), 30, Variances(*generator.exponential(1.0, 3)))
        found, alone = crossed(given), paired(given.mean(1).tolist())
        assert found.low <= alone.low
        assert found.high >= alone.high


def test_order_sign_and_unit_do_not_matter():
    generator = np.random.default_rng(5)
    given = drawn(generator, 4, 60, Variances(0.1, 1.0, 1.0), 0.2)
    found = crossed(given)
    shuffled = crossed(given[generator.permutation(4)][:, generator.permutation(60)])
    assert (shuffled.mean, shuffled.low, shuffled.high) == pytest.approx((found.mean, found.low, found.high), abs=0.01)
    other = crossed(-3 * given)
    assert other.variances == pytest.approx(tuple(9 * part for part in found.variances or ()))
    assert (other.low, other.high) == pytest.approx((-3 * found.high, -3 * found.low))
    assert (other.seeds_to_settle, other.samples_to_settle) == (found.seeds_to_settle, found.samples_to_settle)


def test_one_seed_has_no_interval_and_no_difference_needs_none():
    alone = crossed(np.ones((1, 5)))
    assert (alone.mean, isnan(alone.low), alone.variances, alone.shown) == (1.0, True, None, False)
    none = crossed(np.zeros((3, 5)))
    assert (none.mean, none.low, none.high, none.seeds_to_settle) == (0.0, 0.0, 0.0, None)
    assert not none.shown


@pytest.mark.parametrize("wrong", [[], [1.0, 2.0], np.zeros((2, 0))])
def test_other_shapes_are_refused(wrong: object):
    with pytest.raises(InputError, match="differences: expected an array of seeds x test samples"):
        crossed(wrong)  # type: ignore[arg-type]


def test_the_share_of_the_sample_with_the_largest_influence():
    given = np.zeros((2, 50))
    given[:, 7] = -4.0
    assert crossed(given).largest_share == pytest.approx(1.0)
    given[:, :7] = -4.0
    assert crossed(given).largest_share == pytest.approx(1 / 8)


# How often an interval holds the truth

SOURCES = {
    "seeds": Variances(1.0, 0.0, 1.0),
    "samples": Variances(0.0, 1.0, 0.25),
    "both": Variances(0.01, 1.0, 1.0),
    "rest": Variances(0.0, 0.0, 1.0),
}


def coverage(seeds: int, samples: int, parts: Variances, *, times: int) -> float:
    generator = np.random.default_rng(seeds * samples)
    held = 0
    for _ in range(times):
        given = drawn(generator, seeds, samples, parts, 0.1)
        reach = mean_squares(given).half_width
        held += abs(given.mean() - 0.1) <= max(reach, student(seeds - 1) * stats.sem(given.mean(1)))
    return held / times


@pytest.mark.long
@pytest.mark.parametrize("samples", [100, 2000])
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("source", SOURCES)
def test_intervals_hold_the_truth_as_often_as_they_say(source: str, seeds: int, samples: int):
    held = coverage(seeds, samples, SOURCES[source], times=1500)
    assert held > 0.95 - 3 * sqrt(0.95 * 0.05 / 1500)
    assert held < 0.996


def sparse(generator: np.random.Generator, seeds: int, samples: int, shift: float) -> np.ndarray:
    """Costs 0 to 4 of two models: most samples are easy, some are hard for both, and a model's skill varies by seed."""
    hard = generator.exponential(1.0, samples)
    skill = generator.normal(0, 0.25, (2, seeds, 1))

    def costs(model: int, weight: float) -> np.ndarray:
        wrong = generator.random((seeds, samples)) < 1 - np.exp(-0.3 * hard * np.exp(skill[model]) * weight)
        return np.where(wrong, generator.integers(1, 5, (seeds, samples)), 0)

    return np.asarray(costs(0, shift) - costs(1, 1.0), dtype=np.float64)


@pytest.mark.long
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("samples", [100, 2000])
def test_intervals_hold_for_costs_of_decisions_too(seeds: int, samples: int):
    generator = np.random.default_rng(7)
    truth = float(np.mean([sparse(generator, 200, 2000, 0.8).mean() for _ in range(20)]))
    found = [crossed(sparse(generator, seeds, samples, 0.8)) for _ in range(500)]
    assert np.mean([one.low <= truth <= one.high for one in found]) > 0.95 - 3 * sqrt(0.95 * 0.05 / 500)


@pytest.mark.long
@pytest.mark.parametrize(("seeds", "most"), [(3, 0.85), (5, 0.92)])
def test_a_bootstrap_of_seeds_and_samples_is_too_narrow(seeds: int, most: float):
    """The reason for Student's interval: three seeds resampled are rarely as far apart as three new ones."""
    generator, samples, times = np.random.default_rng(1), 100, 400
    held = 0
    for _ in range(times):
        given = drawn(generator, seeds, samples, SOURCES["seeds"], 0.1)
        of_seeds, of_samples = (generator.multinomial(n, [1 / n] * n, 500) / n for n in given.shape)
        means = ((of_seeds @ given) * of_samples).sum(1)
        low, high = np.quantile(means, [0.025, 0.975])
        held += low <= 0.1 <= high
    assert held / times < most
    assert coverage(seeds, samples, SOURCES["seeds"], times=times) > 0.92


# How much would settle it


@pytest.mark.long
@pytest.mark.parametrize("parts", [Variances(0.05, 0.5, 1.0), Variances(0.2, 0.1, 1.0)])
def test_so_many_seeds_show_the_difference_four_times_of_five(parts: Variances):
    generator, samples, shift = np.random.default_rng(2), 400, 0.25
    given = drawn(generator, 400, samples, parts)
    known = mean_squares(given).components()
    count = next(c for c in range(2, 99) if known.expected(c, samples).settled_difference <= shift)
    shown = [crossed(drawn(generator, count, samples, parts, shift)).shown for _ in range(600)]
    assert 0.72 < np.mean(shown) < 0.95


def test_seeds_or_samples_are_what_is_needed():
    generator = np.random.default_rng(4)
    by_seed = crossed(drawn(generator, 3, 2000, Variances(0.02, 0.0, 0.1), 0.1))
    assert by_seed.seeds_to_settle is not None
    by_sample = crossed(drawn(generator, 3, 100, Variances(0.0, 1.0, 0.1), 0.1))
    assert by_sample.seeds_to_settle is None
    assert by_sample.samples_to_settle is not None
    assert by_sample.samples_to_settle > 100


def test_where_most_of_the_variance_is_between_samples_test_data_are_needed():
    generator = np.random.default_rng(6)
    by_sample = crossed(drawn(generator, 5, 200, Variances(0.0, 1.0, 0.1), 0.2))
    assert by_sample.needs_samples
    by_seed = crossed(drawn(generator, 5, 200, Variances(0.1, 0.1, 0.1), 0.2))
    assert not by_seed.needs_samples

"""Every float has a defined place on a scale, and order is never turned round."""
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuvil_ide.views.scale import fit, label, position

RIDGE = 10.0
anything = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, -0.0, 1e-12, 1e18]))
kinds = st.sampled_from(["linear", "log", "diverging"])


def placed(values, kind, centre=RIDGE):
    scale = fit(values, kind, centre)
    return [position(scale, v) for v in values]


# The common case: three intensities, below, at and above the ridge.
def test_diverging_is_symmetric_in_ratios():
    assert placed([5.0, 10.0, 20.0], "diverging") == pytest.approx([0.0, 0.5, 1.0])
    assert placed([2.5, 5.0, 20.0], "diverging") == pytest.approx([0.0, 0.25, 0.75])


def test_log_spreads_decades_evenly():
    assert placed([1.0, 10.0, 100.0], "log") == pytest.approx([0.0, 0.5, 1.0])


def test_linear():
    assert placed([0.0, 25.0, 100.0], "linear") == pytest.approx([0.0, 0.25, 1.0])
    assert placed([0.0, 5e-324], "linear") == [0.0, 1.0] and placed([-1.7e308, 1.7e308], "linear") == [0.0, 1.0]


# What has no number has no colour; what is infinite is at an end.
def test_missing_nan_and_infinite():
    assert placed([None, math.nan, math.inf, -math.inf, 1.0, 2.0], "log") == [None, None, 1.0, 0.0, 0.0, 1.0]


def test_equal_values_stand_in_the_middle():
    for kind in ("linear", "log"):
        assert placed([3.0, 3.0], kind) == [0.5, 0.5]
    assert placed([RIDGE, RIDGE], "diverging") == [0.5, 0.5]
    assert placed([0.0, 0.0], "log") == [0.5, 0.5]


def test_zero_and_negative_take_the_low_end_of_a_log_scale():
    assert placed([0.0, -5.0, 1.0, 1000.0], "log")[:2] == [0.0, 0.0]
    assert placed([0.0, 1.0, 1e12], "log")[2] == 1.0
    assert placed([0.0, 5.0, 20.0], "diverging") == pytest.approx([0.0, 0.0, 1.0])


def test_a_huge_range_keeps_its_middle():
    assert placed([1e-12, 1e3, 1e18], "log") == pytest.approx([0.0, 0.5, 1.0])
    assert placed([-1.7e308, 0.0, 1.7e308], "linear") == pytest.approx([0.0, 0.5, 1.0])


def test_a_diverging_scale_without_a_centre_is_logarithmic():
    for centre in (None, 0.0, -1.0, math.nan, math.inf):
        assert fit([1.0, 2.0], "diverging", centre).kind == "log"


# One zero must not stretch the scale of all the others; it has a sign of its own beside it.
def test_zero_is_not_an_extreme_of_a_log_scale():
    for kind in ("log", "diverging"):
        scale = fit([0.0, 0.5, 40.0], kind, RIDGE)
        assert (scale.low, scale.high) == (0.5, 40.0)
        assert position(scale, 0.0) == 0.0
    assert placed([0.0, 2.5, 5.0, 20.0], "diverging") == pytest.approx([0.0, 0.0, 0.25, 0.75])


def test_no_values():
    scale = fit([], "log")
    assert (scale.low, scale.high) == (0.0, 0.0)
    assert position(scale, None) is None


@given(st.lists(anything, max_size=8), kinds)
def test_positions_are_in_range(values, kind):
    for value, place in zip(values, placed(values, kind)):
        assert (place is None) == (value is None or math.isnan(value))
        assert place is None or 0.0 <= place <= 1.0


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=8), kinds)
def test_larger_is_never_further_left(values, kind):
    values = sorted(values)
    places = placed(values, kind)
    assert places == sorted(places)


@pytest.mark.parametrize("value, unit, shown", [
    (34.1, "FLOP/B", "34.1 FLOP/B"),
    (0.0, "B", "0 B"),
    (1536.0, "B", "1.54 kB"),
    (999.9, "B", "1 kB"),
    (2.4e9, "FLOP", "2.4 GFLOP"),
    (1e18, "FLOP", "1 EFLOP"),
    (0.25, "FLOP/B", "0.25 FLOP/B"),
    (12345.0, "FLOP/B", "12,345 FLOP/B"),
    (0.00262, "s", "2.62 ms"),
    (5.46e-6, "s", "5.46 µs"),
    (90.0, "s", "90 s"),
    (None, "B", "unknown"),
    (math.nan, "B", "unknown"),
    (math.inf, "FLOP/B", "∞ FLOP/B"),
])
def test_labels(value, unit, shown):
    assert label(value, unit) == shown

"""Integers for solvers: exact where decimals allow it, else floored on what we have and ceiled on what we owe."""

from __future__ import annotations

import random
from fractions import Fraction
from math import pi

import numpy as np
import pytest

from planner.optimization.scaling import ceil_units, cover, cover_each, exact, limit, micro, occupy_each


@pytest.mark.parametrize(
    ("value", "fraction"),
    [
        (0.1, Fraction(1, 10)),
        (2.5, Fraction(5, 2)),
        (1e-7, Fraction(1, 10**7)),
        (3e21, Fraction(3 * 10**21)),
        (-0.7, Fraction(-7, 10)),
        (0.0, Fraction(0)),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
)
def test_a_number_is_the_decimal_that_people_read(value: float, fraction: Fraction) -> None:
    assert exact(value) == fraction


@pytest.mark.parametrize(
    ("value", "integer"), [(2.5, 2_500_000), (0.1, 100_000), (1e-6, 1), (1.4e-6, 1), (1.6e-6, 2), (0.0, 0)]
)
def test_money_is_in_millionths(value: float, integer: int) -> None:
    assert micro(value) == integer


@pytest.mark.parametrize(
    ("value", "unit", "count"), [(2.1, 0.7, 3), (2.11, 0.7, 4), (0.0, 0.7, 0), (0.3, 0.1, 3), (1.0, 1.0, 1)]
)
def test_so_many_units_cover_a_value(value: float, unit: float, count: int) -> None:
    assert ceil_units(value, unit) == count


@pytest.mark.parametrize(
    ("have", "owes", "left", "right"),
    [
        ({"n": 0.7}, {"y": 2.1}, {"n": 7}, {"y": 21}),
        ({"n": 1.0, "k": 2.0}, {"y": 3.0}, {"n": 1, "k": 2}, {"y": 3}),
        ({"n": 0.25}, {"y": 1.0, "w": 0.5}, {"n": 1}, {"y": 4, "w": 2}),
        ({"n": 99.0}, {"y": 2.5}, {"n": 5}, {"y": 5}),
        ({"n": 0.0}, {"y": 2.0}, {"n": 0}, {"y": 2}),
        ({}, {"y": 2.0}, {}, {"y": 2}),
        ({"n": 99.0}, {"y": Fraction(1, 3), "w": Fraction(1, 7)}, {"n": 10}, {"y": 7, "w": 3}),
    ],
    ids=["decimals", "integers", "quarters", "more than all", "nothing", "nobody", "thirds and sevenths"],
)
def test_small_denominators_are_exact(
    have: dict[str, float], owes: dict[str, float], left: dict[str, int], right: dict[str, int]
) -> None:
    assert cover(have, owes) == (left, right)


def test_what_has_no_small_denominator_is_floored_and_ceiled() -> None:
    left, right = cover({"n": pi}, {"y": 10.0})
    assert (left["n"], right["y"]) == (31_415_926, 10**8)
    left, right = cover({"n": 2.5}, {"y": pi})
    assert (left["n"], right["y"]) == (79_577_471, 10**8)


def test_one_that_covers_all_that_is_owed_is_enough_also_when_that_is_rounded() -> None:
    owes = {"y": pi / 10, "w": pi / 7, "v": pi / 9}
    left, right = cover({"n": 7.0}, owes)
    assert sum(right.values()) > 10**8
    assert left["n"] >= sum(right.values())


@pytest.mark.parametrize("seed", range(40))
def test_what_integers_cover_is_really_covered(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    have = {str(number): rng.choice((rng.random(), round(rng.random(), 2))) for number in range(3)}
    owes = {str(number): rng.random() * 5 for number in range(rng.randint(1, 2))}
    left, right = cover(have, owes)
    for _ in range(30):
        counts = {key: rng.randint(0, 9) for key in have}
        if sum(left[key] * count for key, count in counts.items()) >= sum(right.values()):
            assert sum(exact(have[key]) * n for key, n in counts.items()) >= sum(map(exact, owes.values()))


@pytest.mark.parametrize("decimals", [0, 1, 2, 3])
def test_decimals_as_people_write_them_lose_nothing(decimals: int) -> None:
    rng = random.Random(decimals)  # noqa: S311 - instances, not secrets
    for _ in range(200):
        rate = round(rng.uniform(0.5, 9), decimals) or 1.0
        count = rng.randint(1, 40)
        owed = float(exact(rate) * count)
        left, right = cover({"n": rate}, {"y": owed})
        assert left["n"] * count == right["y"]


@pytest.mark.parametrize(
    ("use", "available", "left", "right"),
    [
        ({"n": 450.5}, 3000.0, {"n": 901}, 6000),
        ({"n": 2.5, "m": 3.0}, 9.5, {"n": 5, "m": 6}, 19),
        ({"n": -60.0, "m": 0.5}, 1.0, {"n": -120, "m": 1}, 2),
        ({"n": 1.0}, -0.5, {"n": 2}, -1),
        ({"n": 3.0}, 0.0, {"n": 3}, 0),
    ],
)
def test_a_limit_in_decimals_is_exact(
    use: dict[str, float], available: float, left: dict[str, int], right: int
) -> None:
    assert limit(use, available) == (left, right)


def test_a_limit_without_a_small_denominator_is_ceiled_and_floored() -> None:
    left, right = limit({"n": pi, "m": -pi / 2}, 10.0)
    assert (left, right) == ({"n": 31_415_927, "m": -15_707_963}, 10**8)


def any_figure(rng: random.Random) -> float:
    return rng.choice(
        (
            rng.random(),
            round(rng.uniform(0, 90), rng.randint(0, 6)),
            float(rng.randrange(40)),
            rng.uniform(1, 9) * 10.0 ** rng.randint(-20, 20),
            1 / 3,
            0.0,
        )
    )


def test_many_rows_at_once_have_the_integers_of_each() -> None:
    rng = random.Random(5)  # noqa: S311 - instances, not secrets
    rows: list[tuple[list[float], float | Fraction]] = []
    for _ in range(2_000):
        owed = any_figure(rng) or 1.5
        near = [owed, owed * 0.5, owed * (1 + 1e-16), owed / 3]
        have = [rng.choice((any_figure(rng), rng.choice(near))) for _ in range(rng.randint(0, 5))]
        rows.append((have, exact(owed) * exact(rng.choice((1, 1.3, 1.07)))))
    starts = np.cumsum([0, *(len(have) for have, _ in rows)])
    left, right = cover_each(
        np.array([one for have, _ in rows for one in have]), starts, [o for _, o in rows]
    )
    for row, (have, owed) in enumerate(rows):
        each, due = cover(dict(enumerate(have)), {"y": owed})
        assert (left[starts[row] : starts[row + 1]].tolist(), right[row]) == (list(each.values()), due["y"])


def test_rows_of_occupancy_are_made_at_once_as_one_by_one() -> None:
    rng = random.Random(11)  # noqa: S311 - instances, not secrets

    def figure() -> float:
        digits = rng.choice((1, 2, 4, 7))
        return round(round(rng.uniform(10**-digits, 9.0), digits) * rng.choice((1, 1, 10, 1000, 1e-3)), 10)

    rows = []
    for _ in range(600):
        pairs = [(figure(), figure()) for _ in range(rng.randint(1, 6))]
        if rng.random() < 0.3:  # what fits exactly, nearly, or often
            load, times = figure(), rng.choice((1, 2, 3, 0.5, 0.25))
            pairs = [(load, round(load * times, 12))] * rng.randint(1, 4)
        rows.append((pairs, exact(rng.choice((1, 1, 1.3, 1.07))) / rng.choice((1, 1, 3))))
    starts = np.cumsum([0, *(len(pairs) for pairs, _ in rows)])
    loads, rates = np.array([pair for pairs, _ in rows for pair in pairs]).T
    one, busy = occupy_each(loads, rates, starts, [factor for _, factor in rows])
    for row, (pairs, factor) in enumerate(rows):
        owes = {at: factor * exact(load) / exact(rate) for at, (load, rate) in enumerate(pairs)}
        have, due = cover({"n": 1.0}, owes)
        assert (one[row], busy[starts[row] : starts[row + 1]].tolist()) == (have["n"], list(due.values()))


def test_what_is_occupied_is_never_less_than_it_really_is() -> None:
    rng = random.Random(12)  # noqa: S311 - instances, not secrets
    rows = [
        [(any_figure(rng) or 1.5, any_figure(rng) or 2.5) for _ in range(rng.randint(1, 5))]
        for _ in range(1_000)
    ]
    starts = np.cumsum([0, *map(len, rows)])
    loads, rates = np.array([pair for pairs in rows for pair in pairs]).T
    one, busy = occupy_each(loads, rates, starts, [exact(1.3)] * len(rows))
    for row, pairs in enumerate(rows):
        owes = [exact(1.3) * exact(load) / exact(rate) for load, rate in pairs]
        owed, replica = busy[starts[row] : starts[row + 1]].tolist(), int(one[row])
        if sum(owes) <= 1:
            assert replica == sum(owed)
        else:
            assert all(whole >= amount * replica for whole, amount in zip(owed, owes, strict=True))


@pytest.mark.parametrize(
    ("loads", "rates", "factor", "one", "busy"),
    [
        ([2.1], [0.7], 1, 1, [3]),
        ([2.1, 0.7], [0.7, 0.7], 1, 1, [3, 1]),
        ([1.0], [4.0], 1, 1, [1]),  # one replica covers all that is owed
        ([1.0, 1.0], [4.0, 2.0], 1, 3, [1, 2]),
        ([1.0, 1.0], [4.0, 2.0], 2, 2, [1, 2]),
    ],
)
def test_what_buckets_occupy_is_small_where_it_can_be(
    loads: list[float], rates: list[float], factor: float, one: int, busy: list[int]
) -> None:
    left, right = occupy_each(np.array(loads), np.array(rates), np.array([0, len(loads)]), [factor])
    assert (left.tolist(), right.tolist()) == ([one], busy)


def test_no_rows_of_occupancy_are_none() -> None:
    left, right = occupy_each(np.array([]), np.array([]), np.array([0]), [])
    assert (len(left), len(right)) == (0, 0)

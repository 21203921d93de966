"""Between measured rows: through them, monotone, inside the hull only, and never on a saturated one."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.explanation import Reason
from models.performance import MeasuredPoint, Origin, PerformanceChoice, Rating, RatingQuestion, Rows, Unrated
from planner.performance import Knowledge
from planner.performance.interpolated import between, rate_between
from planner.performance.ladder import Ladder, unsaturated
from planner.performance.measured import MeasuredTables


def a_row(concurrency: int = 10, ttft_s: float = 0.5, itl_s: float = 0.02, **fields: Any) -> MeasuredPoint:
    """A row of 1,000 + 101 tokens that obeys Little's law."""
    base = {
        "llm": "one", "accelerator": "acc", "engine": "vllm", "precision": "bf16", "input_tokens": 1000,
        "output_tokens": 101, "source": "P1",
    } | fields  # fmt: skip
    stay = ttft_s + (base["output_tokens"] - 1) * itl_s
    figures = {"concurrency": concurrency, "ttft_s": ttft_s, "itl_s": itl_s, "rps": concurrency / stay}
    return MeasuredPoint.model_validate(figures | base)


def a_question(**fields: Any) -> RatingQuestion:
    variant = {"id": "v", "accelerator": "acc", "capacity": {"kv_tokens": 10**6}} | fields.pop("variant", {})
    base = {
        "llm": {
            "id": "one", "parameters": 10**9, "layers": 10,
            "attention": {"kind": "gqa", "kv_heads": 4, "head_dim": 100},
        },
        "accelerator": {"id": "acc", "vendor": "Acme", "memory_bytes": 10**10},
        "variant": variant, "input_tokens": 1000, "output_tokens": 101, "slo": {}, "thresholds": {},
    }  # fmt: skip
    return RatingQuestion.model_validate(base | fields)


LADDER = (a_row(1, 0.1, 0.009), a_row(10, 0.2, 0.012), a_row(50, 0.5, 0.03))


def rated(question: RatingQuestion, *rows: MeasuredPoint) -> Rating:
    answer = rate_between(rows, question)
    assert isinstance(answer, Rating)
    return answer


@pytest.mark.parametrize("row", LADDER)
def test_at_a_row_it_is_the_row(row: MeasuredPoint) -> None:
    answer = rated(a_question(slo={"itl_s": row.itl_s}), *LADDER)
    assert answer.rated_rps == pytest.approx(row.rps)
    assert answer.distance == pytest.approx(0.0, abs=1e-9)
    assert answer.origin is Origin.MEASURED


def test_between_rows_it_is_between_them_and_tells_how_far_from_the_nearest() -> None:
    answer = rated(a_question(slo={"itl_s": 0.02}), *LADDER)
    assert LADDER[1].rps < answer.rated_rps < LADDER[2].rps
    assert answer.itl_s is not None
    assert 0.019 < answer.itl_s <= 0.02 * (1 + 1e-9)
    assert answer.distance is not None
    assert 0 < answer.distance < math.log(5)
    assert answer.source.startswith("P1: vllm, 1000x101, ")


@given(
    loads=st.lists(st.integers(1, 500), min_size=2, max_size=8, unique=True),
    latencies=st.lists(st.tuples(st.floats(0.01, 5), st.floats(0.001, 0.5)), min_size=8, max_size=8),
)
def test_latencies_never_fall_with_the_load(loads: list[int], latencies: list[tuple[float, float]]) -> None:
    rows = [a_row(load, *latency) for load, latency in zip(sorted(loads), latencies, strict=False)]
    found = between(rows, input_tokens=1000, output_tokens=101)
    assert found is not None
    for values in (found.ttft_s, found.itl_s):
        assert all(a <= b * (1 + 1e-9) for a, b in pairwise(values))


def test_the_highest_row_is_the_highest_load() -> None:
    assert rated(a_question(), *LADDER).rated_rps == pytest.approx(LADDER[-1].rps)


def test_promises_that_only_fewer_in_flight_would_keep_are_outside_the_hull() -> None:
    assert rate_between(LADDER, a_question(slo={"itl_s": 0.008})) is None


GRID = tuple(
    a_row(
        load, 0.1 * i / 1000 * load**0.3, 0.01 * load**0.2 * (1 + o / 1000), input_tokens=i, output_tokens=o
    )
    for i in (1000, 4000)
    for o in (101, 401)
    for load in (1, 8, 64)
)


@pytest.mark.parametrize(
    ("asked", "inside"),
    [
        ((2000, 200), True), ((1000, 200), True), ((4000, 401), True), ((999, 200), False), ((2000, 402), False), ((4001, 101), False),
    ],
)  # fmt: skip
def test_lengths_inside_the_hull_alone(asked: tuple[int, int], inside: bool) -> None:
    answer = rate_between(GRID, a_question(input_tokens=asked[0], output_tokens=asked[1]))
    assert (answer is not None) is inside


def test_lengths_are_weighed_in_logarithms() -> None:
    found = between(GRID, input_tokens=2000, output_tokens=101)
    assert found is not None
    # TTFT is in proportion to the input, so halfway in logarithms it is the geometric mean.
    assert found.ttft_s[0] == pytest.approx(0.2)


def test_a_shape_that_was_left_out_lies_between_its_neighbors() -> None:
    middle = [
        a_row(load, 0.1 * 2 * load**0.3, 0.01 * load**0.2 * 1.1, input_tokens=2000, output_tokens=o)
        for o in (101, 401)
        for load in (1, 8, 64)
    ]
    found = between([*GRID, *middle], input_tokens=2000, output_tokens=200)
    assert found is not None
    assert [ladder.rows[0].input_tokens for _, ladder in found.corners] == [2000, 2000]


def test_a_missing_corner_is_outside_the_hull() -> None:
    rows = [row for row in GRID if (row.input_tokens, row.output_tokens) != (4000, 401)]
    assert rate_between(rows, a_question(input_tokens=2000, output_tokens=200)) is None
    assert rate_between(rows, a_question(input_tokens=2000, output_tokens=101)) is not None


@pytest.mark.parametrize(
    "other", [{"engine": "sglang"}, {"engine_version": "9"}, {"at": "mean"}, {"source": "P2"}]
)
def test_runs_of_different_kinds_are_never_mixed(other: dict[str, str]) -> None:
    rows = (a_row(1), a_row(100, 2.0, 0.1, **other))
    answer = rate_between(rows, a_question(slo={"itl_s": 0.05}))
    assert answer is not None
    assert answer.rated_rps == pytest.approx(rows[0].rps)


SATURATED = (*LADDER, a_row(100, 2.0, 0.042), a_row(200, 6.0, 0.06))


def test_a_row_that_only_queues_is_no_capacity() -> None:
    kept = unsaturated([*SATURATED, a_row(400, 30.0, 0.07)])
    assert [row.concurrency for row in kept] == [1, 10, 50, 100]
    exploded = a_row(70, 20.0, 0.031)
    assert [row.concurrency for row in unsaturated([*LADDER, exploded])] == [1, 10, 50]


def test_a_replica_that_still_gains_is_not_saturated() -> None:
    assert unsaturated(LADDER) == LADDER
    assert Ladder(LADDER).most == 50


def test_the_cache_bounds_the_load() -> None:
    # 0.7 x 15,015 tokens hold ten requests of 1,000 + 101 / 2.
    answer = rated(a_question(variant={"capacity": {"kv_tokens": 15_007}}), *LADDER)
    assert answer.rated_rps == pytest.approx(LADDER[1].rps, rel=1e-3)
    assert answer.surge_rps > answer.rated_rps
    below = rated(a_question(variant={"capacity": {"kv_tokens": 3002}}), *LADDER[1:])
    assert below.rated_rps == pytest.approx(LADDER[1].rps * 0.2, rel=1e-3)


def test_no_table_rates_a_saturated_row() -> None:
    queue = a_row(200, 6.0, 0.06)
    assert queue.rps > SATURATED[3].rps
    for rows in Rows:
        answer = tables(rows, *SATURATED, queue.but(row="again")).rate(a_question())
        assert isinstance(answer, Rating)
        assert answer.rated_rps == pytest.approx(SATURATED[3].rps)


def tables(rows: Rows, *points: MeasuredPoint) -> MeasuredTables:
    return MeasuredTables(Knowledge(PerformanceChoice(rows=rows), {"table": points}))


def test_where_no_hull_holds_it_a_larger_row_covers_it() -> None:
    table = tables(Rows.INTERPOLATED, *LADDER)
    answer = table.rate(a_question(input_tokens=900))
    assert isinstance(answer, Rating)
    assert (answer.rated_rps, answer.distance) == (LADDER[2].rps, None)


def test_what_only_larger_rows_break_another_source_may_keep() -> None:
    question = a_question(input_tokens=900, slo={"itl_s": 0.001})
    answer = tables(Rows.INTERPOLATED, *LADDER).rate(question)
    assert isinstance(answer, Unrated)
    assert (answer.reason, answer.may_be_known_elsewhere) == (Reason.SLO_NOT_MET, True)
    final = tables(Rows.COVERING, *LADDER).rate(question)
    assert isinstance(final, Unrated)
    assert not final.may_be_known_elsewhere

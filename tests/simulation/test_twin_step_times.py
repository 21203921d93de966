"""Step times in the kernel: each form against itself told plainly, and the twin against the source that says how fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from models.queueing import QueueingForm, QueueingParameters
from models.simulation import ReplicaSpec
from models.twin_timing import Curve, Grid, LinearTiming, QueueingTiming, RooflineTiming, TableTiming, Timing
from planner.performance.queueing.cases import Case, columns_of
from planner.performance.queueing.iterations import service_time
from planner.simulation.kernel.duration import step_s
from planner.simulation.replica import Fleet
from tests.twins import a_fleet, a_replica, replay, requests


class Work(NamedTuple):
    """A step, in the order in which the kernel takes it."""

    decoding: float = 0.0
    prefill: float = 0.0
    context: float = 0.0
    pairs: float = 0.0
    ends: float = 0.0
    yielding: float = 0.0
    before: float = 0.0


QUEUEING = QueueingTiming(alpha_ms=8.0, beta_ms_per_token=0.02, gamma_ms_per_token=1e-4)
LINEAR = LinearTiming(
    base_s=0.01,
    per_request_s=1e-4,
    per_prefill_token_s=4e-5,
    per_kv_token_s=1e-8,
    per_pair_s=1e-9,
    prefill_step_s=0.02,
)
ROOFLINE = RooflineTiming(
    overhead_s=1e-3, compute_per_token_s=2e-5, compute_per_pair_s=1e-10, weights_s=9e-3, per_kv_token_s=8e-8
)
DECODE = Grid(
    rows=(0.0, 64.0, 128.0), columns=(0.0, 1000.0), seconds=((0.0, 0.0), (0.001, 0.009), (0.002, 0.02))
)
PREFILL = Grid(rows=(0.0, 1000.0), columns=(0.0, 4000.0), seconds=((0.0, 0.0), (0.03, 0.05)))
TABLE = TableTiming(
    overhead_s=1e-3,
    tokens=Curve(at=(1.0, 256.0, 2048.0), seconds=(0.01, 0.011, 0.07)),
    sequences=Curve(at=(0.0, 100.0), seconds=(5e-4, 1e-3)),
    decode=DECODE,
    prefill=PREFILL,
)
MIXED = TABLE.but(
    mixed_decode=Grid(rows=(0.0, 100.0), columns=(0.0, 1000.0), seconds=((0.0, 0.0), (0.0, 0.02))),
    mixed_per_product_s=3e-8,
)
ALONE = Work(decoding=1, context=500, yielding=1)
BATCH = Work(decoding=96, context=96 * 750, yielding=96)
PROMPT = Work(prefill=800, pairs=800 * 400, ends=800, yielding=1)
BOTH = Work(
    decoding=50, prefill=700, context=50 * 600, pairs=700 * (300 + 350), ends=1000, yielding=50, before=300
)
"""The last chunk of a prompt of 1,000 beside 50 requests of 600 tokens; another chunk follows."""
LONG = Work(decoding=256, context=256 * 3000, yielding=256)


def seconds(timing: Timing, work: Work) -> float:
    """As the kernel tells it."""
    fleet = Fleet.of((a_replica(timing=timing),))
    size = fleet.initial(0)
    return step_s(fleet.timings, size.kind, size.timing, tuple(float(part) for part in work))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("timing", "work", "expected_ms"),
    [
        (QUEUEING, ALONE, 8 + 0.02 + 1e-4 * 500),
        (QUEUEING, BATCH, 8 + 0.02 * 96 + 1e-4 * 72_000),
        (QUEUEING, PROMPT, 8 + 0.02 * 800 + 1e-4 * 800),
        (QUEUEING, BOTH, 8 + 0.02 * 750 + 1e-4 * (30_000 + 1000)),
        (LINEAR, BATCH, 10 + 9.6 + 0.72),
        (LINEAR, BOTH, 10 + 5 + 28 + 0.3 + 0.455 + 20),
        # Memory binds a batch that decodes, compute a prompt.
        (ROOFLINE, BATCH, 1 + max(1.92 + 0.0072, 9 + 5.76)),
        (ROOFLINE, PROMPT, 1 + max(16 + 0.032, 9 + 0.064)),
        (ROOFLINE, BOTH, 1 + max(15 + 0.0485, 9 + 8e-5 * 31_000)),
        # Half between 64 and 128 rows, three quarters between the columns.
        (TABLE, BATCH, 1 + (10 + 95 / 255) + (0.5 + 0.5 * 0.96) + (1.5 + 0.75 * (14.5 - 1.5))),
        (TABLE, PROMPT, 1 + (11 + 544 / 1792 * 59) + 0.505 + 0.8 * 30),
        (TABLE, BOTH, 1 + (11 + 494 / 1792 * 59) + 0.75 + 50 / 64 * (1 + 0.6 * 8) + 0.7 * (30 + 0.075 * 20)),
        # Beyond the table the slopes of its edge go on: at 256 rows 4 and 42 ms, at three columns that line goes on.
        (TABLE, LONG, 1 + 11 + (0.5 + 0.5 * 2.56) + (4 + 3 * (42 - 4))),
        (MIXED, BATCH, 1 + (10 + 95 / 255) + (0.5 + 0.5 * 0.96) + (1.5 + 0.75 * (14.5 - 1.5))),
        (MIXED, BOTH, 1 + (11 + 494 / 1792 * 59) + 0.75 + 0.5 * 12 + 1.05 + 0.7 * (30 + 0.075 * 20)),
    ],
)  # fmt: skip
def test_a_step_takes_what_its_form_says(timing: Timing, work: Work, expected_ms: float) -> None:
    assert seconds(timing, work) == pytest.approx(expected_ms * 1e-3)


def alone(timing: Timing, **fields: object) -> tuple[float, float]:
    """First and last token of a request of 1,000 + 3 tokens on an idle replica."""
    spec = a_replica(timing=timing, **fields)
    rows = replay(a_fleet(spec), requests([0.0], [1000], [3])).requests
    return float(rows["first_token_s"][0]), float(rows["end_s"][0])


@pytest.mark.parametrize("timing", [QUEUEING, LINEAR, ROOFLINE, TABLE, MIXED])
def test_a_request_alone_is_its_prompt_and_then_its_tokens(timing: Timing) -> None:
    prompt = seconds(timing, Work(prefill=1000, pairs=500_000, ends=1000, yielding=1))
    tokens = [seconds(timing, Work(decoding=1, context=1000 + k, yielding=1)) for k in (1, 2)]
    assert alone(timing) == pytest.approx((prompt, prompt + sum(tokens)))


def test_a_prompt_in_chunks_reads_what_came_before() -> None:
    chunks: Sequence[tuple[int, int]] = ((0, 400), (400, 400), (800, 200))
    steps = [
        seconds(TABLE, Work(prefill=c, pairs=c * (k + c / 2), ends=k + c, yielding=k + c == 1000, before=k))
        for k, c in chunks
    ]
    first, _ = alone(TABLE, max_num_batched_tokens=400, max_num_seqs=8)
    assert first == pytest.approx(sum(steps))


@pytest.mark.parametrize("seats", [1, 4, 32])
def test_a_full_engine_serves_what_the_queueing_model_says(seats: int) -> None:
    """n in service make n/tau(n) req/s; the model counts one iteration more, since prefill makes the first token."""
    prompt, answer, count = 300, 200, 40 * seats
    parameters = QueueingParameters(
        alpha_ms=QUEUEING.alpha_ms,
        beta_ms_per_token=QUEUEING.beta_ms_per_token,
        gamma_ms_per_token=QUEUEING.gamma_ms_per_token,
        max_batch=seats,
        chunk_tokens=2048,
        form=QueueingForm.ITERATIONS,
    )
    case = Case(parameters=parameters, input_tokens=prompt, output_tokens=answer - 1)
    row = np.array([column[0] for column in columns_of([case])])
    spec: ReplicaSpec = a_replica(
        timing=QUEUEING, max_num_seqs=seats, max_num_batched_tokens=2048, kv_blocks=10_000
    )
    rng = np.random.default_rng(3)
    lengths = rng.integers(answer - 60, answer + 61, count)
    rows = replay(a_fleet(spec), requests(np.zeros(count), np.full(count, prompt), lengths)).requests
    ends = np.sort(rows["end_s"])
    middle = slice(count // 4, 3 * count // 4)
    rate = (len(ends[middle]) - 1) / (ends[middle][-1] - ends[middle][0])
    assert rate == pytest.approx(seats / service_time(row, float(seats)), rel=0.03)

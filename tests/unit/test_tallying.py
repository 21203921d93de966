"""Figures of requests that stream by: as of all of them at once, or within what is said."""

from __future__ import annotations

import numpy as np
import pytest

from models.simulation import Outcome, ServiceSpec
from planner.replaying.tallying import OverTime, Spread, Tally

SERVICES = (ServiceSpec(name="a", ttft_slo_s=1.0, itl_slo_s=0.05), ServiceSpec(name="b"))


def table(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.uniform(0, 1000, n))
    outcome = rng.choice([o.value for o in Outcome], n, p=[0.02, 0.8, 0.05, 0.05, 0.03, 0.03, 0.02])
    first = arrival + rng.exponential(0.7, n)
    first[outcome != Outcome.DONE] = np.nan
    return {
        "service": rng.integers(0, 2, n), "outcome": outcome, "arrival_s": arrival, "first_token_s": first,
        "end_s": np.where(outcome == Outcome.DONE, first + rng.exponential(3, n), arrival + 1),
        "input_tokens": rng.integers(1, 99, n), "output_tokens": rng.integers(1, 99, n),
        "prefix_hit_tokens": rng.integers(0, 2, n), "preemptions": rng.integers(0, 2, n),
    }  # fmt: skip


def test_pieces_give_the_figures_of_the_whole() -> None:
    rows = table(5000)
    whole, cut = Tally(SERVICES), Tally(SERVICES)
    whole(rows)
    for piece in np.array_split(np.arange(5000), 37):
        cut({name: column[piece] for name, column in rows.items()})
    for k in (0, 1, -1):
        one, other = whole.service(k), cut.service(k)
        assert (one.outcomes.tolist(), one.good) == (other.outcomes.tolist(), other.good)
        assert one.ttft.percentile_s(95) == other.ttft.percentile_s(95)
    assert whole.rows == 5000
    got, expected = cut.over_time.table(), whole.over_time.table()
    for name, column in expected.items():
        np.testing.assert_array_equal(got[name], column)


def test_figures_are_those_of_the_rows() -> None:
    rows, tally = table(4000), Tally(SERVICES)
    tally(rows)
    done = (rows["outcome"] == Outcome.DONE) & (rows["service"] == 0)
    ttft = (rows["first_token_s"] - rows["arrival_s"])[done]
    itl = np.where(rows["output_tokens"] > 1, rows["end_s"] - rows["first_token_s"], 0) / np.maximum(
        rows["output_tokens"] - 1, 1
    )
    one = tally.service(0)
    assert one.ttft.percentile_s(99) == pytest.approx(np.percentile(ttft, 99))
    assert one.good == int(np.sum(done & (rows["first_token_s"] - rows["arrival_s"] <= 1) & (itl <= 0.05)))
    assert one.outcomes.tolist() == [
        int(np.sum((rows["outcome"] == o) & (rows["service"] == 0))) for o in Outcome
    ]


@pytest.mark.parametrize("scale", [1e-4, 1.0, 300.0])
@pytest.mark.parametrize("percent", [1, 50, 95, 99, 99.9])
def test_percentiles_of_bins_are_within_half_a_percent(scale: float, percent: float) -> None:
    values = np.random.default_rng(3).lognormal(0, 1, 50_000) * scale
    spread = Spread(limit=10)
    for piece in np.array_split(values, 9):
        spread.add(piece)
    assert not spread.exact
    assert spread.percentile_s(percent) == pytest.approx(np.percentile(values, percent), rel=0.0051)
    assert spread.mean_s() == pytest.approx(values.mean())


def test_nothing_has_no_percentile() -> None:
    assert (Spread().percentile_s(50), Spread().mean_s()) == (None, None)


def test_time_is_cut_into_fewer_than_512_intervals_and_nothing_is_lost() -> None:
    over = OverTime()
    for end in (10.0, 5_000.0, 100_000.0):
        over.add("arrivals", np.linspace(0, end, 1000))
        over.add_ttft(np.linspace(0, end, 1000), np.full(1000, 0.5))
    found = over.table()
    assert len(found["time_s"]) <= 512
    assert found["arrivals"].sum() * over.width_s == pytest.approx(3000)
    seen = found["ttft_p95_s"][~np.isnan(found["ttft_p95_s"])]
    assert seen == pytest.approx(np.full(len(seen), 0.5), rel=0.05)

"""Promises and distances as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from models.workload import Slo
from planner.wording import distance_phrase, promises_phrase, statistic_phrase


@pytest.mark.parametrize(
    ("slo", "text"),
    [
        (Slo(), "no promise"),
        (Slo(ttft_s=3, itl_s=0.05), "TTFT ≤ 3 s, ITL ≤ 50 ms on average"),
        (Slo(ttft_s=0.35, itl_s=0.0075), "TTFT ≤ 350 ms, ITL ≤ 7.5 ms on average"),
        (Slo(e2e_s=20, at=95), "E2E ≤ 20 s at p95"),
    ],
)
def test_a_promise_names_its_statistic(slo: Slo, text: str) -> None:
    assert promises_phrase(slo) == text


@pytest.mark.parametrize(
    ("at", "text"), [(None, "statistic not said"), ("mean", "on average"), (99.9, "at p99.9")]
)
def test_a_statistic(at: Any, text: str) -> None:
    assert statistic_phrase(at) == text


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (None, "nothing like it was measured"),
        ((1000, 400), "1,000 × 400 tokens, this very shape"),
        ((2000, 100), "2,000 × 100 tokens, within a factor of 4"),
    ],
)
def test_a_distance_is_that_of_the_length_that_is_farther_off(
    measured: tuple[int, int] | None, text: str
) -> None:
    assert distance_phrase((1000, 400), measured) == text

"""How long the queueing model takes for a large fleet's questions: candidates × request shapes, compiled.

``python tests/benchmarks/rating_speed.py [--candidates N] [--buckets N]`` prints process time on one core, by
what is promised. Parameters, lengths and promises are drawn as operators have them.
"""

from __future__ import annotations

import argparse
import time
from typing import Final

import numpy as np

from planner.performance.queueing import Cases
from planner.performance.queueing.sizing import size_cases

__all__ = ["KINDS", "fleet_of_cases", "main", "seconds"]

KINDS: Final = {
    "mean": (0.0, 1.0),
    "mean, bursty": (0.0, 2.0),
    "p95": (0.95, 1.0),
    "p99, bursty": (0.99, 2.0),
}
"""Level of the promise and coefficient of variation of the times between arrivals, by name."""


def fleet_of_cases(candidates: int, buckets: int, *, level: float = 0.0, cv: float = 1.0) -> Cases:
    """Random replicas (7B to 400B on one to eight accelerators) times random request shapes."""
    generator = np.random.default_rng(17)
    count = candidates * buckets
    alpha = np.repeat(generator.uniform(4e-3, 30e-3, candidates), buckets)
    size = np.repeat(generator.uniform(0.3, 3.0, candidates), buckets)
    batch = np.repeat(generator.choice([64.0, 128.0, 256.0], candidates), buckets)
    inputs = np.tile(np.exp(generator.uniform(np.log(64), np.log(16_000), buckets)).round(), candidates)
    outputs = np.tile(np.exp(generator.uniform(np.log(16), np.log(2_000), buckets)).round(), candidates)
    same = np.ones(count)
    return Cases(
        form=0 * same, alpha_s=alpha, beta_s=3e-5 * size, gamma_s=5e-8 * size, computed=inputs, context=inputs,
        output=outputs, steps=outputs, verified=same, prefills=same, chunk=8192 * same, batch=batch, queue=100 * same,
        spread=2 / (1 + cv**2) * same, level=level * same, ttft_s=2.0 * same, itl_s=0.06 * same, e2e_s=np.inf * same,
        max_in_service=0.7 * batch, max_waiting=2.0 * same,
    )  # fmt: skip


def seconds(cases: Cases) -> float:
    """Process time of one call, s, after a first one has compiled."""
    size_cases(Cases(*(column[:1] for column in cases)))
    begun = time.process_time()
    size_cases(cases)
    return time.process_time() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--buckets", type=int, default=20)
    asked = parser.parse_args()
    count = asked.candidates * asked.buckets
    for name, (level, cv) in KINDS.items():
        taken = seconds(fleet_of_cases(asked.candidates, asked.buckets, level=level, cv=cv))
        print(f"{name:14} {count:9,} questions {taken:7.2f} s {taken / count * 1e6:7.2f} µs each")


if __name__ == "__main__":
    main()

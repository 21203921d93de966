"""How fast the twin replays: ``python tests/benchmarks/twin_speed.py [REQUESTS] [REPLICAS]``.

Poisson traffic of 0.6 req/s and replica, prompts of 100 to 2,000 tokens, answers of 10 to 400; rows go to a sink, as
for traces larger than memory. One short run first, so that compiling is not timed.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator

import numpy as np

from models.simulation import ReplicaSpec, ServiceSpec, TwinSpec
from models.twin_timing import LinearTiming
from planner.simulation.twin import Twin
from planner.traces.requests import RequestChunk

CHUNK = 50_000


def traffic(n: int, rate: float) -> Iterator[RequestChunk]:
    """``n`` requests in chunks."""
    rng, start = np.random.default_rng(1), 0.0
    for first in range(0, n, CHUNK):
        count = min(CHUNK, n - first)
        arrivals = start + np.cumsum(rng.exponential(1 / rate, count))
        start = float(arrivals[-1])
        inputs, outputs = rng.integers(100, 2000, count), rng.integers(10, 400, count)
        yield RequestChunk(arrivals, inputs.astype(np.int32), outputs.astype(np.int32))


def seconds(n: int, replicas: int) -> tuple[float, float]:
    """Wall and CPU seconds of a run."""
    timing = LinearTiming(base_s=0.01, per_request_s=1e-4, per_prefill_token_s=4e-5, per_kv_token_s=1e-8)
    spec = ReplicaSpec(variant="v", service="a", timing=timing, kv_blocks=20_000, initial_replicas=replicas)
    fleet = TwinSpec(services=(ServiceSpec(name="a"),), replicas=(spec,))
    wall, cpu = time.perf_counter(), time.process_time()
    twin = Twin(fleet, traffic(n, 0.6 * replicas), sink=lambda rows: None)
    while not twin.idle:
        twin.advance(twin.now_s + 600.0)
    twin.finish()
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    requests, replicas = (int(a) for a in [*sys.argv[1:], "1000000", "50"][:2])
    seconds(100, 2)
    for n in (requests // 4, requests):
        wall, cpu = seconds(n, replicas)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{n:>9,} requests, {replicas} replicas: {wall:.2f} s ({cpu:.2f} s CPU), peak {peak:.2f} GiB")

"""How fast the twin replays: ``python tests/benchmarks/twin_speed.py [--azure FILE] [--write DOC]``.

Three tables in one run: the Azure conversation hour (19,366 requests) on 10 replicas from its file to figures; requests
from 125,000 to a million on 50 replicas, each in a process of its own, rows to a sink; and the million as
``fleetplan simulate`` counts it, percentiles and all. A short run first, so that compiling is not timed. ``--write``
puts the table into a document between its marks.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from models.simulation import ReplicaSpec, ServiceSpec, TwinSpec
from models.twin_timing import LinearTiming
from planner.replaying.tallying import Tally
from planner.simulation.twin import Twin
from planner.traces import HowRead, RequestChunk, Trace, open_trace

CHUNK: Final = 50_000
SIZES: Final = (125_000, 250_000, 500_000, 1_000_000)
MARKS: Final = ("<!-- twin speed: begin -->", "<!-- twin speed: end -->")
HEADER: Final = ("run", "requests", "replicas", "wall s", "CPU s", "µs per request", "peak GiB")


def traffic(n: int, rate: float) -> Iterator[RequestChunk]:
    """``n`` requests in chunks: prompts of 100 to 2,000 tokens, answers of 10 to 400."""
    rng, start = np.random.default_rng(1), 0.0
    for first in range(0, n, CHUNK):
        count = min(CHUNK, n - first)
        arrivals = start + np.cumsum(rng.exponential(1 / rate, count))
        start = float(arrivals[-1])
        inputs, outputs = rng.integers(100, 2000, count), rng.integers(10, 400, count)
        yield RequestChunk(arrivals, inputs.astype(np.int32), outputs.astype(np.int32))


def fleet(replicas: int) -> TwinSpec:
    """Replicas of a small LLM."""
    timing = LinearTiming(base_s=0.01, per_request_s=1e-4, per_prefill_token_s=4e-5, per_kv_token_s=1e-8)
    spec = ReplicaSpec(variant="v", service="a", timing=timing, kv_blocks=20_000, initial_replicas=replicas)
    return TwinSpec(services=(ServiceSpec(name="a", ttft_slo_s=1.0),), replicas=(spec,))


def replayed(
    trace: Callable[[], Trace], replicas: int, sink: Callable[[Any], None]
) -> tuple[int, float, float]:
    """Requests, and wall and CPU seconds of a run."""
    spec, count = fleet(replicas), 0
    wall, cpu = time.perf_counter(), time.process_time()
    twin = Twin(spec, trace(), sink=sink)
    while not twin.idle:
        twin.advance(twin.now_s + 600.0)
    count = sum(twin.finish().arrivals.values())
    return count, time.perf_counter() - wall, time.process_time() - cpu


def row(name: str, figures: tuple[int, float, float], replicas: int) -> str:
    """A line of the table."""
    count, wall, cpu = figures
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return f"| {name} | {count:,} | {replicas} | {wall:.2f} | {cpu:.2f} | {1e6 * wall / count:.1f} | {peak:.2f} |"


def one(name: str, azure: str | None) -> str:
    """One run in this process, after one that compiles."""
    replayed(lambda: traffic(100, 1.0), 2, lambda rows: None)
    tally = Tally(fleet(1).services)
    if azure is not None:
        return row(name, replayed(lambda: open_trace(azure, HowRead()), 10, tally), 10)
    count = int(name.replace(",", "").split()[0])
    sink: Callable[[Any], None] = tally if "figures" in name else lambda rows: None
    return row(name, replayed(lambda: traffic(count, 30.0), 50, sink), 50)


def main() -> None:
    """Measure, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--azure", help="azure2023_conv.csv; default: in FLEETPLAN_TEST_DATA, if that is set")
    parser.add_argument("--write", type=Path, help="document with the marks of this table")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="requests, parted by commas")
    given = parser.parse_args()
    if given.one is not None:
        print(one(given.one, given.azure))
        return
    data = os.environ.get("FLEETPLAN_TEST_DATA")
    azure = given.azure or (f"{data}/traces/azure2023_conv.csv" if data else None)
    asked = (
        [["--one", "Azure conversation hour, from its file to figures", "--azure", azure]] if azure else []
    )
    sizes = [int(size) for size in given.sizes.split(",")]
    asked += [["--one", f"{size:,} Poisson"] for size in sizes]
    asked += [["--one", f"{sizes[-1]:,} Poisson, to figures"]]
    lines = [f"| {' | '.join(HEADER)} |", f"|{'|'.join(['---', *['---:'] * (len(HEADER) - 1)])}|"]
    for arguments in asked:
        command = [sys.executable, __file__, *arguments]
        lines.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
        print(lines[-1], flush=True)
    if given.write is not None:
        text = given.write.read_text(encoding="utf-8")
        before, after = text.split(MARKS[0])[0], text.split(MARKS[1])[1]
        given.write.write_text(before + "\n".join([MARKS[0], *lines, MARKS[1]]) + after, encoding="utf-8")


if __name__ == "__main__":
    main()

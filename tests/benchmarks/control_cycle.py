"""One cycle of the controller on a large fleet: answers of Prometheus -> observations -> analysis -> plan -> gauge.

Everything is what the controller runs, but the network and the cluster: bodies of answers are in memory, and a
discovery hands variants out. Demands drift between cycles, and replicas become what was decided, so that plans are warm.

Usage: python tests/benchmarks/control_cycle.py [--replicas N] [--services N] [--variants N] [--policy NAME] [--cycles N]
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from planner.control.actuators import Connections, actuators_from
from planner.control.collectors.exposition import parse
from planner.control.collectors.prometheus import PrometheusOptions, PrometheusSource
from planner.control.collectors.prometheus_api import PrometheusApi
from planner.control.deciding import Decider
from planner.control.running.leading import Alone
from planner.control.running.live import LiveConfiguration
from planner.control.running.loop import Loop, Parts
from planner.control.running.metering import Meters
from planner.control.running.observing import Eyes
from planner.control.running.recording import Records
from tests.benchmarks.control_speed import page
from tests.benchmarks.cycle_timing import SECONDS, TIMED_POLICIES, TimedSource
from tests.benchmarks.cycle_world import World
from tests.control.controller_builders import settings_layer

__all__ = ["PHASES", "Bench", "main", "table"]

PHASES: Final = ("receive", "analyze", "plan", "emit", "record", "total", "collect")
"""In the order of a cycle; ``collect`` is the garbage collector, which rests in a cycle and has its turn between two."""
_CYCLE_S: Final = 15.0
_DRIFT: Final = 0.02
_KIB: Final = 1024.0
_PAGES: Final = 200


class WorldClock:
    """Durations are real; moments are those of the world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def monotonic_s(self) -> float:
        """See :class:`planner.clock.Clock`."""
        return time.perf_counter()

    def unix_s(self) -> float:
        """See :class:`planner.clock.Clock`."""
        return self._world.now_s

    def sleep(self, duration_s: float) -> None:
        """See :class:`planner.clock.Clock`."""
        time.sleep(duration_s)


class Bench:
    """A loop over a world.

    Args:
        world: what is seen.
        policy: who decides, by name.
        options: of the policy.
    """

    def __init__(self, world: World, policy: str, options: Mapping[str, object]) -> None:
        clock = WorldClock(world)
        settings = {
            "act": True,
            "rules": {"policy": policy, "stabilize_down_s": 0},
            "policies": {policy: dict(options)},
            "records": {"events": False},
        }
        live = LiveConfiguration([settings_layer(json.dumps(settings))])
        how = PrometheusOptions(url="http://127.0.0.1:9090", parallel=1)
        source = PrometheusSource(how, clock, api=PrometheusApi(how, clock, transport=world))
        actuators = actuators_from([("gauge", {})], Connections(clock=clock))
        actuators.lead(leading=True)
        self.world = world
        self.parts = Parts(
            who="benchmark",
            clock=clock,
            live=live,
            eyes=Eyes(world, {"prometheus": TimedSource(source)}),
            deciding=Decider(clock=clock, policies=TIMED_POLICIES),
            actuators=actuators,
            election=Alone("benchmark"),
            records=Records(live.settings.records, who="benchmark", unix_s=world.now_s),
            meters=Meters(),
        )
        self.loop = Loop(self.parts)

    def cycle(self) -> dict[str, float]:
        """One cycle and one reading of what it exports: wall time by phase, s."""
        SECONDS.taken()
        start_s = time.perf_counter()
        record = self.loop.turn()
        cycle_s = time.perf_counter() - start_s
        with SECONDS.of("collect"):
            gc.collect()
        with SECONDS.of("expose"):
            self.parts.actuators.exposition(None)
        ours, parts = record.report.seconds, SECONDS.taken()
        receive_s, plan_s = ours["observe"], parts.get("plan", 0.0)
        emit_s, total_s = ours["act"] + parts["expose"], cycle_s + parts["expose"]
        analyze_s = ours["people"] + ours["decide"] + ours["check"] - plan_s
        known = {"receive": receive_s, "analyze": analyze_s, "plan": plan_s, "emit": emit_s}
        rest = {"record": total_s - sum(known.values()), "total": total_s, "collect": parts["collect"]}
        return known | rest

    def follow(self) -> None:
        """Replicas become what was decided, and the world goes on."""
        rows = self.loop.rows.values()
        desired = {(row.namespace, row.name): row.desired for row in rows if row.desired is not None}
        self.world.move(desired, by=_DRIFT, seconds=_CYCLE_S)

    def said(self) -> str:
        """What the cycle was about, in one line."""
        proposal, report = SECONDS.proposal, self.loop.report
        about = "no problem was solved"
        if proposal is not None and proposal.problem is not None and proposal.solution is not None:
            levels = {level.name: level.gap for level in proposal.solution.proof.levels}
            gaps = ", ".join(f"{name} {'-' if gap is None else f'{gap:.2%}'}" for name, gap in levels.items())
            about = (
                f"{len(proposal.problem.demands):,} services and {len(proposal.problem.candidates):,} candidates planned,"
                f" {proposal.solution.status}, gaps: {gaps}"
            )
        return f"{report.replicas_before:,} -> {report.replicas_after:,} replicas, {about}"


def table(cycles: Sequence[Mapping[str, float]]) -> str:
    """Markdown: median and worst of each phase, s."""
    lines = ["| phase | median s | worst s |", "|---|--:|--:|"]
    for phase in PHASES:
        values = [cycle[phase] for cycle in cycles]
        lines.append(f"| {phase} | {statistics.median(values):.2f} | {max(values):.2f} |")
    return "\n".join(lines)


def scraping() -> str:
    """How fast raw pages are read by one core."""
    text = page()
    start_s = time.process_time()
    for _ in range(_PAGES):
        parse(text, lambda name: name.startswith("vllm:"))
    each_s = (time.process_time() - start_s) / _PAGES
    return f"direct scraping: {1 / each_s:,.0f} pages/s of {text.count(chr(10)):,} lines and one core"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replicas", type=int, default=10_000)
    parser.add_argument("--services", type=int, default=1_000)
    parser.add_argument("--variants", type=int, default=4, help="of each service")
    parser.add_argument("--policy", choices=TIMED_POLICIES.names(), default="planner")
    parser.add_argument("--limit", type=float, default=None, help="of one solve, s; None: as it ships")
    parser.add_argument("--cycles", type=int, default=6, help="after the first, which is cold")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(argv)
    world = World(asked.services, asked.replicas, asked.variants, asked.seed)
    options = {} if asked.limit is None or asked.policy != "planner" else {"time_limit_s": asked.limit}
    bench = Bench(world, asked.policy, options)
    cycles = []
    for number in range(asked.cycles + 1):
        cycles.append(bench.cycle())
        shown = ", ".join(f"{phase} {cycles[-1][phase]:.2f}" for phase in PHASES)
        print(f"cycle {number}: {shown}; {bench.said()}", flush=True)
        for each in bench.loop.findings[:3]:
            print(f"  {each.subject}: {each.problem}")
        bench.follow()
    print(table(cycles[1:]))
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB
    print(f"peak memory: {peak_mib:,.0f} MiB, the made-up answers of Prometheus among them")
    print(scraping())


if __name__ == "__main__":
    main()

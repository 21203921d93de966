"""Forecasts of a thousand services inside of a cycle: how long each look takes, and how many were foretold.

``python tests/benchmarks/control_forecasts.py [SERVICES]``
"""

from __future__ import annotations

import sys
import time

import numpy as np

from models.controller import ControllerSettings
from planner.clock import SystemClock
from planner.control.analysis import AnalysisMemory, Service, analyze
from planner.control.deciding.foresight import Foresight
from tests.observed_fleets import a_variant, engines_of, observed, some_traffic

STEP_S, STEPS, CYCLES = 60.0, 4320, 120
NOW_S = 1_000_000 * STEP_S


def services(count: int, settings: ControllerSettings) -> tuple[Service, ...]:
    """Services with a replica each, as analysis sees them."""
    variants = [a_variant(f"v{place}", ready=1, model=f"llm-{place}") for place in range(count)]
    engines = [one for variant in variants for one in engines_of(variant, (0.3, 0.0))]
    traffic = [some_traffic(f"llm-{place}") for place in range(count)]
    seen = observed(variants, engines, traffic=traffic)
    return analyze(seen, settings, memory=AnalysisMemory(), now_s=NOW_S)[0].services


def main(count: int = 1000) -> None:
    """Print it."""
    settings = ControllerSettings.model_validate({"rules": {"policy": "planner", "forecast": True}})
    found, foresight = services(count, settings), Foresight(SystemClock())
    keys = [f"{one.seen.key}|req/s" for one in found]
    draw = np.random.default_rng(0)
    foresight.look((), settings, now_s=NOW_S)
    for step in range(STEPS):
        wave = 10 + 8 * np.sin(2 * np.pi * step / 1440)
        rates = np.maximum(0.0, wave + draw.standard_normal(count))
        past_s = NOW_S - (STEPS - step) * STEP_S
        foresight._history.note(dict(zip(keys, rates.tolist(), strict=True)), past_s)
    times = []
    for cycle in range(CYCLES):
        began = time.perf_counter()
        ahead = foresight.look(found, settings, now_s=NOW_S + 15.0 * cycle)
        times.append(time.perf_counter() - began)
        if cycle % 20 == 19:
            told = sum(bool(one.method) for one in ahead.values())
            print(f"after {cycle + 1:3} cycles: {told:5} of {count} foretold")
    times.sort()
    print(f"a look takes {times[len(times) // 2]:.3f} s in the middle, {times[-1]:.3f} s at most")


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))

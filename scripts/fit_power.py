"""Fit the power model to the ML.ENERGY runs and write data/performance/power.yaml.

FLEETPLAN_TEST_DATA=... python scripts/fit_power.py [FILE]
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from pathlib import Path

import yaml
from measured_rows import power_runs, test_data

from planner.performance.power.fitting import fit_draw, left_out_draws
from planner.planning import known_catalog

_DIGITS = 4
_HEAD = """\
# Power of an accelerator by the share of its peak FLOP/s in use: written by scripts/fit_power.py, source F4 of
# data/SOURCES.md. Each name stands in planner/performance/power/model.py.
"""


def main() -> None:
    """Fit, validate, write."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("data/performance/power.yaml")
    runs = power_runs(test_data(), known_catalog())
    floor, load, spread = fit_draw(runs)
    errors: dict[str, list[float]] = defaultdict(list)
    for run, modeled in left_out_draws(runs):
        errors[run.llm].append(abs(modeled / run.power_w - 1))
    document = {
        "measured_on": "H100",
        "floor": round(floor, _DIGITS),
        "load": round(load, _DIGITS),
        "spread": round(spread, _DIGITS),
        "idle_share": round(runs[0].idle_w / runs[0].tdp_w, _DIGITS),
        "error": round(statistics.median(statistics.fmean(found) for found in errors.values()), _DIGITS),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_HEAD + yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    print(f"{len(runs)} runs of {len(errors)} LLMs, written to {target}")


if __name__ == "__main__":
    main()

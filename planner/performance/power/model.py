"""Power of one accelerator from the share of its peak FLOP/s that is used.

An idle accelerator draws its idle power; one of g that run a loaded replica together draws, with u the share of
its peak FLOP/s in use::

    draw = idle + (TDP - idle) x (1 - exp(-(floor + load x sqrt(u)) / g^spread))

which rises from a floor (iterations run at full clock however few sequences they carry) toward the thermal
design power and never above it; the more accelerators, the longer they wait for one another. The three are fitted on runs of the ML.ENERGY leaderboard on H100;
other accelerators are taken to behave alike between their own idle and thermal design power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from models.hardware import Accelerator
from models.llm import Llm, Precision
from models.performance import Rating, RatingQuestion
from models.variant import Role
from planner.performance.fitted import read_fitted
from planner.performance.roofline.work import peak_flops

__all__ = ["Draw", "KnownDraw", "expected_draw", "known_draw", "used_share"]

_FLOPS_PER_PARAMETER: Final = 2
_KEYS: Final = ("floor", "load", "spread", "idle_share", "error")


@dataclass(frozen=True, slots=True)
class Draw:
    """Modeled power of one replica.

    Attributes:
        power_w: at the rated rate, W.
        idle_w: of its accelerators without load, W.
        source: what it is from, and where it is scaled from another accelerator.
    """

    power_w: float
    idle_w: float
    source: str


@dataclass(frozen=True, slots=True)
class KnownDraw:
    """Fitted figures.

    Attributes:
        floor: of a running replica without load, see the formula.
        load: weight of the used share of peak.
        spread: how much less each draws the more accelerators wait for one another.
        idle_share: idle power over thermal design power of the accelerator that was measured.
        error: mean absolute relative error on LLMs that were left out, median over LLMs.
        measured_on: the accelerator that was measured.
    """

    floor: float
    load: float
    spread: float
    idle_share: float
    error: float
    measured_on: str

    def power_w(self, tdp_w: float, idle_w: float, used: float, *, gpus: int = 1) -> float:
        """Draw of one accelerator of ``gpus``, W, when it uses this share of its peak FLOP/s."""
        busy = (self.floor + self.load * math.sqrt(used)) / gpus**self.spread
        return idle_w + (tdp_w - idle_w) * -math.expm1(-busy)


def used_share(
    llm: Llm, accelerator: Accelerator, weights: Precision, *, tokens_per_s: float
) -> float | None:
    """Share of peak FLOP/s that one accelerator uses for so many tokens per second; None: the peak is unknown.

    Args:
        llm: the network.
        accelerator: where it runs.
        weights: precision they are multiplied in, where the accelerator has units for it.
        tokens_per_s: computed by all accelerators of a replica, over their number.
    """
    peak = peak_flops(accelerator, weights)
    if not peak:
        return None
    return min(1.0, _FLOPS_PER_PARAMETER * (llm.active_parameters or llm.parameters) * tokens_per_s / peak)


def expected_draw(question: RatingQuestion, rating: Rating, known: KnownDraw | None = None) -> Draw | None:
    """Modeled draw of a replica at its rated rate; None where TDP or peak of the accelerator is unknown."""
    known = known or known_draw()
    accelerator, variant = question.accelerator, question.variant
    gpus = variant.parallelism.gpus
    computed = {
        Role.PREFILL: question.input_tokens,
        Role.DECODE: question.output_tokens,
        Role.BOTH: question.input_tokens + question.output_tokens,
    }[variant.role]
    used = used_share(
        question.llm,
        accelerator,
        question.precision,
        tokens_per_s=rating.rated_rps * computed / gpus,
    )
    if used is None or accelerator.tdp_w is None:
        return None
    idle_w = known.idle_share * accelerator.tdp_w if accelerator.idle_w is None else accelerator.idle_w
    source = f"modeled at the rated rate (±{known.error:.0%})"
    if accelerator.id != known.measured_on:
        source += f", scaled from {known.measured_on} by TDP"
    each_w = known.power_w(accelerator.tdp_w, min(idle_w, accelerator.tdp_w), used, gpus=gpus)
    return Draw(gpus * each_w, gpus * idle_w, source)


@cache
def known_draw(path: Path | None = None) -> KnownDraw:
    """Read the fitted figures.

    Args:
        path: another file of the same form; None: data/performance/power.yaml as it came with fleetplan.

    Raises:
        CatalogError: the file is missing or does not hold what it must.
    """
    return read_fitted("power", path, noun="figures of the power model", parse=_parsed)


def _parsed(document: Mapping[str, Any]) -> KnownDraw:
    values = {key: float(document[key]) for key in _KEYS}
    if not all(0 <= value < math.inf for value in values.values()) or values["idle_share"] > 1:
        raise ValueError("figures out of range")
    return KnownDraw(measured_on=str(document["measured_on"]), **values)

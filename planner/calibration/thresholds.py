"""Load sweep -> tau and gamma of a variant, and delta: where a replica is full, and how early to start the next one.

The knee is the first load at which latency leaves the SLO, requests fail, or throughput stops growing. KV usage and
queue there are tau. While a new replica starts, the load of those that run may grow by a share b; gamma is the distance
from the knee back to the usage at 1/(1 + b) of the rate there, read off the same sweep, and delta is b::

    b = z·CV/√(λ·W·n) + growth·S,   z = Φ⁻¹(confidence^(1/max(1, S/W)))

λ is the rate at the knee of one of n replicas, W the time a request stays (λ·W are in flight, and so many fluctuate like a
sum of that many gaps between arrivals), S the time to start: in it S/W times as many independent chances to exceed b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from scipy.stats import norm

from models.calibration import LimitedBy, ThresholdProposal
from models.load import LoadPoint
from models.saturation import Headroom, SaturationThresholds
from models.workload import Slo
from planner.errors import ConfigurationError, Finding

__all__ = ["SweepOptions", "propose_thresholds", "sweeps_of"]

_DEFAULTS: Final = SaturationThresholds()
_ERRORS: Final = 0.01
_GROWS: Final = 0.25
"""Least growth of ln(rate) over ln(load): 1 where load is free, 0 where the replica is full."""
_FULL: Final = 0.95
"""Above this vLLM preempts; no tau is proposed there."""
_MOST: Final = 0.5
_SAME_LOAD: Final = 1e-9
_LEAST_POINTS: Final = 3
_LEAST_GAMMA_KV: Final = 0.02
_SMALLEST_KV: Final = 2e-4
_MOST_BURST: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """What is known beside the sweep.

    Attributes:
        slo: promises to keep; without any the knee is where throughput stops growing.
        startup_s: time from request to ready of a replica.
        arrival_cv: coefficient of variation of gaps between arrivals; 1: Poisson.
        growth_per_s: share by which the load may grow per second beside chance.
        replicas: replicas that share the load.
        confidence: probability that headroom lasts while a replica starts.
        kv_tokens: KV capacity of a replica, where the reports state no usage; None: unknown.
    """

    slo: Slo = Slo()  # noqa: RUF009 - a frozen value
    startup_s: float = 120.0
    arrival_cv: float = 1.0
    growth_per_s: float = 0.0
    replicas: int = 1
    confidence: float = 0.95
    kv_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class _Knee:
    """Last good point, the share of the way to the next one that is still good, and what ends it."""

    index: int
    way: float
    limited_by: LimitedBy


def propose_thresholds(
    points: Sequence[LoadPoint], variant: str, *, options: SweepOptions | None = None
) -> ThresholdProposal:
    """Thresholds for one variant from a sweep of one request shape.

    Args:
        points: load levels of one replica, in any order.
        variant: name for the proposal.
        options: what is known beside the sweep.

    Raises:
        ConfigurationError: too few load levels, several shapes, or even the lowest load breaks the SLO.
    """
    options = options or SweepOptions()
    sweep = sorted((point for point in points if _load(point) > 0), key=_load)
    _check(sweep, variant)
    knee = _knee(sweep, options.slo)
    if knee is None:
        found = f"the lowest load ({sweep[0].achieved_rps:.3g} req/s) outside the SLO or with failures"
        raise ConfigurationError.from_findings(
            [Finding("", None, variant, found, "a sweep that starts inside the SLO")]
        )
    rate = (
        _at(sweep, knee.index + knee.way, lambda point: point.achieved_rps / (point.origin.replicas or 1))
        or 1e-6
    )
    stay = _at(sweep, knee.index + knee.way, lambda point: point.stay_s) or 1.0
    burst = _burst(rate, stay, options)
    thresholds, notes = _thresholds(sweep, knee, burst, options)
    if knee.limited_by is LimitedBy.NOTHING_SEEN:
        notes.append("the sweep never saturated the replica, so tau is a lower bound: measure at higher load")
    return ThresholdProposal(
        variant=variant,
        accelerator=sweep[0].origin.accelerator,
        input_tokens=sweep[0].input_tokens,
        output_tokens=sweep[0].output_tokens,
        thresholds=thresholds,
        headroom=Headroom(relative=round(burst, 3)),
        limited_by=knee.limited_by,
        knee_rps=rate,
        last_good=knee.index,
        burst=burst,
        startup_s=options.startup_s,
        arrival_cv=options.arrival_cv,
        notes=tuple(notes),
    )


def sweeps_of(points: Sequence[LoadPoint]) -> tuple[tuple[LoadPoint, ...], ...]:
    """Points by request shape; shapes that differ only as random lengths do count as one."""
    sweeps: list[list[LoadPoint]] = []
    for point in points:
        home = next((sweep for sweep in sweeps if _are_alike([*sweep, point])), None)
        if home is None:
            sweeps.append([point])
        else:
            home.append(point)
    return tuple(tuple(sweep) for sweep in sweeps)


def _check(sweep: Sequence[LoadPoint], variant: str) -> None:
    findings = []
    if len(sweep) < _LEAST_POINTS:
        found = f"{len(sweep)} load levels with a known number in flight"
        findings.append(
            Finding("", None, variant, found, f"at least {_LEAST_POINTS}, from light load to saturation")
        )
    shapes = sorted({point.shape for point in sweep})
    if len(shapes) > 1 and not _are_alike(sweep):
        said = ", ".join(f"{i}/{o}" for i, o in shapes[:6])
        findings.append(Finding("", None, variant, f"lengths {said}", "a sweep of one request shape"))
    if findings:
        raise ConfigurationError.from_findings(findings)


def _are_alike(sweep: Sequence[LoadPoint]) -> bool:
    """Whether lengths differ only as random ones do from run to run."""
    lengths = ([p.input_tokens for p in sweep], [p.output_tokens for p in sweep])
    return all(max(each) <= 1.6 * min(each) for each in lengths)


def _knee(sweep: Sequence[LoadPoint], slo: Slo) -> _Knee | None:
    """Where the good part ends; None: before it starts.

    One run that is off must not decide: a promise counts as broken from where most later runs break it, and throughput has
    stopped growing where no later run grows it.
    """
    ways = [_way_inside(sweep[index - 1] if index else None, point, slo) for index, point in enumerate(sweep)]
    broken = _lasting([way is not None for way in ways])
    failing = _lasting([point.error_share > _ERRORS for point in sweep])
    flat = next((index for index in range(len(sweep)) if _is_flat_after(sweep, index)), None)
    ends = [
        (broken, LimitedBy.SLO),
        (failing, LimitedBy.ERRORS),
        (None if flat is None else flat + 1, LimitedBy.THROUGHPUT),
    ]
    found = [(end, limit) for end, limit in ends if end is not None]
    if not found:
        return _Knee(len(sweep) - 1, 0.0, LimitedBy.NOTHING_SEEN)
    end, limit = min(found, key=lambda each: each[0])
    if end == 0:
        return None
    way = ways[end] if limit is LimitedBy.SLO else None
    return _Knee(end - 1, way or 0.0, limit)


def _lasting(broken: Sequence[bool]) -> int | None:
    """The first index that is broken, as are the next and most after it; None: there is none."""
    for start in range(len(broken)):
        rest = broken[start:]
        if all(rest[:2]) and sum(rest) > _MOST * len(rest):
            return start
    return None


def _is_flat_after(sweep: Sequence[LoadPoint], index: int) -> bool:
    """Whether there are later runs, and none has a rate that grows with its load."""
    later = sweep[index + 1 :]
    return bool(later) and all(_growth(sweep[index], point) < _GROWS for point in later)


def _way_inside(previous: LoadPoint | None, point: LoadPoint, slo: Slo) -> float | None:
    """Share of the way from the previous point at which the first promise breaks; None: the point keeps all."""
    percentile = slo.at if isinstance(slo.at, float) else None
    ways = []
    for name, target in (("ttft", slo.ttft_s), ("itl", slo.itl_s), ("e2e", slo.e2e_s)):
        seen = _latency(point, name, percentile)
        if target is None or seen is None or seen <= target:
            continue
        before = _latency(previous, name, percentile) if previous is not None else None
        ways.append(
            0.0 if before is None or seen <= before else max(0.0, (target - before) / (seen - before))
        )
    return min(ways, default=None)


def _latency(point: LoadPoint, name: str, percentile: float | None) -> float | None:
    spread = getattr(point, name)
    return None if spread is None else spread.at_s(percentile)


def _growth(previous: LoadPoint, point: LoadPoint) -> float:
    """Elasticity of the rate: d ln(rate) / d ln(load) between two points; infinite between equal loads."""
    more = math.log(_load(point) / _load(previous))
    return math.log(point.achieved_rps / previous.achieved_rps) / more if more > _SAME_LOAD else math.inf


def _load(point: LoadPoint) -> float:
    """Requests in flight, by whoever saw more of them: the load generator or the engine; 0: nobody did."""
    return max(point.in_flight or 0.0, (point.running or 0.0) + (point.waiting or 0.0))


def _at(sweep: Sequence[LoadPoint], position: float, of: Callable[[LoadPoint], float | None]) -> float | None:
    """A figure between two points, linear; None: not stated on both sides."""
    low = min(int(position), len(sweep) - 1)
    high = min(low + 1, len(sweep) - 1)
    ends = of(sweep[low]), of(sweep[high])
    if ends[0] is None or ends[1] is None:
        return ends[0]
    return ends[0] + (ends[1] - ends[0]) * (position - low)


def _burst(rate_rps: float, stay_s: float, options: SweepOptions) -> float:
    """b: the share by which the load may grow while a replica starts."""
    in_flight = max(1e-9, rate_rps * stay_s * options.replicas)
    chances = max(1.0, options.startup_s / stay_s)
    quantile = float(norm.ppf(options.confidence ** (1.0 / chances)))
    chance = max(0.0, quantile) * options.arrival_cv / math.sqrt(in_flight)
    return min(_MOST_BURST, chance + options.growth_per_s * options.startup_s)


def _thresholds(
    sweep: Sequence[LoadPoint], knee: _Knee, burst: float, options: SweepOptions
) -> tuple[SaturationThresholds, list[str]]:
    position = knee.index + knee.way
    earlier = _position_of_rate(sweep, position, 1.0 / (1.0 + burst))
    notes: list[str] = []

    def usage(point: LoadPoint) -> float | None:
        return _usage(point, options.kv_tokens)

    tau_kv, before_kv = _at(sweep, position, usage), _at(sweep, earlier, usage)
    if tau_kv is None or before_kv is None or tau_kv <= 0:
        notes.append(
            "KV usage is not stated, so tau_kv and gamma_kv are the usual ones: give reports with it, or --kv-tokens"
        )
        tau_kv, gamma_kv = _DEFAULTS.tau_kv, _DEFAULTS.gamma_kv
    else:
        tau_kv = min(_FULL, tau_kv)
        gamma_kv = min(max(_LEAST_GAMMA_KV, tau_kv - min(tau_kv, before_kv)), tau_kv / 2)
    queue, before_queue = (_at(sweep, each, lambda point: point.waiting) for each in (position, earlier))
    if queue is None or before_queue is None:
        notes.append("waiting requests are not stated, so tau_queue and gamma_queue are the usual ones")
        tau_queue, gamma_queue = _DEFAULTS.tau_queue, _DEFAULTS.gamma_queue
    else:
        tau_queue = max(1.0, queue)
        gamma_queue = min(tau_queue, max(tau_queue - before_queue, tau_queue * burst / (1.0 + burst)))
    found = SaturationThresholds(
        tau_kv=max(_SMALLEST_KV, round(tau_kv, 4)),
        gamma_kv=max(_SMALLEST_KV / 2, round(gamma_kv, 4)),
        tau_queue=round(tau_queue, 2),
        gamma_queue=min(round(tau_queue, 2), round(gamma_queue, 2)),
    )
    return found, notes


def _usage(point: LoadPoint, kv_tokens: float | None) -> float | None:
    """KV usage as stated, else from the batch and the tokens that a request holds on average."""
    if point.kv_usage is not None or kv_tokens is None:
        return point.kv_usage
    batch = point.running or point.in_flight
    held = point.input_tokens + point.output_tokens / 2
    return None if batch is None else min(1.0, batch * held / ((point.origin.replicas or 1) * kv_tokens))


def _position_of_rate(sweep: Sequence[LoadPoint], position: float, share: float) -> float:
    """Where the sweep is at a share of the rate that it has at a position; before its start: the start."""
    wanted = share * (_at(sweep, position, lambda point: point.achieved_rps) or 0.0)
    place = position
    while place > 0 and (_at(sweep, place, lambda point: point.achieved_rps) or 0.0) > wanted:
        low = max(0.0, math.ceil(place) - 1.0)
        below, above = (_at(sweep, each, lambda point: point.achieved_rps) or 0.0 for each in (low, place))
        if below <= wanted < above:
            return low + (place - low) * (wanted - below) / (above - below)
        place = low
    return place

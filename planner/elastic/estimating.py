"""What one way from one size to another takes: from what was measured, else from the stages, scaled with stated reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from models.elastic import Joiners, KernelCaches, MeasuredResize, ResizeConditions, ResizeMode
from models.performance import Origin
from models.resizing import Pace, Placement, ResizeEstimate, Stage, StageTime
from planner.elastic.stages import RESTARTED, published_stages

__all__ = ["ResizeQuestion", "estimate_resize"]

_REFERENCE_RANKS: Final = (16, 20)
_REFERENCE_SLOTS: Final = 24
_REFERENCE_SLOT_GB: Final = 2.14
"""One expert over all layers of DeepSeek V4 Pro: 4.030 · 10⁹ parameters in FP4 with their scales."""
_REFERENCE_DENSE_GB: Final = 24.8
"""What a token visits (49 · 10⁹ parameters) without the 6 of 384 routed experts, at one byte each."""
_BALANCE_S: Final = 10.0
_COLD: Final = Pace(expected_s=60.0, low_s=20.0, high_s=240.0)
_SNAPSHOT: Final = (0.1, 0.3, 0.6)
_START_SPREAD: Final = (0.5, 2.0)
_ASSUMED: Final = {
    "prepare": "communication groups take time in proportion to the accelerators in them",
    "join": "joiners start side by side, however many they are",
    "leave": "experts leave in proportion to the ranks that leave for each one that stays",
    "cold": "kernels that were never compiled there cost a joiner 20 to 240 s",
    "snapshot": "a joiner restored from a snapshot starts in 0.1 to 0.6 of the time",
    "bytes": "nobody said how many bytes an expert has: those of DeepSeek V4 Pro are taken",
    "balance": "experts move to joiners at the speed of the fabric, or up to three times ten seconds long",
    "load": "weights are read as fast as in the published restart",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeQuestion:
    """What is asked.

    Attributes:
        mode: how the size changes.
        from_ranks: data-parallel ranks before.
        to_ranks: data-parallel ranks after.
        tensor_parallel: accelerators of one rank.
        slots_per_rank: physical experts of one expert-parallel rank.
        slot_gb: bytes of one expert over all layers, GB; None: unknown.
        dense_gb: bytes that every rank holds beside its experts, GB; None: unknown.
        conditions: what times depend on beside.
        measured: resizes of this very deployment that somebody measured.
    """

    mode: ResizeMode
    from_ranks: int
    to_ranks: int
    tensor_parallel: int = 1
    slots_per_rank: int = _REFERENCE_SLOTS
    slot_gb: float | None = None
    dense_gb: float | None = None
    conditions: ResizeConditions = field(default_factory=ResizeConditions)
    measured: Sequence[MeasuredResize] = ()

    @property
    def grow(self) -> bool:
        """Whether ranks join."""
        return self.to_ranks > self.from_ranks

    @property
    def published(self) -> bool:
        """Whether sizes and conditions are those that the stages were fitted to."""
        sizes = tuple(sorted((self.from_ranks, self.to_ranks)))
        return sizes == _REFERENCE_RANKS and self.tensor_parallel == 1 and not self.assumptions

    @property
    def assumptions(self) -> list[str]:
        """What makes this another case than the published one, where it does not show in the sizes."""
        found = []
        if self.conditions.kernel_caches is KernelCaches.COLD and self.grow:
            found.append(_ASSUMED["cold"])
        if self.conditions.joiners is Joiners.SNAPSHOT and self.grow:
            found.append(_ASSUMED["snapshot"])
        return found


def estimate_resize(question: ResizeQuestion) -> ResizeEstimate:
    """Downtime, total, and the time until experts have moved.

    Raises:
        ValueError: both sizes are the same.
    """
    if question.from_ranks == question.to_ranks:
        raise ValueError("nothing to estimate: the deployment has this size")
    known = next((each for each in question.measured if _is_asked(each, question)), None)
    if known is not None:
        return _as_measured(known, question)
    if question.mode.launches:
        return _launched(question)
    return _staged(question)


def _is_asked(each: MeasuredResize, question: ResizeQuestion) -> bool:
    return (each.mode, each.from_ranks, each.to_ranks) == (
        question.mode,
        question.from_ranks,
        question.to_ranks,
    )


def _as_measured(known: MeasuredResize, question: ResizeQuestion) -> ResizeEstimate:
    balance = _balance(question) if known.balance_s is None else _exactly(known.balance_s)
    return _estimate(
        question,
        _Times(
            downtime=_exactly(known.downtime_s),
            total=_exactly(max(known.total_s, known.downtime_s)),
            balance=balance,
        ),
        origin=Origin.MEASURED,
        assumptions=(f"measured: {known.source}",) if known.source else (),
    )


def _staged(question: ResizeQuestion) -> ResizeEstimate:
    stages = _growing(question) if question.grow else _shrinking(question)
    paused = [each for each in stages if each.placement is Placement.PAUSED]
    present = [each for each in stages if each.placement is not Placement.ABSENT]
    times = _Times(
        stages=tuple(stages),
        downtime=_in_turn(paused),
        total=_in_turn(present),
        balance=_balance(question),
    )
    return _estimate(
        question,
        times,
        origin=Origin.MODELED,
        assumptions=tuple(_assumptions(question)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    downtime: Pace
    total: Pace
    balance: Pace
    stages: tuple[StageTime, ...] = ()


def _estimate(
    question: ResizeQuestion, times: _Times, *, origin: Origin, assumptions: tuple[str, ...]
) -> ResizeEstimate:
    return ResizeEstimate(
        mode=question.mode,
        from_ranks=question.from_ranks,
        to_ranks=question.to_ranks,
        stages=times.stages,
        downtime=times.downtime,
        total=times.total,
        balance=times.balance,
        idle_gpu_seconds=_idle_gpu_s(question, times.downtime.expected_s, times.total.expected_s),
        peak_gpus=_peak_gpus(question),
        origin=origin,
        assumptions=assumptions,
    )


def _growing(question: ResizeQuestion) -> list[StageTime]:
    mode, seconds = question.mode, published_stages()[0]
    early = Placement.PAUSED if mode is ResizeMode.BLOCKING else Placement.BACKGROUND
    weights = _about(_dense_gb(question) / question.conditions.fabric_gbps, 0.5, 3.0)
    reference_s = _REFERENCE_DENSE_GB / ResizeConditions().fabric_gbps
    start = _near(question, max(0.0, seconds.join_s - reference_s), *_START_SPREAD)
    if question.conditions.joiners is Joiners.SNAPSHOT:
        low, expected, high = _SNAPSHOT
        base = start.expected_s
        start = Pace(expected_s=base * expected, low_s=base * low, high_s=base * high)
    stages = [
        StageTime(stage=Stage.START_JOINERS, placement=early, time=start),
        StageTime(stage=Stage.PREPARE_COMMUNICATION, placement=early, time=_prepare(question)),
        StageTime(stage=Stage.MOVE_WEIGHTS, placement=early, time=weights),
    ]
    stages += _warming(question)
    activate = _near(question, seconds.activate_s, 0.5, 3.0)
    return [*stages, StageTime(stage=Stage.ACTIVATE, placement=Placement.PAUSED, time=activate)]


def _warming(question: ResizeQuestion) -> list[StageTime]:
    """Joiners and existing workers warm up beside each other; the longer one is waited for, the other is absent here."""
    seconds = published_stages()[0]
    cold = question.conditions.kernel_caches is KernelCaches.COLD
    joiners = _near(question, seconds.warm_joiners_s, 0.7, 1.5)
    joiners = joiners + _COLD if cold else joiners
    if question.mode is ResizeMode.ASYNC_GRAPH_REUSE:
        return [
            StageTime(stage=Stage.WARM_UP, where="joiners", placement=Placement.BACKGROUND, time=joiners),
            StageTime(
                stage=Stage.WARM_UP,
                where="existing workers",
                placement=Placement.ABSENT,
                time=_exactly(0.0),
            ),
        ]
    workers = _near(question, seconds.warm_workers_s, 0.7, 1.5)
    waited = Pace(
        expected_s=max(joiners.expected_s, workers.expected_s),
        low_s=max(joiners.low_s, workers.low_s),
        high_s=max(joiners.high_s, workers.high_s),
    )
    return [
        StageTime(
            stage=Stage.WARM_UP,
            where="joiners and existing workers",
            placement=Placement.PAUSED,
            time=waited,
        )
    ]


def _shrinking(question: ResizeQuestion) -> list[StageTime]:
    mode, seconds = question.mode, published_stages()[0]
    early = Placement.PAUSED if mode is ResizeMode.BLOCKING else Placement.BACKGROUND
    keeps = mode is ResizeMode.ASYNC_GRAPH_REUSE
    recapture = _exactly(0.0) if keeps else _near(question, seconds.recapture_s, 0.7, 1.5)
    leaving = (question.from_ranks - question.to_ranks) / question.to_ranks
    reference = (_REFERENCE_RANKS[1] - _REFERENCE_RANKS[0]) / _REFERENCE_RANKS[0]
    load = leaving / reference * _slot_gb(question) * question.slots_per_rank
    leave_s = seconds.leave_s * load / (_REFERENCE_SLOT_GB * _REFERENCE_SLOTS)
    return [
        StageTime(stage=Stage.PREPARE_COMMUNICATION, placement=early, time=_prepare(question)),
        StageTime(
            stage=Stage.WARM_UP,
            where="existing workers",
            placement=Placement.ABSENT if keeps else Placement.PAUSED,
            time=recapture,
        ),
        StageTime(stage=Stage.ACTIVATE, placement=Placement.PAUSED, time=_near(question, leave_s, 0.5, 3.0)),
    ]


def _launched(question: ResizeQuestion) -> ResizeEstimate:
    """A launch at the new size: after the old one has ended (restart), or beside it (redeploy)."""
    seconds = published_stages()[0]
    reference_gb = _REFERENCE_SLOTS * _REFERENCE_SLOT_GB + _REFERENCE_DENSE_GB
    per_rank_gb = question.slots_per_rank * _slot_gb(question) + _dense_gb(question)
    reference_s = RESTARTED.total_s - seconds.join_s - seconds.prepare_s - seconds.warm_workers_s
    load_s = reference_s * per_rank_gb / reference_gb / question.conditions.weights_gbps
    beside = question.mode is ResizeMode.REDEPLOY
    serving = Placement.BACKGROUND if beside else Placement.PAUSED
    warm = _near(question, seconds.warm_workers_s, 0.7, 1.5)
    if question.conditions.kernel_caches is KernelCaches.COLD:
        warm = warm + _COLD
    stages = (
        StageTime(stage=Stage.START_JOINERS, where="all ranks", placement=serving, time=_near(question, seconds.join_s, *_START_SPREAD)),
        StageTime(stage=Stage.PREPARE_COMMUNICATION, where="all ranks", placement=serving, time=_prepare(question)),
        StageTime(stage=Stage.MOVE_WEIGHTS, where="all ranks", placement=serving, time=_near(question, load_s, 0.3, 3.0)),
        StageTime(stage=Stage.WARM_UP, where="all ranks", placement=serving, time=warm),
    )  # fmt: skip
    total = _in_turn(stages)
    return _estimate(
        question,
        _Times(
            stages=stages,
            downtime=_exactly(0.0) if beside else total,
            total=total,
            balance=_exactly(0.0),
        ),
        origin=Origin.MODELED,
        assumptions=(*_assumptions(question), _ASSUMED["load"]),
    )


def _assumptions(question: ResizeQuestion) -> list[str]:
    found = list(question.assumptions)
    if not question.published:
        found.append(_ASSUMED["prepare"])
        found.append(_ASSUMED["join" if question.grow else "leave"])
    if question.slot_gb is None or question.dense_gb is None:
        found.append(_ASSUMED["bytes"])
    if question.grow and not question.mode.launches:
        found.append(_ASSUMED["balance"])
    return found


def _prepare(question: ResizeQuestion) -> Pace:
    most = max(question.from_ranks, question.to_ranks) * question.tensor_parallel
    ratio = most / _REFERENCE_RANKS[1]
    expected_s = published_stages()[0].prepare_s * ratio
    bounds = sorted((min(1.0, 1.0 / ratio), max(1.0, ratio)))
    return _near(question, expected_s, bounds[0] * 0.7, bounds[1] * 1.5)


def _balance(question: ResizeQuestion) -> Pace:
    if not question.grow:
        return _exactly(0.0)
    fabric_s = question.slots_per_rank * _slot_gb(question) / question.conditions.fabric_gbps
    return Pace(
        expected_s=max(_BALANCE_S, fabric_s),
        low_s=min(_BALANCE_S, fabric_s),
        high_s=3 * max(_BALANCE_S, fabric_s),
    )


def _slot_gb(question: ResizeQuestion) -> float:
    return _REFERENCE_SLOT_GB if question.slot_gb is None else question.slot_gb


def _dense_gb(question: ResizeQuestion) -> float:
    return _REFERENCE_DENSE_GB if question.dense_gb is None else question.dense_gb


def _idle_gpu_s(question: ResizeQuestion, downtime_s: float, total_s: float) -> float:
    before, after = question.from_ranks, question.to_ranks
    if question.mode is ResizeMode.RESTART:
        ranks_s = total_s * max(before, after)
    elif question.mode is ResizeMode.REDEPLOY:
        ranks_s = total_s * after
    else:
        ranks_s = downtime_s * before + total_s * max(0, after - before)
    return ranks_s * question.tensor_parallel


def _peak_gpus(question: ResizeQuestion) -> int:
    beside = question.mode is ResizeMode.REDEPLOY
    sizes = (question.from_ranks, question.to_ranks)
    return question.tensor_parallel * (sum(sizes) if beside else max(sizes))


def _near(question: ResizeQuestion, seconds: float, low: float, high: float) -> Pace:
    """A time with its spread: that of the fit where the case is the published one, a wider one elsewhere."""
    if question.published:
        worst = max(abs(each.error_s) / each.fitted_s for each in published_stages()[1])
        low, high = 1.0 - worst, 1.0 + worst
    return _about(seconds, low, high)


def _about(seconds: float, low: float, high: float) -> Pace:
    return Pace(expected_s=seconds, low_s=seconds * low, high_s=seconds * high)


def _exactly(seconds: float) -> Pace:
    return Pace(expected_s=seconds, low_s=seconds, high_s=seconds)


def _in_turn(stages: Sequence[StageTime]) -> Pace:
    total = _exactly(0.0)
    for each in stages:
        total = total + each.time
    return total

"""When to call for which size, so that capacity is there when the load is.

A grow is called for as long before as it takes at most, and until experts have moved; a shrink when nothing needs its
ranks for a while. A call covers what comes in that while, so that a rise takes one call and not many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from models.elastic import ElasticDeployment, ElasticShape
from models.resizing import ResizeEstimate, Schedule, ScheduledCall
from planner.elastic.rates import rate_at
from planner.elastic.sizes import Room, judge_size, largest_ranks
from planner.elastic.versions import mode_of

__all__ = ["Expected", "ScheduleQuestion", "schedule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Load over the next steps.

    Attributes:
        start_s: begin of the first step, seconds of the epoch.
        step_s: length of a step, s.
        rates_rps: of each step, at the quantile that is planned for.
    """

    start_s: float
    step_s: float
    rates_rps: Sequence[float]

    def at_s(self, step: int) -> float:
        """Begin of a step."""
        return self.start_s + step * self.step_s

    def most(self, first: int, seconds: float) -> float:
        """The largest rate from a step on for so long."""
        last = first + max(1, math.ceil(seconds / self.step_s))
        return max(self.rates_rps[first:last])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleQuestion:
    """What is to be scheduled.

    Attributes:
        deployment: with rates by size.
        shape: that decides its sizes.
        current: ranks now.
        now_s: seconds of the epoch.
        estimate: what one way between two sizes takes.
        keep_s: a grow covers what comes in so long, and a shrink waits until its ranks are not needed for so long, s.
        room: free accelerators; None: not known.
    """

    deployment: ElasticDeployment
    shape: ElasticShape
    current: int
    now_s: float
    estimate: Callable[[int, int], ResizeEstimate]
    keep_s: float = 1800.0
    room: Room | None = None

    def carries(self, ranks: int) -> float:
        """What a size carries, req/s; 0 where nobody measured it."""
        rate = rate_at(self.deployment.rates, ranks, redeployed=ranks == self.shape.launch_ranks)
        return 0.0 if rate is None else rate.rated_rps

    def sizes(self) -> Iterator[int]:
        """Sizes that can be reached from the current one and are rated, the smallest first, the current one among them."""
        engine = self.deployment.engine
        for ranks in range(1, max(largest_ranks(self.shape, engine), self.current) + 1):
            verdict = judge_size(self.shape, ranks, engine=engine, current=self.current, room=self.room)
            if verdict.reachable and self.carries(ranks):
                yield ranks


def schedule(question: ScheduleQuestion, expected: Expected) -> Schedule:
    """Calls in the order of time; none where the size of now carries all of it, or nothing can be resized."""
    calls: list[ScheduledCall] = []
    reigns: list[float] = []
    short = 0.0
    may = mode_of(question.deployment.engine) is not None
    for step, rate in enumerate(expected.rates_rps):
        call = _call(question, expected, step) if may else None
        if call is not None:
            calls.append(call)
            reigns.append(0.0)
            question = replace(question, current=call.to_ranks, room=None)
        if reigns:
            reigns[-1] = max(reigns[-1], rate)
        carries = question.carries(question.current)
        short = max(short, rate - carries if carries else 0.0)
    told = (call.but(rate_rps=most) for call, most in zip(calls, reigns, strict=True))
    return Schedule(calls=tuple(told), short_rps=short)


def _call(question: ScheduleQuestion, expected: Expected, step: int) -> ScheduledCall | None:
    """The call that a step asks for; None: the size of then is right."""
    sizes = list(question.sizes())
    if expected.rates_rps[step] > question.carries(question.current):
        larger = [ranks for ranks in sizes if question.carries(ranks) > question.carries(question.current)]
        if not larger:
            return None
        most = expected.most(step, question.keep_s)
        ranks = next((ranks for ranks in larger if question.carries(ranks) >= most), larger[-1])
        return _grow(question, expected, step, ranks)
    most = expected.most(step, question.keep_s)
    enough = [ranks for ranks in sizes if ranks < question.current and question.carries(ranks) >= most]
    known = (len(expected.rates_rps) - step) * expected.step_s >= question.keep_s
    if not enough or not known:
        return None
    estimate = question.estimate(question.current, enough[0])
    at_s = expected.at_s(step)
    return _scheduled(question, estimate, (at_s, at_s))


def _grow(question: ScheduleQuestion, expected: Expected, step: int, ranks: int) -> ScheduledCall:
    estimate = question.estimate(question.current, ranks)
    needed_s = expected.at_s(step)
    lead_s = estimate.total.high_s + estimate.balance.expected_s
    return _scheduled(question, estimate, (needed_s - lead_s, needed_s))


def _scheduled(
    question: ScheduleQuestion, estimate: ResizeEstimate, times: tuple[float, float]
) -> ScheduledCall:
    call_s, needed_s = times
    return ScheduledCall(
        call_s=max(call_s, question.now_s),
        needed_s=needed_s,
        mode=estimate.mode,
        from_ranks=estimate.from_ranks,
        to_ranks=estimate.to_ranks,
        rate_rps=0.0,
        carries_rps=question.carries(estimate.to_ranks),
        late_s=max(0.0, question.now_s - call_s),
    )

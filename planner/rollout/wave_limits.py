"""The user's limits on waves as checks: surge, unavailable replicas, and the size of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from models.ids import PoolId, ServiceId
from models.plan import WaveLimits
from models.report import Violation
from planner.errors import ConfigurationError, Finding
from planner.rollout.serving import Group
from planner.rollout.task import State, Task

__all__ = ["LimitRows", "gpus_by_pool"]


def gpus_by_pool(task: Task, held: tuple[int, ...]) -> Counter[PoolId]:
    """Accelerators that these replicas hold, by pool."""
    found: Counter[PoolId] = Counter()
    for unit, n in zip(task.units, held, strict=True):
        found[unit.candidate.pool] += n * unit.candidate.gpus
    return found


@dataclass(frozen=True)
class LimitRows:
    """Limits on waves beside what both ends of the task hold and serve.

    Attributes:
        gpus: accelerators held at the start or in the solution, whichever is more, by pool.
        replicas: the same in replicas, by service.
        ready: replicas ready at the start or in the solution, whichever are fewer, by service.
    """

    task: Task
    limits: WaveLimits
    gpus: Counter[PoolId]
    replicas: Counter[ServiceId]
    ready: Counter[ServiceId]

    @staticmethod
    def of(task: Task, limits: WaveLimits) -> LimitRows:
        """The limits for one task.

        Raises:
            ConfigurationError: a replica that must start or drain is larger than a step may be.
        """
        _refuse_small_steps(task, limits)
        start = tuple(unit.on_order for unit in task.units)
        end = tuple(unit.wanted for unit in task.units)
        ready = tuple(unit.ready for unit in task.units)
        return LimitRows(
            task,
            limits,
            gpus_by_pool(task, start) | gpus_by_pool(task, end),
            _by_service(task, start) | _by_service(task, end),
            _by_service(task, ready) & _by_service(task, end),
        )

    def surge_objections(self, held: tuple[int, ...]) -> Iterator[Violation]:
        """What is held beyond the surge that is allowed."""
        if self.limits.max_surge_gpus is not None:
            extra = (gpus_by_pool(self.task, held) - self.gpus).total()
            yield from _above("surge", (), extra, (self.limits.max_surge_gpus, "GPU"))
        if self.limits.max_surge_replicas is not None:
            for service, n in sorted((_by_service(self.task, held) - self.replicas).items()):
                yield from _above("surge", (service,), n, (self.limits.max_surge_replicas, "replica"))

    def unavailable_objections(self, group: Group, serving: tuple[int, ...]) -> Iterator[Violation]:
        """Replicas that services of a group lack beyond what is allowed."""
        if self.limits.max_unavailable is None:
            return
        found: Counter[ServiceId] = Counter()
        for i in group.units:
            found[self.task.units[i].candidate.service] += serving[i]
        for demand in group.problem.demands:
            lacking = self.ready[demand.service] - found[demand.service]
            yield from _above(
                "unavailable", (demand.service,), lacking, (self.limits.max_unavailable, "replica")
            )

    def step_permits(self, before: State, after: State) -> bool:
        """Whether every step from one state to the other is small enough."""
        return self.limits.max_step_gpus is None or next(self.step_objections(before, after), None) is None

    def step_objections(self, before: State, after: State) -> Iterator[Violation]:
        """Steps that are too large."""
        if self.limits.max_step_gpus is None:
            return
        for i, unit in enumerate(self.task.units):
            for now, then in ((before.started, after.started), (before.drained, after.drained)):
                gpus = (then[i] - now[i]) * unit.candidate.gpus
                yield from _above("step", (unit.candidate.id,), gpus, (self.limits.max_step_gpus, "GPU"))

    def most_in_step(self, gpus: int) -> int | None:
        """Replicas of so many accelerators that one step may change; None: no limit."""
        return None if self.limits.max_step_gpus is None else self.limits.max_step_gpus // gpus


def _refuse_small_steps(task: Task, limits: WaveLimits) -> None:
    changing = (unit for unit in task.units if unit.starts or unit.drains)
    largest = max((unit.candidate.gpus for unit in changing), default=0)
    if limits.max_step_gpus is not None and limits.max_step_gpus < largest:
        finding = Finding(
            "", None, "max_step_gpus", str(limits.max_step_gpus), f"at least {largest}, one whole replica"
        )
        raise ConfigurationError("No step is large enough for one replica", findings=[finding])


def _by_service(task: Task, numbers: tuple[int, ...]) -> Counter[ServiceId]:
    found: Counter[ServiceId] = Counter()
    for unit, n in zip(task.units, numbers, strict=True):
        found[unit.candidate.service] += n
    return found


def _above(family: str, key: tuple[str, ...], found: int, limit: tuple[int, str]) -> Iterator[Violation]:
    allowed, unit = limit
    if found > allowed:
        text = f"The limits on waves allow {family} of {allowed} {unit}s, and it would be {found}."
        yield Violation(family=family, key=key, found=found, allowed=allowed, unit=unit, text=text)

"""What the referee says of a solution: figures recomputed from the problem, and every broken rule."""

from __future__ import annotations

from pydantic import Field

from models.explanation import BindingRow, Explanation, Fact
from models.ids import CandidateId, Name, PoolId, ServiceId
from models.plan import Plan
from models.problem import Problem
from models.solution import Solution
from models.units import Share
from models.value import Value
from models.violation import Violation

__all__ = [
    "Assessment",
    "CandidateFigures",
    "Comparison",
    "FewestMoves",
    "Report",
    "RowUse",
    "ServiceFigures",
    "Violation",
]


class RowUse(Value):
    """Use of one limit."""

    family: Name
    key: tuple[str, ...]
    used: float
    limit: float
    unit: str
    step: float = Field(
        description="the smallest amount that one more replica would use; slack below it means the row binds"
    )
    facts: dict[str, Fact] = Field(
        {}, description="what else tells why, e.g. free_gpus; the unit is in the name"
    )

    @property
    def slack(self) -> float:
        """What is left, in the unit of the row."""
        return self.limit - self.used

    @property
    def binds(self) -> bool:
        """Whether not even the smallest replica would still fit."""
        return self.slack < self.step * (1 - 1e-9)

    def as_binding(self) -> BindingRow:
        """This use as a part of an explanation."""
        return BindingRow(
            family=self.family,
            key=self.key,
            used=self.used,
            limit=self.limit,
            unit=self.unit,
            facts=self.facts,
        )


class CandidateFigures(Value):
    """Figures of one candidate at its planned count."""

    candidate: CandidateId
    replicas: int
    cost: float
    power_w: float | None
    load_rps: float = Field(description="requests per second that proportional routing sends here")
    utilization: float = Field(description="load over rated capacity; 0 where nothing runs")
    saturating_load_share: float | None = Field(
        None,
        description="load over rated capacity when the scheduler equalizes KV saturation instead; None: KV figures unknown",
    )


class ServiceFigures(Value):
    """Figures of one service."""

    service: ServiceId
    demand_rps: float
    served_rps: float
    unserved_rps: float
    unserved_share: float = Field(description="largest unserved share over its buckets")
    headroom: float | None = Field(
        None, description="(surge capacity - served load) / served load of the scarcest role; None: no load"
    )
    cost: float
    usd_per_million_tokens: float | None = Field(
        None, description="input and output tokens together; None: relative costs or nothing served"
    )
    power_w: float | None


class Assessment(Value):
    """Everything recomputed from (problem, solution) alone."""

    violations: tuple[Violation, ...]
    unserved_rps: float
    unserved_share_worst: float
    cost: float = Field(description="in the cost unit of the problem, switching cost included")
    switching_cost: float
    power_w: float | None = Field(description="None: a replica's power is unknown")
    changes: int
    gpus_used: dict[PoolId, int]
    nodes_added: dict[PoolId, int]
    services: tuple[ServiceFigures, ...]
    candidates: tuple[CandidateFigures, ...]
    rows: tuple[RowUse, ...] = Field(description="use of every limit that ties candidates together")
    overloads_when_equalized: tuple[CandidateFigures, ...] = Field(
        (),
        description="candidates that would exceed their rated capacity if the scheduler equalizes saturation",
    )


class Comparison(Value):
    """One answer beside the others: what a solver, a heuristic or the running fleet does with the demand."""

    name: Name = Field(description="solver or heuristic; 'now' for the fleet as it runs")
    solution: Solution
    assessment: Assessment | None = Field(None, description="None: there is no plan to judge")


class FewestMoves(Value):
    """What was found at almost the same cost: the answer that changes the fewest replicas, or that none changes fewer."""

    within: Share = Field(description="how much more it may cost than the answer")
    name: Name | None = Field(
        None, description="of the answer beside; None: nothing that changes fewer was found"
    )
    proven: bool = Field(False, description="no plan within so much of the cost changes fewer")
    rollout: Plan | None = Field(
        None, description="waves to it; None: nothing was found, or there was no time"
    )


class Report(Value):
    """All that ``plan`` answers: the question, the answer, its proof and its reasons."""

    problem: Problem
    answer: Comparison
    best_effort: Comparison | None = Field(
        None, description="only when infeasible: the best plan under scarcity"
    )
    beside: tuple[Comparison, ...] = Field(
        (), description="baselines, and the fleet as it runs now as the last"
    )
    rollout: Plan | None = Field(
        None,
        description="waves to the answer, or where it is infeasible to the best effort; None: there is no plan, it breaks limits, or there was no time",
    )
    fewest_moves: FewestMoves | None = Field(None, description="None: not asked for, or there was no time")
    explanation: Explanation = Explanation()
    seconds: dict[Name, float] = Field({}, description="wall time by phase, s")

    @property
    def shown(self) -> Comparison:
        """The plan to look at: the answer, or where it is infeasible the best one under scarcity."""
        return self.best_effort or self.answer

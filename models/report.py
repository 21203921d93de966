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
    "EngineWork",
    "FewestMoves",
    "Report",
    "RowUse",
    "ServiceFigures",
    "Violation",
]


class RowUse(Value):
    """Use of one limit."""

    family: Name = Field(description="family of rows, e.g. gpus, power, survive")
    key: tuple[str, ...] = Field(description="which row of the family: service, pool, node, domain, ...")
    used: float = Field(description="what the plan uses, in ``unit``")
    limit: float = Field(description="what may be used, in ``unit``")
    unit: str = Field(description="unit of used, limit and step, e.g. GPU, W, $/h")
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

    candidate: CandidateId = Field(
        description="identity: service/variant@pool, and #domain where its replicas stay in one"
    )
    replicas: int = Field(description="planned count")
    cost: float = Field(description="of all its replicas, in the cost unit of the problem")
    power_w: float | None = Field(
        description="draw of all its replicas, W; None: unknown", json_schema_extra={"unit": "W"}
    )
    load_rps: float = Field(
        description="requests per second that proportional routing sends here",
        json_schema_extra={"unit": "req/s"},
    )
    utilization: float = Field(description="load over rated capacity; 0 where nothing runs")
    saturating_load_share: float | None = Field(
        None,
        description="load over rated capacity when the scheduler equalizes KV saturation instead; None: KV figures unknown",
    )


class ServiceFigures(Value):
    """Figures of one service."""

    service: ServiceId = Field(description="name of the service")
    demand_rps: float = Field(description="what arrives, req/s", json_schema_extra={"unit": "req/s"})
    served_rps: float = Field(description="what is served, req/s", json_schema_extra={"unit": "req/s"})
    unserved_rps: float = Field(description="what is not served, req/s", json_schema_extra={"unit": "req/s"})
    unserved_share: float = Field(description="largest unserved share over its buckets")
    headroom: float | None = Field(
        None, description="(surge capacity - served load) / served load of the scarcest role; None: no load"
    )
    cost: float = Field(description="of all its replicas, in the cost unit of the problem")
    usd_per_million_tokens: float | None = Field(
        None,
        description="input and output tokens together; None: relative costs or nothing served",
        json_schema_extra={"unit": "$/1e6 tokens"},
    )
    power_w: float | None = Field(
        description="draw of all its replicas, W; None: unknown", json_schema_extra={"unit": "W"}
    )
    kwh_per_million_tokens: float | None = Field(
        None,
        description="at power_w, input and output tokens together; None: power unknown or nothing served",
        json_schema_extra={"unit": "kWh/1e6 tokens"},
    )


class Assessment(Value):
    """Everything recomputed from (problem, solution) alone."""

    violations: tuple[Violation, ...] = Field(
        description="every rule that does not hold; empty: none is broken"
    )
    unserved_rps: float = Field(
        description="demand that is not served, all services together, req/s",
        json_schema_extra={"unit": "req/s"},
    )
    unserved_share_worst: float = Field(description="largest unserved share of a service, 0..1")
    cost: float = Field(description="in the cost unit of the problem, switching cost included")
    switching_cost: float = Field(
        description="of all starts, spread over the horizon; in the cost unit of the problem"
    )
    power_w: float | None = Field(
        description="None: a replica's power is unknown", json_schema_extra={"unit": "W"}
    )
    changes: int = Field(description="replicas started, stopped or moved")
    gpus_used: dict[PoolId, int] = Field(description="accelerators held, by pool")
    nodes_added: dict[PoolId, int] = Field(description="nodes added, by pool")
    services: tuple[ServiceFigures, ...] = Field(description="figures of each service")
    candidates: tuple[CandidateFigures, ...] = Field(
        description="figures of each candidate that has replicas"
    )
    rows: tuple[RowUse, ...] = Field(description="use of every limit that ties candidates together")
    overloads_when_equalized: tuple[CandidateFigures, ...] = Field(
        (),
        description="candidates that would exceed their rated capacity if the scheduler equalizes saturation",
    )


class Comparison(Value):
    """One answer beside the others: what a solver, a heuristic or the running fleet does with the demand."""

    name: Name = Field(description="solver or heuristic; 'now' for the fleet as it runs")
    solution: Solution = Field(description="what the solver, the heuristic or the fleet answers")
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


class EngineWork(Value):
    """What one engine did for an answer: its time, and the levels whose plan or bound is its own."""

    engine: Name = Field(description="name of the engine")
    seconds: float = Field(description="wall time over all levels, s", json_schema_extra={"unit": "s"})
    found: tuple[Name, ...] = Field((), description="levels for which it had the last better plan")
    proved: tuple[Name, ...] = Field((), description="levels for which it proved the last better bound")


class Report(Value):
    """All that ``plan`` answers: the question, the answer, its proof and its reasons."""

    problem: Problem = Field(description="the question in numbers")
    answer: Comparison = Field(description="the answer of the solver that was asked")
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
    explanation: Explanation = Field(Explanation(), description="why the answer is as it is")
    seconds: dict[Name, float] = Field(
        {}, description="wall time by phase, s", json_schema_extra={"unit": "s"}
    )
    engines: tuple[EngineWork, ...] = Field(
        (), description="engines that worked on the answer, in order; empty where one did all"
    )

    @property
    def shown(self) -> Comparison:
        """The plan to look at: the answer, or where it is infeasible the best one under scarcity."""
        return self.best_effort or self.answer

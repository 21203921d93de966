"""The answer as one JSON object. Stable: every key is described in docs/json.md."""

from __future__ import annotations

import json
from typing import Any

from models import SCHEMA
from models.explanation import Explanation
from models.problem import Candidate, CostUnit, Problem
from models.report import Assessment, CandidateFigures, Comparison, Report, ServiceFigures, Violation
from models.scenario import ObjectiveLevel
from models.solution import Level, Solution
from models.value import Value
from planner.planning import services_without_candidates, unkept_promises

__all__ = ["as_json", "explanation_object", "report_object", "violation_object"]

Object = dict[str, Any]


def as_json(document: Object) -> str:
    """One JSON document for people and programs: indented, keys in the order of the page, ends in a newline."""
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def report_object(report: Report) -> Object:
    """All of an answer; ``best_effort`` is there only when the problem is infeasible."""
    document: Object = {"schema": SCHEMA, "problem": report.problem.name} | _answer(
        report.problem, report.answer
    )
    if report.best_effort is not None:
        document["best_effort"] = _answer(report.problem, report.best_effort)
    unkept = dict.fromkeys(violation.key[0] for violation in unkept_promises(report))
    return document | {
        "unkept_promises": [*unkept],
        "services_without_candidates": [
            {"service": service, "missing_roles": [str(role) for role in missing]}
            for service, missing in services_without_candidates(report.problem).items()
        ],
        "beside": {each.name: _beside(report.problem, each) for each in report.beside},
        "rollout": None if report.rollout is None else _plain(report.rollout),
        "fewest_moves": _fewest_moves(report),
        "explanation": explanation_object(report.explanation),
        "seconds": dict(report.seconds),
        "engines": [_plain(each) for each in report.engines],
    }


def explanation_object(explanation: Explanation) -> Object:
    """Why the plan is as it is."""
    return {
        "binding": [_plain(row) for row in explanation.binding],
        "rejected": [_plain(rejection) for rejection in explanation.rejected],
        "conflict": None if explanation.conflict is None else _plain(explanation.conflict),
        "relaxations": [_plain(relaxation) for relaxation in explanation.relaxations],
        "together": [_plain(relaxation) for relaxation in explanation.together],
        "runners_up": [_plain(each) for each in explanation.runners_up],
        "worth": [_plain(each) for each in explanation.worth],
        "differences": [_plain(each) for each in explanation.differences],
    }


def violation_object(violation: Violation) -> Object:
    """One rule that does not hold."""
    return _plain(violation)


def _answer(problem: Problem, comparison: Comparison) -> Object:
    solution, assessment = comparison.solution, comparison.assessment
    cost = next((level for level in solution.proof.levels if level.name == ObjectiveLevel.COST), None)
    return {
        "status": str(solution.status),
        "solver": solution.proof.solver,
        "objective": _objective(problem, assessment),
        "bound": None if cost is None else cost.bound,
        "gap": None if cost is None else cost.gap,
        "levels": [_level(level) for level in solution.proof.levels],
        "notes": list(solution.proof.notes),
        "allocations": _allocations(problem, solution, assessment),
        "nodes_added": dict(assessment.nodes_added) if assessment is not None else {},
        "services": [_service(problem, each) for each in assessment.services]
        if assessment is not None
        else [],
        "violations": _violations(assessment),
        "fingerprint": solution.fingerprint,
        "derived_from": solution.derived_from,
    }


def _beside(problem: Problem, comparison: Comparison) -> Object:
    return {
        "status": str(comparison.solution.status),
        "notes": list(comparison.solution.proof.notes),
        "objective": _objective(problem, comparison.assessment),
        "violations": _violations(comparison.assessment),
        "derived_from": comparison.solution.derived_from,
    }


def _fewest_moves(report: Report) -> Object | None:
    """The plan near by: its figures stand beside, here are its counts and the way to it."""
    found = report.fewest_moves
    if found is None:
        return None
    other = next((each for each in report.beside if each.name == found.name), None)
    counts = {} if other is None else {name: count for name, count in other.solution.counts.items() if count}
    return _plain(found) | {"replicas": counts}


def _objective(problem: Problem, assessment: Assessment | None) -> Object | None:
    if assessment is None:
        return None
    return {
        "unserved_rps": assessment.unserved_rps,
        "unserved_share_worst": assessment.unserved_share_worst,
        "cost": assessment.cost,
        "cost_unit": str(problem.cost_unit),
        "cost_usd_per_h": _usd(problem, assessment.cost),
        "switching_cost": assessment.switching_cost,
        "power_w": assessment.power_w,
        "changes": assessment.changes,
    }


def _level(level: Level) -> Object:
    return {
        "name": level.name,
        "value": level.value,
        "bound": level.bound,
        "gap": level.gap,
        "unit": level.unit,
    }


def _allocations(problem: Problem, solution: Solution, assessment: Assessment | None) -> list[Object]:
    """Candidates that run now or shall run."""
    if assessment is None:
        return []
    figures = {each.candidate: each for each in assessment.candidates}
    return [
        _allocation(problem, candidate, solution.count(candidate.id), figures.get(candidate.id))
        for candidate in problem.candidates
        if solution.count(candidate.id) or candidate.on_order
    ]


def _allocation(
    problem: Problem, candidate: Candidate, replicas: int, figures: CandidateFigures | None
) -> Object:
    cost = 0.0 if figures is None else figures.cost
    return {
        "service": candidate.service,
        "variant": candidate.variant,
        "role": str(candidate.role),
        "pool": candidate.pool,
        "fabric_domain": candidate.fabric_domain,
        "accelerator": candidate.accelerator,
        "parallelism": candidate.parallelism,
        "gpus_per_replica": candidate.gpus,
        "current_replicas": candidate.current,
        "pending_replicas": candidate.pending,
        "replicas": replicas,
        "cost": cost,
        "cost_usd_per_h": _usd(problem, cost),
        "power_w": None if figures is None else figures.power_w,
        "load_rps": 0.0 if figures is None else figures.load_rps,
        "utilization": 0.0 if figures is None else figures.utilization,
    }


def _service(problem: Problem, figures: ServiceFigures) -> Object:
    return {
        "service": figures.service,
        "demand_rps": figures.demand_rps,
        "served_rps": figures.served_rps,
        "unserved_rps": figures.unserved_rps,
        "unserved_share": figures.unserved_share,
        "headroom": figures.headroom,
        "cost": figures.cost,
        "cost_usd_per_h": _usd(problem, figures.cost),
        "usd_per_million_tokens": figures.usd_per_million_tokens,
        "power_w": figures.power_w,
        "kwh_per_million_tokens": figures.kwh_per_million_tokens,
    }


def _violations(assessment: Assessment | None) -> list[Object]:
    return (
        [violation_object(violation) for violation in assessment.violations] if assessment is not None else []
    )


def _usd(problem: Problem, cost: float) -> float | None:
    return cost if problem.cost_unit is CostUnit.USD_PER_H else None


def _plain(value: Value) -> Object:
    return value.model_dump(mode="json")

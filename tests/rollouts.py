"""Problems whose variants have Kubernetes objects, and plans made by hand that move them.

A bare ``one_variant()`` is service ``chat`` with three replicas of one Deployment; ``a_fleet()`` has every kind once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.ids import CandidateId
from models.plan import Plan, Step, StepKind, Stuck, Wave
from models.problem import Candidate, Problem
from models.report import Comparison, Report, Violation
from models.solution import Proof, Solution, Status
from models.variant import KubernetesObject
from planner.manifests import Route, route_of
from planner.rollout import reverse
from tests.builders import a_candidate, a_demand, a_pool, a_problem

__all__ = [
    "a_fleet",
    "a_fleet_plan",
    "a_plan",
    "a_report_of",
    "a_route",
    "a_stuck",
    "a_way_back",
    "an_object",
    "one_variant",
    "undone",
]


def an_object(name: str = "chat-small", **fields: Any) -> KubernetesObject:
    """A Deployment in the namespace ``llm`` that nothing else scales."""
    return KubernetesObject.model_validate({"name": name, "namespace": "llm"} | fields)


def one_variant(current: int = 3, *candidates: Candidate, **fields: Any) -> Problem:
    """Service ``chat`` with one variant whose object is :func:`an_object` with ``fields``, in pool ``east``."""
    named = a_candidate(current=current, startup_s=90.0, object=an_object(**fields))
    return a_problem(candidates=(named, *candidates), pools=(a_pool("east"), a_pool("west")))


def a_plan(problem: Problem, *waves: Mapping[str, int], **fields: Any) -> Plan:
    """Waves that bring candidates to these counts, one after the other."""
    counts = {candidate.id: candidate.on_order for candidate in problem.candidates}
    made = []
    for wave in waves:
        steps = tuple(
            _step(problem, CandidateId(name), counts[CandidateId(name)], after)
            for name, after in wave.items()
        )
        made.append(Wave(steps=steps, duration_s=90.0))
        counts |= {CandidateId(name): after for name, after in wave.items()}
    return Plan.model_validate({"waves": tuple(made), "derived_from": "0123456789abcdef"} | fields)


def a_route(problem: Problem, *waves: Mapping[str, int], **fields: Any) -> Route:
    """The route of :func:`a_plan`."""
    return route_of(problem, a_plan(problem, *waves, **fields))


def a_way_back(problem: Problem, *waves: Mapping[str, int], **fields: Any) -> Route:
    """The way back from :func:`a_plan`."""
    return undone(problem, a_plan(problem, *waves, **fields))


def undone(problem: Problem, plan: Plan) -> Route:
    """The way back from a plan."""
    return route_of(problem, reverse(plan, problem), undone=plan)


def a_fleet() -> Problem:
    """Every kind of object and scaler once, one variant in two pools, one without an object."""
    objects = {
        "small": an_object("chat-small"),
        "large": an_object("chat-large", kind="LeaderWorkerSet"),
        "burst": an_object("chat-burst", scaler="hpa", scaler_name="chat-burst-hpa"),
        "night": an_object("chat-night", scaler="keda"),
        "stable": an_object("chat-stable", kind="StatefulSet"),
        "managed": an_object("chat-managed", scaler="variantautoscaling"),
        "bare": None,
    }
    current = {"small": 2, "large": 1, "burst": 3, "night": 2, "stable": 2, "managed": 1, "bare": 1}
    candidates = [
        a_candidate(variant=variant, current=current[variant], startup_s=90.0, cost=4.5, object=named,
                    pods_per_replica=2 if variant == "large" else 1)
        for variant, named in objects.items()
    ]  # fmt: skip
    candidates.append(
        a_candidate(variant="small", pool="west", pending=1, startup_s=120.0, object=objects["small"])
    )
    return a_problem(
        (a_demand(llm="meta-llama/Llama-3.1-8B-Instruct"),),
        candidates,
        (a_pool("east"), a_pool("west", growth={"gpus_per_node": 8})),
        name="every kind",
    )


def a_fleet_plan() -> Plan:
    """Nodes and starts, then what goes, then one variant that changes its place."""
    nodes = Step(kind=StepKind.ADD_NODES, pool=a_pool("west").id, count=1, before=0, after=1)
    plan = a_plan(
        a_fleet(),
        {
            "chat/small@east": 4, "chat/large@east": 2, "chat/burst@east": 5, "chat/managed@east": 2,
            "chat/bare@east": 2,
        },
        {"chat/night@east": 0, "chat/stable@east": 1, "chat/burst@east": 4},
        {"chat/small@east": 3, "chat/small@west": 2},
    )  # fmt: skip
    first = plan.waves[0]
    return plan.but(waves=(first.but(steps=(nodes, *first.steps)), *plan.waves[1:]))


def a_report_of(problem: Problem, counts: Mapping[str, int], **fields: Any) -> Report:
    """A report whose answer is these counts, not judged."""
    stated = {
        "status": Status.OPTIMAL,
        "counts": dict(counts),
        "proof": Proof(solver="hand"),
        "derived_from": problem.fingerprint,
    }
    return Report(
        problem=problem, answer=Comparison(name="hand", solution=Solution.model_validate(stated | fields))
    )


def a_stuck(**fields: Any) -> Stuck:
    """A plan that ends early: pool ``east`` has too few GPUs for the next replica."""
    broken = Violation(
        family="gpus", key=("east",), found=18, allowed=16, unit="GPU", text="pool east holds 18 of 16 GPUs"
    )
    return Stuck.model_validate({"proven": True, "violations": (broken,), "extra_gpus": {"east": 2}} | fields)


def _step(problem: Problem, name: CandidateId, before: int, after: int) -> Step:
    candidate = problem.candidate[name]
    return Step(
        kind=StepKind.START if after > before else StepKind.REMOVE,
        pool=candidate.pool,
        candidate=name,
        service=candidate.service,
        variant=candidate.variant,
        count=abs(after - before),
        before=before,
        after=after,
    )

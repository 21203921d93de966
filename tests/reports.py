"""Reports made by hand, one per way in which a plan can end; figures are stated, not computed."""

from __future__ import annotations

from typing import Any, Final

from models.explanation import (
    AllocationDifference,
    BindingRow,
    Conflict,
    Difference,
    Evidence,
    Explanation,
    Gain,
    Reason,
    Rejection,
    Relaxation,
    RunnerUp,
    ServiceDifference,
    Worth,
)
from models.plan import Plan, Step, StepKind, Stuck, Wave
from models.problem import CostUnit, Problem
from models.report import (
    Assessment,
    CandidateFigures,
    Comparison,
    FewestMoves,
    Report,
    ServiceFigures,
    Violation,
)
from models.solution import Level, Proof, Solution, Status
from planner.planning import NOT_RUN
from tests.builders import a_candidate, a_demand, a_pool, a_problem, a_solution, fully_served

__all__ = [
    "a_closer_report",
    "a_comparison",
    "a_heuristic_report",
    "a_hopeless_report",
    "a_large_report",
    "a_relative_report",
    "a_report_of_two_limits",
    "a_report_without_candidates",
    "a_timed_out_report",
    "an_assessment",
    "an_infeasible_report",
    "an_optimal_report",
]

SECONDS: Final = {"size": 0.02, "formulate": 0.01, "solve": 0.31, "check": 0.01, "explain": 0.05}
ROLLED_OUT: Final = SECONDS | {"rollout": 0.07, "alternative": 0.12}


def two_services(**fields: Any) -> Problem:
    """Chat on two accelerators in two pools, and summaries on one of them."""
    candidates = (
        a_candidate("chat", "llama-70b-h100-tp8", "eu-west", gpus_per_pod=8, parallelism="TP8", cost=20.0,
                    rated_rps=5.0, current=3, power_w=5600.0),
        a_candidate("chat", "llama-70b-a100-tp4", "us-east", gpus_per_pod=4, parallelism="TP4", cost=7.2,
                    rated_rps=1.5, accelerator="A100", current=2, pending=1, power_w=1600.0),
        a_candidate("summaries", "small", "us-east", accelerator="A100", power_w=400.0, cost=1.8),
    )  # fmt: skip
    pools = (a_pool("eu-west", 5), a_pool("us-east", 4, accelerator="A100", growth={"gpus_per_node": 8}))
    demands = (a_demand("chat", 25.0), a_demand("summaries", 3.0))
    return a_problem(demands, candidates, pools, name="two services").but(**fields)


def an_assessment(problem: Problem, counts: dict[str, int], **fields: Any) -> Assessment:
    """Figures of so many replicas that serve everything."""
    figures = [_candidate_figures(problem, candidate.id, counts) for candidate in problem.candidates]
    cost = sum(each.cost for each in figures)
    stated = {
        "violations": (),
        "unserved_rps": 0.0,
        "unserved_share_worst": 0.0,
        "cost": cost,
        "switching_cost": 0.0,
        "power_w": sum(each.power_w or 0.0 for each in figures),
        "changes": sum(abs(counts.get(each.id, 0) - each.on_order) for each in problem.candidates),
        "gpus_used": {},
        "nodes_added": {},
        "services": tuple(_service_figures(problem, demand.service, figures) for demand in problem.demands),
        "candidates": tuple(figures),
        "rows": (),
    }
    return Assessment.model_validate(stated | fields)


def a_comparison(
    problem: Problem,
    name: str,
    counts: dict[str, int],
    *,
    solution: dict[str, Any] | None = None,
    **fields: Any,
) -> Comparison:
    """A judged answer."""
    made = a_solution(problem, counts, **{"proof": Proof(solver=name)} | (solution or {}))
    return Comparison(name=name, solution=made, assessment=an_assessment(problem, counts, **fields))


def an_optimal_report() -> Report:
    """Everything served, proven; greedy serves less, the running fleet much less."""
    problem = two_services()
    nodes = {"nodes_added": {"us-east": 1}}
    overload = CandidateFigures(
        candidate=CHAT_A100, replicas=2, cost=14.4, power_w=3200.0, load_rps=3.0, utilization=1.0,
        saturating_load_share=1.18,
    )  # fmt: skip
    answer = a_comparison(
        problem, "cp-sat", {CHAT_H100: 5, CHAT_A100: 2, SUMMARIES: 3}, solution={"proof": _proof()} | nodes,
        overloads_when_equalized=(overload,), switching_cost=0.4, **nodes,
    )  # fmt: skip
    binding = (
        BindingRow(family="gpus", key=("eu-west",), used=40, limit=40, unit="GPU"),
        BindingRow(family="power", key=("hall-1",), used=32_400.0, limit=32_500.0, unit="W"),
        BindingRow(family="rate", key=("chat", "aggregated", "both"), used=25.0, limit=26.5, unit="req/s"),
        BindingRow(
            family="placement",
            key=("us-east", "4"),
            used=2,
            limit=2,
            unit="pods of 4 GPUs",
            facts={"free_gpus": 9},
        ),
    )
    rejected = (
        Rejection(service="chat", variant="llama-70b-l4", pool="us-east", reason=Reason.WEIGHTS_DO_NOT_FIT,
                  facts={"weight_bytes_per_accelerator": 35 * 2**30, "memory_bytes": 24 * 2**30}),
        Rejection(service="summaries", variant="tiny", reason=Reason.NO_POOL_WITH_ACCELERATOR,
                  facts={"accelerator": "T4"}),
    )  # fmt: skip
    return Report(
        problem=problem,
        answer=answer,
        beside=(_near(problem), *_beside(problem)),
        rollout=_waves(problem),
        fewest_moves=FewestMoves(
            within=0.01, name="fewest-moves", proven=True, rollout=Plan(waves=_waves(problem).waves[1:])
        ),
        explanation=Explanation(binding=binding, rejected=rejected),
        seconds=ROLLED_OUT,
    )


def a_closer_report() -> Report:
    """The optimal one with everything that is found on a closer look."""
    report = an_optimal_report()
    explanation = report.explanation.but(
        runners_up=(
            RunnerUp(candidate=CHAT_A100, cost=7.2, extra_cost=1.2, price_cut=0.7, capacity_gain=0.08),
            RunnerUp(candidate=SUMMARIES, cost=1.8, extra_cost=0.0, price_cut=0.0, capacity_gain=0.0),
            RunnerUp(candidate=CHAT_H100, cost=20.0, extra_cost=33.0, evidence=Evidence.FOUND),
        ),
        worth=_worths(),
        differences=(
            Difference(
                name="greedy",
                allocations=(
                    AllocationDifference(candidate=CHAT_H100, replicas=5, theirs=4, cost=-20.0),
                    AllocationDifference(candidate=CHAT_A100, replicas=2, theirs=4, cost=14.4),
                ),
                services=(ServiceDifference(service="chat", unserved_rps=0.0, theirs=2.5),),
                unserved_rps=2.5,
                cost=-5.6,
                power_w=-2400.0,
                changes=1,
            ),
        ),
    )
    return report.but(explanation=explanation)


def _worths() -> tuple[Worth, ...]:
    cost = {"level": "cost", "unit": "$/h"}
    nothing = Gain(amount=1)
    return (
        Worth(family="gpus", key=("eu-west",), limit=40, unit="GPUs", one=nothing,
              first=Gain(amount=8, value=4.8, **cost), searched=64),
        Worth(family="gpus", key=("us-east",), limit=32, unit="GPUs", one=nothing, searched=64),
        Worth(family="power", key=("hall-1",), limit=32_500, unit="W", searched=640_000,
              one=Gain(amount=10_000, level="unserved-share/priority2", value=0.112, unit="share",
                       evidence=Evidence.FOUND)),
        Worth(family="spend", key=(), limit=120, unit="$/h", searched=100,
              one=Gain(amount=100, value=3.0, evidence=Evidence.ESTIMATE, **cost)),
        Worth(family="headroom", key=("chat",), limit=0.2, unit="share", searched=0.2,
              one=Gain(amount=0.05, value=1.8, **cost), first=Gain(amount=0.05, value=1.8, **cost)),
        Worth(family="slo", key=("chat",), limit=1.0, unit="times", searched=3.0,
              facts={"ttft_before_s": 0.8, "ttft_s": 0.88}, one=Gain(amount=1.1, value=1.8, **cost)),
    )  # fmt: skip


def an_infeasible_report() -> Report:
    """A power cap that forbids serving everything, with the best plan under scarcity."""
    problem = two_services(name="power cap")
    scarce = problem.but(allow_unserved=True)
    counts = {CHAT_H100: 4, CHAT_A100: 2, SUMMARIES: 3}
    figures = an_assessment(scarce, counts)
    starved = figures.services[0].but(served_rps=21.5, unserved_rps=3.5, unserved_share=0.14, headroom=None)
    best = a_comparison(
        scarce, "cp-sat", counts, solution={"proof": _proof(unserved=0.14)}, unserved_rps=3.5,
        unserved_share_worst=0.14, services=(starved, *figures.services[1:]),
    )  # fmt: skip
    explanation = Explanation(
        binding=(BindingRow(family="power", key=("hall-1",), used=28_000, limit=28_500, unit="W"),),
        conflict=Conflict(families=("demand", "power"), rows=(("power", "hall-1"),)),
        relaxations=(
            Relaxation(
                family="power",
                key=("hall-1",),
                limit=28_500,
                needed=33_612.3,
                unit="W",
                verified=True,
                cost=119.8,
            ),
            Relaxation(
                family="slo",
                key=("chat",),
                limit=1.0,
                needed=1.25,
                unit="times",
                verified=True,
                cost=121.0,
                facts={"ttft_before_s": 0.8, "ttft_s": 1.0, "itl_before_s": 0.05, "itl_s": 0.0625},
            ),
            Relaxation(family="gpus", key=("us-east",), limit=32, needed=34, unit="GPU", verified=True),
            Relaxation(family="demand", key=("chat",), limit=25, needed=21.5, unit="req/s", verified=False),
        ),
    )
    nothing = Solution(
        status=Status.INFEASIBLE, proof=Proof(solver="cp-sat"), derived_from=problem.fingerprint
    )
    return Report(
        problem=problem,
        answer=Comparison(name="cp-sat", solution=nothing),
        best_effort=best,
        beside=_beside(scarce),
        rollout=_stuck(problem),
        fewest_moves=FewestMoves(within=0.01, proven=True),
        explanation=explanation,
        seconds=ROLLED_OUT,
    )


def a_report_of_two_limits() -> Report:
    """Power and budget both forbid serving everything: they have to move together."""
    report = an_infeasible_report()
    power = report.explanation.relaxations[0]
    spend = Relaxation(
        family="spend", key=(), limit=100.0, needed=119.8, unit="$/h", verified=True, cost=119.8
    )
    explanation = report.explanation.but(relaxations=(), together=(spend, power))
    return report.but(explanation=explanation)


def a_hopeless_report() -> Report:
    """No plan even if demand may stay unserved: minimum replicas that do not fit."""
    report = an_infeasible_report()
    assert report.best_effort is not None
    nothing = report.answer.solution.but(derived_from=report.best_effort.solution.derived_from)
    explanation = Explanation(conflict=Conflict(families=("bounds",)))
    best = Comparison(name="cp-sat", solution=nothing)
    return report.but(
        best_effort=best, explanation=explanation, rollout=None, fewest_moves=None, seconds=SECONDS
    )


def a_report_without_candidates() -> Report:
    """Chat has a variant for decode alone, summaries have none at all; a baseline was left out."""
    report = an_infeasible_report()
    decode = report.problem.candidates[0].but(role="decode")
    reasons = [
        ("chat", "prefill-t4", "eu-west", Reason.NO_POOL_WITH_ACCELERATOR, {"accelerator": "T4"}),
        *(("chat", f"prefill-l4-{size}", "us-east", Reason.NO_MEASUREMENT, {}) for size in (1, 2, 4)),
        ("chat", "prefill-l4-4", "us-west", Reason.NO_MEASUREMENT, {}),
        ("summaries", "small", "us-east", Reason.UNKNOWN_PRICE, {"accelerator": "L4"}),
    ]
    rejected = tuple(
        Rejection.model_validate(
            {"service": service, "variant": variant, "pool": pool, "reason": reason, "facts": facts}
        )
        for service, variant, pool, reason, facts in reasons
    )
    problem = report.problem.but(candidates=(decode,), rejected=rejected)
    nothing = report.answer.but(solution=report.answer.solution.but(derived_from=problem.fingerprint))
    late = Solution(
        status=Status.TIMED_OUT,
        proof=Proof(solver="rescale", notes=(NOT_RUN,)),
        derived_from=problem.fingerprint,
    )
    return Report(
        problem=problem,
        answer=nothing,
        best_effort=nothing,
        beside=(Comparison(name="rescale", solution=late),),
        explanation=Explanation(rejected=rejected, conflict=Conflict(families=("demand",))),
        seconds=SECONDS,
    )


def a_timed_out_report() -> Report:
    """No plan in the time given."""
    problem = two_services()
    solution = Solution(
        status=Status.TIMED_OUT, proof=Proof(solver="cp-sat"), derived_from=problem.fingerprint
    )
    beside = _beside(problem)
    return Report(
        problem=problem, answer=Comparison(name="cp-sat", solution=solution), beside=beside, seconds=SECONDS
    )


def a_heuristic_report() -> Report:
    """Greedy asked for by name, with a rule it breaks and a promise that it does not keep."""
    problem = two_services()
    answer = _greedy(problem)
    chat, summaries = fully_served(problem)
    short = answer.solution.but(served=(chat.but(share=0.9), summaries))
    return Report(
        problem=problem, answer=answer.but(solution=short), beside=_beside(problem)[1:], seconds=SECONDS
    )


def a_relative_report() -> Report:
    """Costs without a currency, power that nobody knows."""
    problem = two_services(cost_unit=CostUnit.RELATIVE)
    answer = a_comparison(
        problem, "pulp", {CHAT_H100: 5, SUMMARIES: 3}, power_w=None,
        solution={"status": Status.FEASIBLE, "proof": _proof(gap=0.013, unit="")},
    )  # fmt: skip
    figures = answer.assessment
    assert figures is not None
    services = tuple(each.but(usd_per_million_tokens=None, power_w=None) for each in figures.services)
    return Report(
        problem=problem,
        answer=answer.but(assessment=figures.but(services=services)),
        beside=(a_comparison(problem, "now", {CHAT_H100: 3, CHAT_A100: 2}),),
        seconds=SECONDS,
    )


def a_large_report(services: int) -> Report:
    """Many services of one replica each."""
    names = [f"service-{index:04}" for index in range(services)]
    problem = a_problem(
        [a_demand(name, 1.0) for name in names], [a_candidate(name) for name in names], name="many services"
    )
    counts = {f"{name}/small@east": 1 for name in names}
    return Report(problem=problem, answer=a_comparison(problem, "cp-sat", counts), seconds=SECONDS)


CHAT_H100: Final = "chat/llama-70b-h100-tp8@eu-west"
CHAT_A100: Final = "chat/llama-70b-a100-tp4@us-east"
SUMMARIES: Final = "summaries/small@us-east"


def _proof(unserved: float = 0.0, gap: float = 0.0, unit: str = "$/h") -> Proof:
    levels = (
        Level(name="unserved", value=unserved, bound=unserved, gap=0.0, unit="share"),
        Level(name="cost", value=119.8, bound=119.8 * (1 - gap), gap=gap, unit=unit),
        Level(name="power", value=32_400, bound=32_400, gap=0.0, unit="W"),
        Level(name="changes", value=5, bound=5, gap=0.0, unit="change"),
    )
    return Proof(solver="cp-sat", levels=levels, notes=("greedy gave the first plan",))


def _near(problem: Problem) -> Comparison:
    """What costs a little more and leaves the A100s as they are."""
    return a_comparison(
        problem, "fewest-moves", {CHAT_H100: 5, CHAT_A100: 3, SUMMARIES: 2}, cost=120.9, changes=4
    )


def _step(kind: StepKind, count: int, **fields: Any) -> Step:
    return Step.model_validate({"kind": kind, "pool": "us-east", "count": count} | fields)


def _waves(problem: Problem) -> Plan:
    """Every kind of step once."""
    h100, a100, small = (_names(problem, name) for name in (CHAT_H100, CHAT_A100, SUMMARIES))
    first = Wave(
        steps=(
            _step(StepKind.ADD_NODES, 1, before=0, after=1),
            _step(StepKind.CANCEL, 1, before=3, after=2, **a100),
            _step(StepKind.START, 2, before=3, after=5, nodes=("eu-west-3", "eu-west-4"), **h100),
        ),
        duration_s=300.0,
        extra_gpus={"us-east": 4},
    )
    second = Wave(
        steps=(
            _step(StepKind.START, 3, before=0, after=3, **small),
            _step(StepKind.DRAIN, 1, before=2, after=2, **a100),
            _step(StepKind.REMOVE, 1, before=2, after=1, **a100),
        ),
        duration_s=120.0,
    )
    return Plan(
        waves=(first, second),
        duration_s=420.0,
        changes=7,
        proven_fewest=True,
        derived_from="0123456789abcdef",
    )


def _stuck(problem: Problem) -> Plan:
    """One wave, and then nothing that would not break a limit."""
    await_step = _step(StepKind.AWAIT, 1, before=3, after=3, **_names(problem, CHAT_A100))
    broken = Violation(
        family="power", key=("hall-1",), found=33_900, allowed=32_500, unit="W",
        text="The pools of hall-1 would draw 33.9 kW of at most 32.5 kW.",
    )  # fmt: skip
    stuck = Stuck(
        proven=True, violations=(broken,), extra_gpus={"us-east": 4}, drop={"chat": 0.125}, smallest=True
    )
    return Plan(
        waves=(Wave(steps=(await_step,), duration_s=120.0),), duration_s=120.0, changes=5, stuck=stuck
    )


def _names(problem: Problem, name: str) -> dict[str, Any]:
    candidate = problem.candidate[name]  # type: ignore[index]  # a plain text is a name
    return {
        "candidate": candidate.id, "pool": candidate.pool, "service": candidate.service,
        "variant": candidate.variant,
    }  # fmt: skip


def _beside(problem: Problem) -> tuple[Comparison, ...]:
    now = a_comparison(
        problem, "now", {CHAT_H100: 3, CHAT_A100: 2}, unserved_rps=10.0, unserved_share_worst=1.0, changes=0
    )
    return _greedy(problem), now


def _greedy(problem: Problem) -> Comparison:
    broken = Violation(
        family="power", key=("hall-1",), found=33_900, allowed=32_500, unit="W",
        text="the pools of hall-1 draw 33.9 kW of at most 32.5 kW",
    )  # fmt: skip
    counts = {CHAT_H100: 4, CHAT_A100: 4, SUMMARIES: 3}
    feasible = {"status": Status.FEASIBLE}
    return a_comparison(
        problem,
        "greedy",
        counts,
        solution=feasible,
        unserved_rps=2.5,
        unserved_share_worst=0.1,
        violations=(broken,),
    )


def _candidate_figures(problem: Problem, name: str, counts: dict[str, int]) -> CandidateFigures:
    candidate = problem.candidate[name]  # type: ignore[index]  # a plain text is a name
    replicas = counts.get(name, 0)
    return CandidateFigures(
        candidate=candidate.id,
        replicas=replicas,
        cost=candidate.cost * replicas,
        power_w=None if candidate.power_w is None else candidate.power_w * replicas,
        load_rps=candidate.rated_rps * replicas * 0.9,
        utilization=0.9 if replicas else 0.0,
    )


def _service_figures(problem: Problem, service: str, figures: list[CandidateFigures]) -> ServiceFigures:
    demand = problem.demand[service]  # type: ignore[index]  # a plain text is a name
    own = [each for each in figures if problem.candidate[each.candidate].service == service]
    cost = sum(each.cost for each in own)
    powers = [each.power_w for each in own]
    return ServiceFigures(
        service=demand.service,
        demand_rps=demand.arrival_rps,
        served_rps=demand.arrival_rps,
        unserved_rps=0.0,
        unserved_share=0.0,
        headroom=0.23,
        cost=cost,
        usd_per_million_tokens=cost / demand.arrival_rps / 3600 / 1200 * 1e6,
        power_w=None if None in powers else sum(power or 0.0 for power in powers),
    )

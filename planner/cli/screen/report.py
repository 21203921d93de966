"""The screen of ``plan``: the answer and its proof, what stands beside it, and what limits it."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.text import Text

from models.report import Assessment, Comparison, Report
from models.solution import Status
from planner.cli.screen.comparison_table import comparison_table
from planner.cli.screen.explanation import show_conflict, show_differences
from planner.cli.screen.layout import Column, bullets, section, table
from planner.cli.screen.plan_table import PlanView, plan_table
from planner.cli.screen.way import show_way
from planner.planning import (
    HEURISTICS,
    NOT_RUN,
    services_without_candidates,
    shapes_without_candidates,
    unkept_promises,
)
from planner.wording import (
    answer_name,
    binding_sentence,
    engines_sentence,
    headline,
    hopeless_sentence,
    hopeless_shape_sentence,
    level_rows,
    modeled_sentence,
    percent,
    promise_sentence,
    quantity,
    refusal_sentences,
    seconds_sentence,
)

__all__ = ["SHOWN_SERVICES", "show_report"]

SHOWN_SERVICES: Final = 40
"""Services that a terminal shows unless all are asked for."""

_STYLES: Final = {
    Status.OPTIMAL: "bold green",
    Status.FEASIBLE: "bold yellow",
    Status.INFEASIBLE: "bold red",
    Status.TIMED_OUT: "bold red",
    Status.FAILED: "bold red",
}
_NOTES: Final = 20
_OWN: Final = {"rate", "headroom"}
"""Families in which whole replicas nearly always bind; ``explain`` tells of them."""


def show_report(console: Console, report: Report, *, every_service: bool) -> None:
    """Print a report.

    Args:
        console: where.
        report: what.
        every_service: do not stop after :data:`SHOWN_SERVICES` of them, nor fold waves and their steps.
    """
    _show_head(
        console, report.answer, headline(report.answer, proves=_proves(report.answer)), report.problem.name
    )
    unkept = unkept_promises(report)
    if unkept:
        services = dict.fromkeys(violation.key[0] for violation in unkept)
        console.print(Text(promise_sentence([*services]), style="red"))
    if report.answer.solution.proof.levels:
        console.print()
    console.print(Text(seconds_sentence(report.seconds), style="dim"))
    if len({each.engine for each in report.engines}) > 1:
        console.print(Text(engines_sentence(report.engines), style="dim"))
    if report.answer.solution.status is Status.INFEASIBLE or report.explanation.conflict is not None:
        _show_conflict(console, report)
    _show_hopeless(console, report, every_service=every_service)
    shown = report.shown
    if report.best_effort is not None:
        section(console, "The best plan if demand may stay unserved", style="bold yellow")
        said = headline(report.best_effort, proves=_proves(report.best_effort), scarce=True)
        _show_head(console, report.best_effort, said, "under scarcity")
    if shown.assessment is not None:
        view = PlanView(report.problem, shown.solution, shown.assessment)
        _show_plan(console, view, every_service=every_service)
    _show_beside(console, report, shown)
    show_differences(console, report.explanation.differences, report.problem)
    _show_binding(console, report)
    if shown.assessment is not None:
        _show_violations(console, shown.assessment)
        _show_overloads(console, shown.assessment)
    show_way(console, report, everything=every_service)


def _proves(answer: Comparison) -> bool:
    return answer.name not in HEURISTICS


def _show_head(console: Console, answer: Comparison, said: str, name: str) -> None:
    status = answer.solution.status
    console.print(Text.assemble((str(status), _STYLES[status]), "  ", (name, "bold")))
    console.print(said)
    levels = answer.solution.proof.levels
    if levels:
        made = table([Column("level", right=False), Column("value"), Column("proven bound"), Column("gap")])
        for row in level_rows(levels):
            made.add_row(*row)
        console.print()
        console.print(made)
    for note in answer.solution.proof.notes:
        console.print(Text(note, style="dim"))


def _show_conflict(console: Console, report: Report) -> None:
    explanation = report.explanation
    if explanation.conflict is None:
        console.print("What conflicts was not found in the time given: allow more time.")
    show_conflict(console, explanation, report.problem)


def _show_hopeless(console: Console, report: Report, *, every_service: bool) -> None:
    """Services that nothing can serve, and the first reasons why."""
    hopeless = services_without_candidates(report.problem)
    shown = [*hopeless][: None if every_service else SHOWN_SERVICES]
    for service in shown:
        section(console, hopeless_sentence(service, hopeless[service]), style="bold red")
        bullets(console, refusal_sentences(report.problem, service))
    if len(hopeless) > len(shown):
        console.print(
            Text(f"... and {len(hopeless) - len(shown)} more services; --all shows them", style="dim")
        )
    shapes = shapes_without_candidates(report.problem)
    for service, bucket in shapes[: None if every_service else SHOWN_SERVICES]:
        section(console, hopeless_shape_sentence(service, bucket), style="bold red")
        bullets(console, refusal_sentences(report.problem, service, bucket.id))
    if len(shapes) > SHOWN_SERVICES and not every_service:
        console.print(
            Text(f"... and {len(shapes) - SHOWN_SERVICES} more shapes; --all shows them", style="dim")
        )
    if hopeless or shapes:
        console.print(Text("fleetplan explain FILE says why each variant is out", style="dim"))


def _show_plan(console: Console, view: PlanView, *, every_service: bool) -> None:
    most = None if every_service else SHOWN_SERVICES
    console.print()
    console.print(plan_table(view, most=most))
    hidden = len(view.services) - SHOWN_SERVICES
    if most is not None and hidden > 0:
        console.print(Text(f"... and {hidden} more services; --all shows them", style="dim"))
    modeled = modeled_sentence(view.problem, view.solution)
    if modeled is not None:
        console.print(Text(modeled, style="yellow"))
    added = {pool: count for pool, count in view.assessment.nodes_added.items() if count}
    for pool, count in added.items():
        growth = view.problem.pool[pool].growth
        gpus = f" ({count * growth.gpus_per_node} GPUs)" if growth is not None else ""
        console.print(Text(f"Nodes to add: {quantity(count, 'node')} in {pool}{gpus}", style="bold"))
    if view.assessment.switching_cost > 0:
        cost = quantity(view.assessment.switching_cost, "$/h" if view.in_dollars else "")
        console.print(Text(f"The cost holds {cost} for starts, spread over the horizon."))


def _show_beside(console: Console, report: Report, shown: Comparison) -> None:
    if not report.beside:
        return
    scarce = report.best_effort is not None
    name = answer_name(shown, heuristic=shown.name in HEURISTICS, scarce=scarce)
    rows = [(name, shown), *((_beside_name(report, each), each) for each in report.beside)]
    console.print()
    console.print(comparison_table(report.problem, rows))
    left_out = [each.name for each in report.beside if NOT_RUN in each.solution.proof.notes]
    if left_out:
        console.print(Text(f"{', '.join(left_out)}: {NOT_RUN}", style="dim"))
    if any(_answers_another(report, each) for each in report.beside):
        console.print(Text("* answers another problem: its own demand and limits", style="dim"))


def _beside_name(report: Report, each: Comparison) -> str:
    return f"{each.name} *" if _answers_another(report, each) else each.name


def _answers_another(report: Report, each: Comparison) -> bool:
    ours = {"", report.answer.solution.derived_from, report.problem.fingerprint}
    if report.best_effort is not None:
        ours.add(report.best_effort.solution.derived_from)
    return each.solution.derived_from not in ours


def _show_binding(console: Console, report: Report) -> None:
    shared = [row for row in report.explanation.binding if row.family not in _OWN]
    if shared:
        section(console, "Limits that bind")
        bullets(console, [binding_sentence(row) for row in shared])


def _show_violations(console: Console, assessment: Assessment) -> None:
    if assessment.violations:
        section(console, "Rules that this plan breaks", style="bold red")
        bullets(console, [violation.text for violation in assessment.violations], style="red")


def _show_overloads(console: Console, assessment: Assessment) -> None:
    overloads = assessment.overloads_when_equalized
    if not overloads:
        return
    section(console, "Note: if the scheduler equalizes saturation instead of splitting by rated capacity")
    sentences = [
        f"{each.candidate} would carry {percent(each.saturating_load_share)} of what it is rated for."
        for each in overloads[:_NOTES]
    ]
    if len(overloads) > _NOTES:
        sentences.append(f"... and {len(overloads) - _NOTES} more.")
    bullets(console, sentences)

"""``plan``, ``explain`` and ``check``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.edge import Common, ExitCode
from planner.cli.terminal import note, out_console, shown_progress
from planner.errors import ConfigurationError, Finding, InternalError, nearest

if TYPE_CHECKING:
    from models.problem import Problem
    from models.report import Comparison, Report
    from models.scenario import Scenario
    from models.solution import Solution
    from planner.optimization.protocol import SolveOptions

__all__ = ["CheckOptions", "ExplainOptions", "PlanOptions", "check", "explain", "plan"]

_SET_HELP = "Change one value of the scenario, e.g. limits.spend_usd_per_h=40; may be repeated."


@dataclass(frozen=True, kw_only=True)
class _Solving(Common):
    """How a scenario is read and solved."""

    solver: Annotated[str, typer.Option(help="Solver by name; 'fleetplan plugins' lists them.")] = "auto"
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL,LEVEL...",
            help="What is made small, most important first: unserved,cost,power,changes.",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.001, max=1e7, metavar="S", help="Wall time for the solver, s; default 60."),
    ] = None
    gap: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="G", help="Gap that counts as proven; default 0.0001."),
    ] = None
    threads: Annotated[int | None, typer.Option(min=1, metavar="N", help="Workers of the solver.")] = None
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", show_default=False, help=_SET_HELP)
    ] = None
    allow_unserved: Annotated[
        bool, typer.Option("--allow-unserved", help="Demand is a goal for every service, not a promise.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class PlanOptions(_Solving):
    """Options of ``plan``."""

    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).", show_default=False)
    ]
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", show_default=False, help="A saved answer to show beside; may be repeated."
        ),
    ] = None
    every_service: Annotated[
        bool, typer.Option("--all", help="Show every service, however many there are.")
    ] = False
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (docs/json.md) and nothing else.")
    ] = False
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", show_default=False, help="Save the whole answer to a file."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(_Solving):
    """Options of ``explain``."""

    subject: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO|SOLUTION",
            help="Scenario, or an answer saved with 'plan -o'.",
            show_default=False,
        ),
    ]
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON (docs/json.md).")] = (
        False
    )


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Common):
    """Options of ``check``."""

    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).", show_default=False)
    ]
    solution: Annotated[
        Path,
        typer.Argument(
            metavar="SOLUTION", help="Answer saved with 'plan -o', or a bare solution.", show_default=False
        ),
    ]
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", show_default=False, help=_SET_HELP)
    ] = None
    allow_unserved: Annotated[
        bool, typer.Option("--allow-unserved", help="Demand that stays unserved breaks no rule.")
    ] = False


def plan(options: PlanOptions) -> ExitCode:
    """Plan a fleet: how many replicas of which variant on which GPUs, how good that is, and why."""
    from planner.cli.files import check_target, write_report

    if options.output is not None:
        check_target(options.output)
    saved = [_saved(path) for path in options.against or ()]
    report = _report(options.scenario, options)
    report = report.but(beside=(*report.beside[:-1], *saved, *report.beside[-1:]))
    if options.output is not None and _worth_saving(report):
        write_report(options.output, report)
        note(f"saved to {options.output}")
    if options.as_json:
        from planner.cli.json_output import as_json, report_object

        sys.stdout.write(as_json(report_object(report)))
    else:
        from planner.cli.screen.report import show_report

        console = out_console()
        show_report(console, report, every_service=options.every_service or not console.is_terminal)
    return _ending(report)


def explain(options: ExplainOptions) -> ExitCode:
    """Say why a plan is as it is: limits that bind, variants that are out, and what to relax if there is none."""
    from planner.cli.files import is_saved_report, read_report

    saved = is_saved_report(options.subject)
    report = read_report(options.subject) if saved else _report(options.subject, options)
    if options.as_json:
        from planner.cli.json_output import as_json, explanation_object

        sys.stdout.write(as_json(explanation_object(report.explanation)))
    else:
        from planner.cli.screen.explanation import show_explanation

        show_explanation(out_console(), report.explanation, report.problem)
    return ExitCode.DONE if saved else _ending(report)


def check(options: CheckOptions) -> ExitCode:
    """Judge a solution by the rules of a scenario; exit code 3 if it breaks any."""
    from planner.cli.files import read_solution_or_report
    from planner.door import load_scenario
    from planner.planning import sized
    from planner.referee import check as violations_of

    found = read_solution_or_report(options.solution)
    scenario = load_scenario(options.scenario, overrides=options.overrides or ())
    problem = sized(scenario, allow_unserved=options.allow_unserved)
    solution = _solution_of(found, options.solution)
    _refuse_strangers(problem, solution, options.solution)
    if solution.derived_from not in {"", problem.fingerprint}:
        note("the solution was made for another problem than this scenario is now; it is judged by this one")
    violations = violations_of(problem, solution)
    console = out_console()
    if not violations:
        console.print("Every rule holds.", style="green")
        return ExitCode.DONE
    console.print(
        f"{len(violations)} {'rule is' if len(violations) == 1 else 'rules are'} broken:", style="bold red"
    )
    from planner.cli.screen.layout import bullets

    bullets(console, [violation.text for violation in violations])
    return ExitCode.NOT_KEPT


def _report(path: Path, options: _Solving) -> Report:
    from planner.door import load_scenario
    from planner.planning import plan_scenario

    scenario = _ordered(load_scenario(path, overrides=options.overrides or ()), options.objective)
    with shown_progress() as progress:
        return plan_scenario(
            scenario,
            solver=options.solver,
            options=_solve_options(options),
            progress=progress,
            allow_unserved=options.allow_unserved,
        )


def _solve_options(options: _Solving) -> SolveOptions:
    from planner.optimization.protocol import SolveOptions
    from planner.settings import load_settings

    settings = load_settings()
    return SolveOptions(
        time_limit_s=settings.time_limit_s if options.time_limit is None else options.time_limit,
        gap=settings.gap if options.gap is None else options.gap,
        threads=settings.threads if options.threads is None else options.threads,
    )


def _ordered(scenario: Scenario, objective: str | None) -> Scenario:
    """The scenario with the levels of ``--objective``."""
    from models.scenario import ObjectiveLevel

    if objective is None:
        return scenario
    known = [str(level) for level in ObjectiveLevel]
    wanted = [word.strip() for word in objective.split(",")]
    findings = [
        Finding("", None, "--objective", repr(word), ", ".join(known), nearest(word, known))
        for word in wanted
        if word not in known
    ]
    if len(set(wanted)) < len(wanted):
        findings.append(Finding("", None, "--objective", repr(objective), "each level at most once"))
    if findings:
        raise ConfigurationError.from_findings(findings)
    levels = tuple(ObjectiveLevel(word) for word in wanted)
    return scenario.but(objective=scenario.objective.but(levels=levels))


def _saved(path: Path) -> Comparison:
    """The answer of a saved file, under the name of the file."""
    import re

    from planner.cli.files import read_report

    report = read_report(path)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._") or "saved"
    return (report.best_effort or report.answer).but(name=name)


def _worth_saving(report: Report) -> bool:
    from models.solution import Status

    worth = report.answer.solution.status not in {Status.TIMED_OUT, Status.FAILED}
    if not worth:
        note("there is no answer to save; the file was left as it is")
    return worth


def _solution_of(found: Solution | Report, path: Path) -> Solution:
    from models.solution import Solution

    solution = found if isinstance(found, Solution) else (found.best_effort or found.answer).solution
    if not solution.has_plan:
        finding = Finding(str(path), None, "", f"status {solution.status}", "a solution that has a plan")
        raise ConfigurationError.from_findings([finding])
    return solution


def _refuse_strangers(problem: Problem, solution: Solution, path: Path) -> None:
    """A solution that speaks of what the scenario does not have cannot be judged."""
    places = (
        ("counts", solution.counts, problem.candidate),
        ("nodes_added", solution.nodes_added, problem.pool),
    )
    findings = [
        Finding(str(path), None, f"{field}.{name}", f"{name!r}, which the scenario does not have",
                suggestion=nearest(name, known))
        for field, counts, known in places
        for name, count in counts.items()
        if count and name not in known
    ]  # fmt: skip
    if findings:
        raise ConfigurationError.from_findings(findings)


def _ending(report: Report) -> ExitCode:
    """The exit code of an answer."""
    from models.solution import Status

    answer = report.answer
    match answer.solution.status:
        case Status.INFEASIBLE:
            return ExitCode.NOT_KEPT
        case Status.TIMED_OUT:
            return ExitCode.TRY_AGAIN
        case Status.FAILED:
            raise InternalError(f"solver {answer.name!r} failed: {'; '.join(answer.solution.proof.notes)}")
        case Status.OPTIMAL | Status.FEASIBLE:
            broken = answer.assessment is not None and answer.assessment.violations
            return ExitCode.NOT_KEPT if broken else ExitCode.DONE

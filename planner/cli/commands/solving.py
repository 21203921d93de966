"""What ``plan`` and ``explain`` have in common: how a scenario is read and solved, and what its answer means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import typer

from planner.cli.ctrl_c import ending_on_ctrl_c
from planner.cli.edge import Common, ExitCode
from planner.cli.terminal import shown_progress
from planner.errors import ConfigurationError, Finding, InternalError, nearest

if TYPE_CHECKING:
    from models.report import Report
    from models.scenario import Scenario
    from planner.optimization.protocol import SolveOptions
    from planner.settings import Settings

__all__ = [
    "MOST_THREADS",
    "Gap",
    "Overrides",
    "Solving",
    "Threads",
    "answered",
    "ending",
    "scenario_of",
    "solve_options",
]

MOST_THREADS: Final = 256
"""As many as the settings allow; written again, since reading settings takes longer than showing the help."""

Gap = Annotated[
    float | None, typer.Option(min=0, max=1, metavar="G", help="Gap that counts as proven; default 0.0001.")
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        metavar="N",
        help="Workers of the solver; default: the cores there are (CP-SAT: 8, SCIP: 1).",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        show_default=False,
        help="Change one value of the scenario, e.g. limits.spend=40; =+2 adds to what is there, =*1.5 multiplies it; "
        "may be repeated.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Solving(Common):
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
        typer.Option(
            min=0.001,
            max=1e7,
            metavar="S",
            help="Wall time for the answer, what stands beside it, its reasons and the way to it, s; default 60.",
        ),
    ] = None
    gap: Gap = None
    threads: Threads = None
    overrides: Overrides = None
    allow_unserved: Annotated[
        bool, typer.Option("--allow-unserved", help="Demand is a goal for every service, not a promise.")
    ] = False


def answered(path: Path, options: Solving) -> Report:
    """Read the scenario and plan it.

    Raises:
        ConfigurationError: the scenario or an option is wrong.
    """
    from planner.cli.decision_log import log_planned
    from planner.planning import plan_scenario
    from planner.settings import load_settings

    settings = load_settings()
    scenario = scenario_of(path, options)
    quiet = getattr(options, "as_json", False)
    with shown_progress(quiet=quiet) as progress, ending_on_ctrl_c() as cancelled:
        report = plan_scenario(
            scenario,
            solver=options.solver,
            options=replace(solve_options(options, settings), cancelled=cancelled),
            progress=progress,
            allow_unserved=options.allow_unserved,
        )
    log_planned(report, settings.log_level)
    return report


def scenario_of(path: Path, options: Solving) -> Scenario:
    """The scenario as the options change it.

    Raises:
        ConfigurationError: the scenario or an option is wrong.
    """
    from planner.door import load_scenario

    return _ordered(load_scenario(path, overrides=options.overrides or ()), options.objective)


class _Limits(Protocol):
    """What says how long, how exact and how wide."""

    @property
    def time_limit(self) -> float | None: ...
    @property
    def gap(self) -> float | None: ...
    @property
    def threads(self) -> int | None: ...


def solve_options(options: _Limits, settings: Settings | None = None) -> SolveOptions:
    """Time, gap and threads: what was asked for, else what the settings say."""
    from planner.optimization.protocol import SolveOptions
    from planner.settings import load_settings

    settings = settings or load_settings()
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


def ending(report: Report) -> ExitCode:
    """The exit code of an answer."""
    from models.solution import Status
    from planner.planning import unkept_promises

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
            return ExitCode.NOT_KEPT if broken or unkept_promises(report) else ExitCode.DONE

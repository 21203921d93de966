"""The plan as a table: a line per service, below it a line per variant and pool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from models.ids import CandidateId, ServiceId
from models.problem import Candidate, CostUnit, Problem
from models.report import Assessment, CandidateFigures, ServiceFigures
from models.solution import Solution
from planner.cli.screen.layout import Column, table
from planner.wording import gpu_label, money, now_and_planned, number, percent

__all__ = ["PlanView", "plan_table"]

_WORD: Final = re.compile(r"[a-z]+")
"""Parts of a name: a variant called decode-h200 says its role itself."""


@dataclass(frozen=True)
class PlanView:
    """A solution with its figures, as the table reads it."""

    problem: Problem
    solution: Solution
    assessment: Assessment

    @property
    def in_dollars(self) -> bool:
        """Whether costs are in $/h."""
        return self.problem.cost_unit is CostUnit.USD_PER_H

    @cached_property
    def services(self) -> tuple[ServiceFigures, ...]:
        """Services, those with unserved demand first, then as in the problem."""
        return tuple(sorted(self.assessment.services, key=lambda each: each.unserved_share <= 0))

    @cached_property
    def figures(self) -> dict[CandidateId, CandidateFigures]:
        """Figures by candidate."""
        return {each.candidate: each for each in self.assessment.candidates}

    def rows_of(self, service: ServiceId) -> tuple[Candidate, ...]:
        """Candidates of a service that run now or shall run."""
        return tuple(
            candidate
            for candidate in self.problem.candidates_of.get(service, ())
            if self.solution.count(candidate.id) or candidate.on_order
        )

    def has_domains(self, candidate: Candidate) -> bool:
        """Whether the candidate stays in one of several fabric domains of its pool."""
        nodes = self.problem.pool[candidate.pool].nodes
        return candidate.fabric_domain is not None and len({node.fabric_domain for node in nodes}) > 1


def plan_table(view: PlanView, *, most: int | None = None) -> Table:
    """The table of the first ``most`` services (None: of all)."""
    made = table(list(_columns(view)))
    for figures in view.services[:most]:
        made.add_row(*_service_row(view, figures))
        for candidate in view.rows_of(figures.service):
            made.add_row(*_candidate_row(view, candidate))
    return made


def _columns(view: PlanView) -> Iterator[Column]:
    yield Column("service\n  variant @ pool", right=False)
    yield Column("now → plan")
    yield Column("GPUs")
    if view.in_dollars:
        yield Column("$/h")
        yield Column("$/M tok")
    else:
        yield Column("cost")
    yield Column("W")
    yield Column("headroom")


def _service_row(view: PlanView, figures: ServiceFigures) -> list[Text]:
    style = "bold red" if figures.unserved_share > 0 else "bold"
    name = figures.service
    if figures.unserved_share > 0:
        name = ServiceId(
            f"{name}: {number(figures.unserved_rps)} of {number(figures.demand_rps)} req/s unserved"
        )
    rows = view.rows_of(figures.service)
    gpus = sum(candidate.gpus * view.solution.count(candidate.id) for candidate in rows)
    cells = [name, "", str(gpus), money(figures.cost)]
    if view.in_dollars:
        per_token = figures.usd_per_million_tokens
        cells.append("–" if per_token is None else money(per_token))
    cells += [_watts(figures.power_w), "–" if figures.headroom is None else percent(figures.headroom)]
    return [Text(cell, style=style) for cell in cells]


def _candidate_row(view: PlanView, candidate: Candidate) -> list[Text | Padding]:
    planned = view.solution.count(candidate.id)
    figures = view.figures.get(candidate.id)
    change = Text(now_and_planned(candidate.current, candidate.pending, planned))
    change.stylize(
        "green" if planned > candidate.on_order else "yellow" if planned < candidate.on_order else ""
    )
    domain = f" # {candidate.fabric_domain}" if view.has_domains(candidate) else ""
    said = candidate.role.value in {"both", *_WORD.findall(candidate.variant)}
    role = "" if said else f" ({candidate.role})"
    cells: list[Text | Padding] = [
        Padding(
            Text(f"{candidate.variant}{role} @ {candidate.pool}{domain}", overflow="fold"),
            (0, 0, 0, 2),
            expand=False,
        ),
        change,
        Text(gpu_label(planned, candidate.parallelism)),
        Text(money(0.0 if figures is None else figures.cost)),
    ]
    if view.in_dollars:
        cells.append(Text(""))
    return [*cells, Text(_watts(figures.power_w if figures is not None else 0.0)), Text("")]


def _watts(power_w: float | None) -> str:
    return "?" if power_w is None else f"{power_w:,.0f}"

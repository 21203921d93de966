"""Now → planned: a line per service, and below one of several variants and pools a line for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import streamlit as st

from models.ids import CandidateId
from models.problem import Candidate, CostUnit
from models.report import CandidateFigures, Report, ServiceFigures
from planner.ui.answers.frames import show_rows
from planner.ui.words import said
from planner.wording import gpu_label, now_and_planned, quantity

__all__ = ["change_rows", "show_changes"]

Row = dict[str, Any]

_HELP: Final = {
    "service": "Services that do not get all they need come first.",
    "now → plan": "Replicas; what is on order stands behind a plus.",
    "change": "Replicas started (▲) or stopped (▼).",
    "$/M tokens": "Dollars for a million tokens, input and output together.",
    "headroom": "Capacity above the load, as a share of it.",
    "unserved, req/s": "Demand that no replica carries inside its promises.",
}


def show_changes(report: Report, key: str) -> None:
    """The table, which can be narrowed down to what changes and to a name."""
    shown = report.shown
    if shown.assessment is None:
        return
    rows = _rows(key, report)
    toggle, find = st.columns([1, 2], vertical_alignment="bottom")
    changed_only = toggle.toggle("Only what changes", key="changes-only")
    wanted = find.text_input("Find a service, variant or pool", key="changes-find").strip().casefold()
    rows = [row for row in rows if _is_wanted(row, wanted, changed_only=changed_only)]
    if not rows:
        st.caption("Nothing here: no service, variant or pool fits, or nothing changes.")
        return
    cost = _cost_name(report)
    kinds = {
        cost: "money",
        "$/M tokens": "money",
        "W": "watts",
        "headroom": "share",
        "unserved, req/s": "number",
    }
    formats = {name: kind for name, kind in kinds.items() if name in rows[0]}
    show_rows(
        rows,
        name="changes",
        says="Replicas now and planned, by service, variant and pool, with GPUs, cost, power and headroom.",
        formats=formats,
        help=_HELP,
    )
    _show_added(report)


def change_rows(report: Report) -> list[Row]:
    """All rows: services with unserved demand first, then as in the problem."""
    assessment = report.shown.assessment
    if assessment is None:
        return []
    figures = {each.candidate: each for each in assessment.candidates}
    services = sorted(assessment.services, key=lambda each: each.unserved_share <= 0)
    return [row for service in services for row in _service_rows(report, service, figures)]


@st.cache_resource(show_spinner=False, max_entries=20)
def _rows(key: str, _report: Report) -> list[Row]:
    return change_rows(_report)


def _service_rows(
    report: Report, service: ServiceFigures, figures: Mapping[CandidateId, CandidateFigures]
) -> Iterator[Row]:
    solution = report.shown.solution
    candidates = [
        candidate
        for candidate in report.problem.candidates_of.get(service.service, ())
        if solution.count(candidate.id) or candidate.on_order
    ]
    planned = sum(solution.count(candidate.id) for candidate in candidates)
    row: Row = {
        "service": service.service,
        "variant @ pool": "all variants",
        "now → plan": now_and_planned(
            sum(each.current for each in candidates), sum(each.pending for each in candidates), planned
        ),
        "change": _change(planned - sum(each.on_order for each in candidates)),
        "GPUs": sum(each.gpus * solution.count(each.id) for each in candidates),
        "layout": "",
        _cost_name(report): service.cost,
    }
    if _in_dollars(report):
        row["$/M tokens"] = service.usd_per_million_tokens
    row |= {"W": service.power_w, "headroom": service.headroom, "unserved, req/s": service.unserved_rps}
    if len(candidates) == 1:
        (only,) = candidates
        alone = _candidate_row(report, row, only, figures.get(only.id))
        yield {**row, **{name: alone[name] for name in ("variant @ pool", "layout")}}
        return
    yield row
    for candidate in candidates:
        yield _candidate_row(report, row, candidate, figures.get(candidate.id))


def _candidate_row(
    report: Report, service: Row, candidate: Candidate, figures: CandidateFigures | None
) -> Row:
    planned = report.shown.solution.count(candidate.id)
    domain = f" # {candidate.fabric_domain}" if candidate.fabric_domain is not None else ""
    return {
        **dict.fromkeys(service),
        "service": candidate.service,
        "variant @ pool": f"{candidate.variant} @ {candidate.pool}{domain}",
        "now → plan": now_and_planned(candidate.current, candidate.pending, planned),
        "change": _change(planned - candidate.on_order),
        "GPUs": candidate.gpus * planned,
        "layout": gpu_label(planned, candidate.parallelism),
        _cost_name(report): 0.0 if figures is None else figures.cost,
        "W": 0.0 if figures is None else figures.power_w,
    }


def _change(count: int) -> str:
    return f"▲ {count}" if count > 0 else f"▼ {-count}" if count < 0 else ""


def _is_wanted(row: Row, wanted: str, *, changed_only: bool) -> bool:
    if changed_only and not row["change"]:
        return False
    return not wanted or wanted in f"{row['service']} {row['variant @ pool']}".casefold()


def _in_dollars(report: Report) -> bool:
    return report.problem.cost_unit is CostUnit.USD_PER_H


def _cost_name(report: Report) -> str:
    return "$/h" if _in_dollars(report) else "cost"


def _show_added(report: Report) -> None:
    assessment = report.shown.assessment
    if assessment is None:
        return
    for pool, count in assessment.nodes_added.items():
        growth = report.problem.pool[pool].growth
        if count and growth is not None:
            gpus = quantity(count * growth.gpus_per_node, "GPU")
            st.markdown("**Nodes to add:** " + said(f"{quantity(count, 'node')} in {pool} ({gpus})"))
    if assessment.switching_cost > 0:
        cost = quantity(assessment.switching_cost, "$/h" if _in_dollars(report) else "")
        st.caption(said(f"The cost holds {cost} for starts, spread over the horizon."))

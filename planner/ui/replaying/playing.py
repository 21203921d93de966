"""What came of a replay: policies beside each other, promises, series over time, and tables to take along."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Final

import streamlit as st

from models.replay import PolicyRun, PromiseKept, Replay
from planner.charts import replay as charts
from planner.ui.answers.drawing import show_chart, show_panels
from planner.ui.answers.frames import show_rows
from planner.ui.jobs import Job
from planner.ui.replaying.wanted import FOLDERS, Played
from planner.ui.store import default_folder
from planner.ui.waiting import HowFar, SoFar
from planner.ui.words import plain, said
from planner.wording import number, percent, time_span

__all__ = ["how_far", "policy_rows", "promise_rows", "show_played"]

Rows = list[dict[str, Any]]

_LONG_S: Final = 15.0
_TALL: Final = 240
_LEGEND_ROW: Final = 18
_SAYS: Final[Mapping[str, str]] = {
    "first-tokens": "Time to first token by when requests arrived: p50 to p99 as a band, p95 as a line; green is inside "
    "the strictest promise, where there is one.",
    "replicas": "Replicas over time, by variant: those that start, run, or still finish requests.",
    "kv": "Share of the KV cache that is held, by variant; dashed: where replicas are saturated.",
    "failures": "Requests that failed, by cause; a policy without failures has no panel.",
}
_LARGEST: Final = "the 8 that are largest"
_MOST: Final = 8
_NAMES: Final = {"ttft_s": "TTFT", "itl_s": "ITL", "e2e_s": "whole request"}


def how_far(job: Job) -> HowFar:
    """Simulated time against the last arrival, policy by policy."""
    levels = list(job.progress.values())
    policies = job.task.arguments["wanted"]["policies"]
    if not levels:
        told = (
            "Planning the fleet and loading the twin"
            if job.seconds < _LONG_S
            else "Compiling the twin, once for all"
        )
        return HowFar(f"{told}, {job.seconds:.0f} s", 0.0)
    latest = levels[-1]
    part = min(1.0, float(latest["value"]) / max(1e-9, float(latest["bound"])))
    through = len(levels) - 1
    return HowFar(
        f"{latest['level']}, {through + 1} of {len(policies)}: {time_span(float(latest['value']))} of simulated time, "
        f"{job.seconds:.0f} s",
        (through + part) / len(policies),
    )


def show_played(found: SoFar) -> None:
    """All of it."""
    played = _read(found.key, found.text)
    told = played.told
    first = told.runs[0].total
    st.markdown(
        said(f"{number(first.arrivals, 9)} requests, seed {told.seed}.")
        + ("" if found.over else " More policies are on their way.")
    )
    if found.over and played.missing:
        st.markdown(f":orange[:material/timer_off:] Stopped: {', '.join(played.missing)} did not end.")
    st.header("Policies beside each other")
    show_rows(
        policy_rows(told),
        name="policies",
        says="Each policy on the same traffic.",
        formats=_formats(told),
        help=_HELP,
    )
    _show_promises(told)
    st.header("Over time")
    _show_series(played)
    st.header("Where figures are from")
    _show_sources(told)
    if found.over:
        _show_downloads(played)


@st.cache_resource(show_spinner=False, max_entries=8)
def _read(key: str, _text: str) -> Played:
    return Played.model_validate_json(_text)


_HELP: Final = {
    "in time": "Of the requests that ended: done within every promise.",
    "goodput, req/s": "Requests done within every promise, per second.",
    "failed": "Rejected, aborted, or given up by clients.",
    "changes": "Times that the policy changed a count of replicas.",
    "most replicas": "Most replicas of each variant, added up.",
}


def _formats(told: Replay) -> dict[str, str]:
    numbers = (
        "goodput, req/s",
        "TTFT p50, s",
        "TTFT p95, s",
        "TTFT p99, s",
        "ITL, ms",
        "replica hours",
        "kWh",
    )
    return {**dict.fromkeys(numbers, "number"), "in time": "share", _money(told): "money"}


def _money(told: Replay) -> str:
    return "$" if told.cost_unit == "USD/h" else "cost"


def policy_rows(told: Replay) -> Rows:
    """A line per policy."""
    return [_policy_row(run, _money(told)) for run in told.runs]


def _policy_row(run: PolicyRun, money: str) -> dict[str, Any]:
    total = run.total
    itl_s = total.itl.mean_s
    causes = {cause.replace("_", " "): count for cause, count in total.failed.items()}
    return {
        "policy": run.policy,
        "done": total.done,
        "failed": total.failures,
        "in time": total.attainment,
        "goodput, req/s": total.goodput_rps,
        "TTFT p50, s": total.ttft.p50_s,
        "TTFT p95, s": total.ttft.p95_s,
        "TTFT p99, s": total.ttft.p99_s,
        "ITL, ms": None if itl_s is None else itl_s * 1e3,
        "replica hours": run.replica_hours,
        "most replicas": run.most_replicas,
        money: run.cost,
        "kWh": run.energy_kwh,
        "changes": run.decisions,
        "unfinished": total.unfinished,
        "failed because": ", ".join(f"{cause} {count}" for cause, count in causes.items()),
    }


def _show_promises(told: Replay) -> None:
    rows = promise_rows(told)
    if not rows:
        return
    broken = [row for row in rows if row["kept"] == "broken"]
    if broken:
        st.markdown(
            f":red[:material/error:] {len(broken)} of {len(rows)} promises are broken; they come first in the table."
        )
    else:
        st.markdown(":green[:material/check:] Every promise is kept under every policy.")
    show_rows(
        rows, name="promises", says="What each service promises, and what its requests saw under each policy."
    )


def promise_rows(told: Replay) -> Rows:
    """A line per promise of a service under a policy; broken ones first."""
    rows = [
        {
            "service": service.service,
            "policy": run.policy,
            "promise": f"{_NAMES[each.name]} {each.at}",
            "promised, s": number(each.target_s),
            "seen, s": "" if each.seen_s is None else number(each.seen_s, 3),
            "kept": _kept(each),
            "in time": "" if service.attainment is None else percent(service.attainment, 3),
        }
        for run in told.runs
        for service in run.services
        if service.arrivals
        for each in service.promises
    ]
    return sorted(rows, key=lambda row: row["kept"] != "broken")


def _kept(promise: PromiseKept) -> str:
    return {True: "kept", False: "broken", None: "nobody knows"}[promise.kept]


def _show_series(played: Played) -> None:
    rows = played.rows
    show_chart(
        charts.traffic_chart(rows["traffic"]).properties(height=_TALL),
        rows["traffic"],
        name="traffic",
        says="Requests that arrive, as an area, and those that each policy has done within every promise, as lines.",
    )
    _show_first_tokens(played)
    shown = _chosen(rows["replicas"])
    by_variant: dict[str, Callable[..., Any]] = {
        "replicas": charts.replica_chart,
        "kv": partial(charts.kv_chart, saturated=played.saturated),
    }
    for name, draw in by_variant.items():
        part = [row for row in rows[name] if row["variant"] in shown]
        if part:
            _show_by_policy(played, draw, part, name=name)
    if rows["failures"]:
        _show_by_policy(played, _failures, rows["failures"], name="failures")
    else:
        st.caption("No request failed under any policy.")


def _failures(rows: Rows, *, within: Rows | None = None) -> Any:  # noqa: ANN401 - an Altair chart
    return charts.failure_chart(rows, [*dict.fromkeys(row["policy"] for row in rows)], within=within)


def _show_first_tokens(played: Played) -> None:
    rows = played.rows["ttft"]
    if any(row["ttft_s"] is not None for row in rows):
        draw = partial(charts.ttft_chart, targets_s=played.targets_s)
        _show_by_policy(played, draw, rows, name="first-tokens")
    else:
        st.caption("No request got a token, so there is no time to the first one.")


def _show_by_policy(played: Played, draw: Callable[..., Any], rows: Rows, *, name: str) -> None:
    """A panel for each policy that has rows, all with the same axes."""
    policies = [run.policy for run in played.told.runs]
    parts = {policy: [row for row in rows if row["policy"] == policy] for policy in policies}
    names = {row.get("variant", row.get("cause", "")) for row in rows}
    height = _TALL + _LEGEND_ROW * ceil(len(names) / 2)
    panels = {
        policy: draw(part, within=rows).properties(height=height) for policy, part in parts.items() if part
    }
    show_panels(panels, draw(rows), rows, name=name, says=_SAYS[name])


def _chosen(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Variants that are drawn: few enough to be told apart."""
    peaks: dict[str, float] = {}
    for row in rows:
        peaks[row["variant"]] = max(peaks.get(row["variant"], 0.0), row["replicas"] or 0.0)
    if len(peaks) <= _MOST:
        return {*peaks}
    services = [*dict.fromkeys(name.partition("/")[0] for name in sorted(peaks))]
    wanted = st.selectbox(
        "Which variants", [_LARGEST, *services], key="replay-variants", help="Of one service, or the largest."
    )
    if wanted == _LARGEST or wanted is None:
        return {*sorted(peaks, key=lambda name: (-peaks[name], name))[:_MOST]}
    return {name for name in peaks if name.partition("/")[0] == wanted}


def _show_sources(told: Replay) -> None:
    with st.expander("Step times, and what to know of this run", icon=":material/menu_book:"):
        st.markdown("\n".join(f"- {line}" for line in _sources(told)))


def _sources(told: Replay) -> Iterator[str]:
    for note in told.notes:
        yield said(note)
    for each in told.steps:
        yield f"**{plain(each.variant)}**: {said(each.source)} ({each.origin})"
    for trace in told.traces:
        yield f"traffic {plain(trace)}"


def _show_downloads(played: Played) -> None:
    path = default_folder() / FOLDERS / Path(played.archive).name
    with st.container(horizontal=True):
        st.download_button(
            "Figures, JSON",
            lambda: played.told.model_dump_json(indent=1),
            file_name="replay.json",
            mime="application/json",
            icon=":material/download:",
            key="replay-figures",
            on_click="ignore",
        )
        if path.is_file():
            st.download_button(
                "All tables, ZIP",
                path.read_bytes,
                file_name="replay.zip",
                mime="application/zip",
                icon=":material/folder_zip:",
                key="replay-tables",
                on_click="ignore",
                help="Requests, services and variants over time, and replicas, of each policy, as CSV.",
            )

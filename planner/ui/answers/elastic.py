"""An elastic deployment for the eye: sizes, ways beside each other, checks, and the calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import streamlit as st

from models.elastic import ResizeMode
from models.resizing import (
    ElasticPicture,
    Placement,
    Preflight,
    PreflightVerdict,
    ResizeEstimate,
    SizeLine,
)
from models.scenario import Scenario
from planner.charts.resizes import ways_chart
from planner.elastic.dialects import calls_of, curl_of
from planner.elasticity import preflight_of, ways_to
from planner.ui.answers.drawing import show_chart
from planner.ui.answers.frames import show_rows
from planner.wording import counted, number, time_span

__all__ = ["show_deployment"]

_HOST: Final = "http://HOST:8000"
_ICONS: Final = {
    PreflightVerdict.OK: ":green[:material/check_circle:]",
    PreflightVerdict.WARNING: ":orange[:material/warning:]",
    PreflightVerdict.UNKNOWN: ":gray[:material/help:]",
    PreflightVerdict.REFUSED: ":red[:material/cancel:]",
}
_NAMES: Final = {
    ResizeMode.BLOCKING: "A: blocking",
    ResizeMode.ASYNC: "B: prepared while it serves",
    ResizeMode.ASYNC_GRAPH_REUSE: "C: graphs kept as well",
    ResizeMode.RESTART: "restart",
    ResizeMode.REDEPLOY: "redeploy",
}


def show_deployment(scenario: Scenario, pictures: Sequence[ElasticPicture]) -> None:
    """Choose a deployment and a size, and see everything about it."""
    names = [each.name for each in pictures]
    left, right = st.columns(2)
    picture = pictures[names.index(left.selectbox("Deployment", names, key="elastic-deployment"))]
    sizes = [line.verdict.ranks for line in picture.lines if line.verdict.ranks != picture.current]
    show_sizes(picture)
    if not sizes:
        return
    ranks = right.selectbox("To ranks", sizes, index=_first(picture, sizes), key=f"elastic-to-{names}")
    show_ways(picture, ways_to(scenario, picture, ranks), ranks)
    show_checks(preflight_of(picture, ranks))
    line = picture.line(ranks)
    if line is not None and line.verdict.reachable:
        urls = [picture.deployment.url or _HOST] * picture.current
        calls = calls_of(picture.deployment.engine, urls, ranks)
        show_calls([curl_of(call) for call in calls], scenario="SCENARIO", ranks=ranks)


def _first(picture: ElasticPicture, sizes: Sequence[int]) -> int:
    """The place of the next larger size that can be reached; of the first size where there is none."""
    reachable = [line.verdict.ranks for line in picture.lines if line.verdict.reachable]
    larger = [ranks for ranks in reachable if ranks > picture.current]
    return sizes.index(larger[0]) if larger else 0


def show_sizes(picture: ElasticPicture) -> None:
    """Every size: whether it can be reached in place, why not, what it carries."""
    st.header("Sizes", divider="gray")
    show_rows(
        [_size_row(picture, line) for line in picture.lines],
        name="elastic-sizes",
        says="Every size of the deployment with whether it can be reached in place, and why not.",
        formats={"req/s": "number", "lead time, s": "number", "downtime, s": "number"},
    )
    for note in picture.notes:
        st.caption(note)


def _size_row(picture: ElasticPicture, line: SizeLine) -> dict[str, Any]:
    ranks = line.verdict.ranks
    way = line.ways[0] if line.ways and line.verdict.reachable else None
    here = ranks == picture.current
    copies = line.verdict.redundant_experts
    return {
        "ranks": ranks,
        "GPUs": ranks * picture.shape.tensor_parallel,
        "in place": "now" if here else f"by {way.mode.value}" if way is not None else "no",
        "req/s": line.rated_rps,
        "downtime, s": None if way is None else way.downtime.expected_s,
        "lead time, s": None if way is None else way.lead_s,
        "experts beside": copies if copies is not None and copies >= 0 else None,
        "why not": " ".join(line.texts),
    }


def show_ways(picture: ElasticPicture, ways: Sequence[ResizeEstimate], ranks: int) -> None:
    """Ways to one size beside each other: over time, and in figures."""
    st.header(f"From {picture.current} to {ranks} ranks", divider="gray")
    own = next((way for way in ways if way.mode is picture.mode), None)
    line = picture.line(ranks)
    if own is not None and line is not None and line.verdict.reachable:
        st.markdown(
            f"This engine goes by **{own.mode.value}**: {time_span(own.downtime.expected_s)} without service; call "
            f"**{time_span(own.lead_s)}** before the capacity is needed."
        )
    elif line is not None:
        st.markdown(f":red[:material/error:] Not in place. {' '.join(line.texts)}")
    rows = [row for way in ways for row in _bars(way)]
    show_chart(
        ways_chart(rows),
        rows,
        name="elastic-ways",
        says="Stages of each way over time, and whether somebody is served meanwhile.",
    )
    show_rows(
        [_way_row(picture, way) for way in ways],
        name="elastic-ways-figures",
        says="Downtime, total time, idle accelerators and hindered requests of each way.",
        formats=dict.fromkeys(
            ("without service, s", "at worst, s", "total, s", "idle GPU-s", "requests hindered"), "number"
        ),
    )
    told = dict.fromkeys(text for way in ways for text in way.assumptions)
    if told:
        with st.expander("What the times rest on"):
            st.markdown("\n".join(f"- {text[0].upper()}{text[1:]}." for text in told))


def _bars(way: ResizeEstimate) -> Iterator[dict[str, Any]]:
    at_s = 0.0
    name = _NAMES[way.mode]
    for stage in way.stages:
        if stage.placement is Placement.ABSENT:
            continue
        served = stage.placement is Placement.BACKGROUND
        end_s = at_s + stage.time.expected_s
        where = f"{stage.stage.value} ({stage.where})" if stage.where else stage.stage.value
        yield _bar(name, where, "serves as before" if served else "nobody is served", (at_s, end_s))
        at_s = end_s
    if not way.stages:
        ready_s = way.total.expected_s - way.downtime.expected_s
        yield _bar(name, "preparation", "serves as before", (0.0, ready_s))
        yield _bar(name, "commit", "nobody is served", (ready_s, way.total.expected_s))
        at_s = way.total.expected_s
    if way.balance.expected_s:
        yield _bar(name, "experts move", "experts move", (at_s, at_s + way.balance.expected_s))


def _bar(way: str, stage: str, serving: str, span: tuple[float, float]) -> dict[str, Any]:
    return {"way": way, "stage": stage, "serving": serving, "from": span[0], "to": span[1]}


def _way_row(picture: ElasticPicture, way: ResizeEstimate) -> dict[str, Any]:
    return {
        "way": _NAMES[way.mode],
        "without service, s": way.downtime.expected_s,
        "at worst, s": way.downtime.high_s,
        "total, s": way.total.expected_s,
        "requests hindered": way.hindered(picture.arrival_rps),
        "idle GPU-s": way.idle_gpu_seconds,
        "GPUs held": way.peak_gpus,
    }


def show_checks(preflight: Preflight) -> None:
    """Every check, and what to change."""
    st.header("Before it is called", divider="gray")
    refused = sum(check.verdict is PreflightVerdict.REFUSED for check in preflight.checks)
    if refused:
        st.markdown(f"**{counted(refused, 'check')} refused.**")
    for check in preflight.checks:
        change = f" *{check.change}*" if check.change else ""
        st.markdown(f"{_ICONS[check.verdict]} **{check.name}**: {check.finding}{change}")


def show_calls(commands: Sequence[str], *, scenario: str, ranks: int) -> None:
    """The calls, and the command that carries them out with care."""
    st.header("Calls", divider="gray")
    st.code("\n".join(commands), language="bash", wrap_lines=True)
    st.caption("One call alone leaves accelerators, traffic and what goes wrong to you. This does all of it:")
    st.code(
        f"fleetplan elastic resize {scenario} --to {ranks} --url URL --record FILE --yes", language="bash"
    )
    st.caption(f"A call takes up to {number(900)} s to answer, and is never sent a second time.")

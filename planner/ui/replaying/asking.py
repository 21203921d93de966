"""The question: which traffic, which policies, from where; one form, so that nothing is played while somebody types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import streamlit as st

from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.ui import session
from planner.ui.faults import show_fault
from planner.ui.replaying.traffic import SHAPES, Traffic, kept_trace, planned_lines, typed_lines
from planner.ui.replaying.wanted import Wanted, replay_task
from planner.ui.store import default_folder
from planner.ui.uploads import LIMIT_BYTES, Upload
from planner.ui.workspace import Draft

__all__ = ["POLICY_NAMES", "QUESTION", "show_asking"]

QUESTION: Final = "replay"
POLICY_NAMES: Final[Mapping[str, str]] = {
    "static": "static: the plan as it is",
    "planner": "planner: plans again while it goes on",
    "hpa": "hpa: Kubernetes HPA on waiting requests and KV usage",
    "keda": "keda: KEDA on waiting requests",
    "epp-keda": "epp-keda: KEDA on the saturation of the router's pool",
    "kpa": "kpa: Knative on requests in flight",
    "wva": "wva: WVA by percentages of saturation",
    "wva-v2": "wva-v2: WVA by tokens",
}
"""Policies that come with fleetplan, each with what it is; asking the twin for them would load it."""

_PLANNED: Final = "As planned"
_LINES: Final = "In a line"
_FILE: Final = "A file"
_STARTS: Final[Mapping[str, str]] = {
    "the plan's": "plan",
    "those that run now": "now",
    "the least that is allowed": "least",
}
_AS_FILE_SAYS: Final = "as the file says"
_EXAMPLE: Final = "poisson:rate=5,duration=10m,input=normal(1000,400,10,8000),output=lognormal(300,200)"


def show_asking(draft: Draft) -> None:
    """The form; asks where somebody wants to."""
    kind = st.radio(
        "Traffic from",
        [_PLANNED, _LINES, _FILE],
        horizontal=True,
        key="replay-from",
        help="The draft's own demand in several shapes, traffic that you describe, or a trace of yours.",
    )
    with st.form("replay", border=True):
        make = {_PLANNED: _planned, _LINES: _typed, _FILE: _uploaded}[kind](draft.scenario)
        policies = st.multiselect(
            "Policies",
            [*POLICY_NAMES],
            ["static", "hpa"],
            format_func=POLICY_NAMES.__getitem__,
            help="Each is played on the same traffic, one after the other.",
        )
        start, seed, every = st.columns([2, 1, 2], vertical_alignment="bottom")
        first = start.selectbox("Replicas at the start", [*_STARTS])
        chance = seed.number_input(
            "Seed", 0, 2**31 - 1, 0, help="Of all chance: the same seed, the same run."
        )
        variants = every.checkbox(
            "Policies may start every variant", help="Else those of the plan and of what runs now."
        )
        asked = st.form_submit_button("Replay", type="primary", icon=":material/play_circle:")
    if not asked:
        return
    try:
        traffic = make()
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was played.")
        return
    if not policies:
        st.markdown(":red[:material/error:] Policies: choose at least one.")
        return
    _ask(draft, traffic, policies, (_STARTS[first or "the plan's"], int(chance), variants))


def _ask(draft: Draft, traffic: Traffic, policies: Sequence[str], how: tuple[str, int, bool]) -> None:
    start, seed, every = how
    wanted = Wanted(traffic=traffic, policies=tuple(policies), start=start, every_variant=every, seed=seed)
    session.ask(QUESTION, replay_task(draft.scenario, session.workspace().how, wanted), again=True)
    st.rerun()


def _planned(scenario: Scenario) -> Callable[[], Traffic]:
    """Fields for the draft's own traffic."""
    shape, long, many = st.columns([3, 1, 1])
    how = shape.selectbox("Shape", [*SHAPES], help="Of the arrivals of every service of the draft.")
    minutes = long.number_input("Minutes", 1.0, 1440.0, 10.0, 5.0)
    times = many.number_input("Times what is planned", 0.01, 100.0, 1.0, 0.1)
    return lambda: Traffic(
        lines=planned_lines(scenario, how or next(iter(SHAPES)), minutes=minutes, times=times)
    )


def _typed(scenario: Scenario) -> Callable[[], Traffic]:
    """A field for traffic in words."""
    first = scenario.services[0].id
    text = st.text_area(
        "Traffic, a line each",
        _EXAMPLE,
        height=110,
        help="KIND:KEY=VALUE,… with the kinds poisson, gamma, constant, staircase, ramp and diurnal (docs/traces.md). "
        f"A service before it, as in {first}=poisson:…, says whose requests they are; else they are {first}'s.",
    )
    return lambda: Traffic(lines=typed_lines(text))


def _uploaded(scenario: Scenario) -> Callable[[], Traffic]:
    """Fields for a trace of the visitor."""
    file = st.file_uploader(
        "Your trace",
        type=["csv", "jsonl"],
        key="replay-file",
        help="Azure, BurstGPT, Mooncake, or any table with arrival and lengths (docs/traces.md); "
        f"{LIMIT_BYTES / 1e6:.0f} MB.",
    )
    whose, many = st.columns([3, 1])
    names = [_AS_FILE_SAYS, *(service.id for service in scenario.services)]
    service = whose.selectbox(
        "Whose requests they are", names, help="A file that names none is the first service's."
    )
    times = many.number_input("Times the requests", 0.001, 1000.0, 1.0, 0.1)

    def made() -> Traffic:
        if file is None:
            raise ConfigurationError("Your trace: choose a file first")
        name = kept_trace(Upload(file.name, file.getvalue()), default_folder())
        return Traffic(file=name, service="" if service == _AS_FILE_SAYS else service or "", scale=times)

    return made

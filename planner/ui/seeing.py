"""A live fleet as a draft: what a recorded observation, or the cluster now, says, and all that is assumed beside it."""

from __future__ import annotations

import os
from typing import Final

import streamlit as st

from models.observation import Observation
from planner.catalog import load_catalog
from planner.clock import SystemClock
from planner.drafting import draft_scenario
from planner.errors import ConfigurationError
from planner.ui import session
from planner.ui.allowing import OBSERVE, is_allowed
from planner.ui.faults import show_fault
from planner.ui.words import said
from planner.ui.workspace import Draft
from planner.wording import counted

__all__ = [
    "PROMETHEUS",
    "TOKEN",
    "observe_now",
    "open_observation",
    "show_assumptions",
    "show_observing",
]

PROMETHEUS: Final = "FLEETPLAN_UI_PROMETHEUS"
"""Address of the Prometheus that is asked too."""

TOKEN: Final = "FLEETPLAN_PROMETHEUS_TOKEN"  # noqa: S105 - the name of a variable
_ASSUMED: Final = "fleetplan.assumed"


def open_observation(seen: Observation) -> None:
    """Open what was observed as a draft of its own.

    Raises:
        ConfigurationError: nothing of it can be planned; says why.
    """
    draft = draft_scenario(seen, load_catalog())
    workspace = session.workspace().added(Draft(name=draft.scenario.name[:60], scenario=draft.scenario))
    assumed: dict[str, tuple[str, ...]] = st.session_state.setdefault(_ASSUMED, {})
    assumed[workspace.opened] = draft.assumptions
    session.keep(workspace)
    st.rerun()


def show_observing(*, full: bool) -> None:
    """A button that observes now, where this server may; else how to bring an observation."""
    if not is_allowed(OBSERVE):
        st.caption(f"Live: fleetplan observe --kubernetes -o seen.json, or start the app with {OBSERVE}=1.")
        return
    context = st.text_input("Context of the kubeconfig", key="observe-context", placeholder="the current one")
    if st.button("Observe now", icon=":material/visibility:", disabled=full, width="stretch"):
        try:
            with st.spinner("Asking cluster and Prometheus"):
                seen = observe_now(context.strip())
            open_observation(seen)
        except ConfigurationError as fault:
            show_fault(fault, "Nothing was opened.")


def observe_now(context: str = "") -> Observation:
    """What the cluster says now, and the Prometheus that the environment names.

    Args:
        context: of the kubeconfig; empty: the current one.

    Raises:
        ConfigurationError: there is no such context, or what is needed is not installed.
    """
    from planner.control.collectors import open_source
    from planner.control.discovery.kubernetes import source
    from planner.control.protocols import MetricsReading

    clock = SystemClock()
    cluster = source({"clusters": [{"context": context or None}]}, clock).see(clock.unix_s())
    url, token = os.environ.get(PROMETHEUS), os.environ.get(TOKEN)
    reading = MetricsReading()
    if url:
        options = {"url": url} | ({"bearer_token": token} if token else {})
        reading = open_source("prometheus", options, clock).read(cluster.variants, clock.unix_s())
    inventory = cluster.inventory
    return Observation(
        at_s=clock.unix_s(),
        engines=reading.engines,
        traffic=reading.traffic,
        variants=cluster.variants,
        pools=inventory.pools,
        quotas=inventory.quotas,
        findings=tuple(dict.fromkeys((*cluster.findings, *inventory.findings, *reading.findings))),
        complete=reading.complete and cluster.complete and inventory.complete,
    )


def show_assumptions(draft: str) -> None:
    """What is assumed in a draft of an observation; nothing for others. Its description says so after a reload."""
    assumed: dict[str, tuple[str, ...]] = st.session_state.get(_ASSUMED, {})
    sentences = assumed.get(draft, ())
    if sentences:
        with st.expander(f"Assumed: {counted(len(sentences), 'thing')}", icon=":material/help:"):
            st.markdown("\n".join(f"- {said(each)}" for each in sentences))

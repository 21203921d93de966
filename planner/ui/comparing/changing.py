"""One thing changed by a control, in a new draft or in the open one."""

from __future__ import annotations

from typing import Final

import streamlit as st

from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.planning import known_catalog
from planner.ui import session
from planner.ui.comparing.controls import EVERYTHING, Change, Control, changed, named, nodes_of, targets_of
from planner.ui.faults import show_fault
from planner.ui.workspace import DRAFTS_LIMIT, Draft

__all__ = ["show_changing"]

_HELP: Final = {
    Control.DEMAND: "The rate of every request shape times this.",
    Control.PRICE: "Prices of accelerators and of added nodes times this; list prices where a pool states none.",
    Control.SLO: "TTFT, ITL and E2E promises times this: above 1 is looser.",
    Control.NODES: "Nodes that are ready; with fewer than run replicas, the rest is lost, and so is what ran on it.",
    Control.TAU: "KV-cache usage at which a replica is saturated.",
    Control.GAMMA: "Distance to τ below which scale-up starts; replicas are rated at τ − γ.",
    Control.POWER: "Largest power drawn at once, kW.",
    Control.FIELD: "One PATH=VALUE a line, as in `plan --set`; =*1.5 multiplies what is there, =+2 adds to it.",
}
_FIRST_CAP_KW: Final = 100.0


def show_changing(draft: Draft) -> None:
    """The controls, and what they do."""
    chosen = st.selectbox("What to change", [each.value for each in Control], key="control")
    control = Control(chosen)
    with st.form(f"change-{control.name}-{draft.name}-{draft.scenario.fingerprint}", border=True):
        change = _asked(draft.scenario, control)
        with st.container(horizontal=True):
            anew = st.form_submit_button(
                "Change in a new draft",
                type="primary",
                icon=":material/add:",
                disabled=len(session.workspace().drafts) >= DRAFTS_LIMIT,
                help=f"A copy of “{draft.name}” with this change, named after it.",
            )
            here = st.form_submit_button(
                "Change the open draft", icon=":material/check:", help="Undo in the sidebar takes it back."
            )
    if not (anew or here):
        return
    try:
        scenario = changed(draft.scenario, change, known_catalog(draft.scenario.profiles))
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was changed.")
        return
    if anew:
        session.keep(session.workspace().added(Draft(name=named(change), scenario=scenario)))
    else:
        session.change(lambda draft: draft.edited(scenario))
    st.rerun()


def _asked(scenario: Scenario, control: Control) -> Change:
    if control is Control.FIELD:
        text = st.text_area(
            "Fields, PATH=VALUE", help=_HELP[control], placeholder="limits.spend_usd_per_h=900"
        )
        return Change(control, text=text)
    targets = targets_of(scenario, control)
    where, how_much = st.columns(2)
    target = where.selectbox("Of which", targets)
    return _amount(scenario, Change(control, target or EVERYTHING), how_much)


def _amount(scenario: Scenario, change: Change, place: st.delta_generator.DeltaGenerator) -> Change:
    control, note = change.control, _HELP[change.control]
    match control:
        case Control.DEMAND | Control.PRICE | Control.SLO:
            least = 0.0 if control is Control.DEMAND else 0.01
            factor = place.number_input("Times", least, 1000.0, 1.2, 0.1, help=note)
            return Change(control, change.target, factor)
        case Control.NODES:
            now = {pool.id: nodes_of(pool) for pool in scenario.pools}
            listed = ", ".join(f"{name} {count}" for name, count in list(now.items())[:_NAMED])
            first = next(iter(now.values()))
            count = place.number_input("Nodes", 0, 100_000, first + 1, 1, help=f"{note} Now: {listed}.")
            return Change(control, change.target, count)
        case Control.POWER:
            now_w = next((domain.cap_w for domain in scenario.limits.power), _FIRST_CAP_KW * 1e3)
            cap = place.number_input("Cap, kW", 0.0, 1e6, now_w / 1e3, 5.0, help=note)
            return Change(control, change.target, cap * 1e3)
        case _:
            thresholds = scenario.services[0].thresholds
            now_share = thresholds.tau_kv if control is Control.TAU else thresholds.gamma_kv
            share = place.number_input("Share", 0.0, 1.0, now_share, 0.05, help=note)
            return Change(control, change.target, share)


_NAMED: Final = 8

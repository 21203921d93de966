"""Services and pools that are added: a copy of one that is there, or a pool of the catalog."""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from planner.ui.editing.edits import keep_fields
from planner.ui.editing.knowledge import catalog
from planner.ui.editing.parts import with_copied_pool, with_copied_service, with_new_pool
from planner.ui.faults import show_sentences
from planner.ui.workspace import Draft

__all__ = ["show_adding"]

_FROM_CATALOG: Final = "a new pool of the catalog"
_NAME_LIMIT: Final = 100
_MOST_NODES: Final = 10_000
_MOST_GPUS: Final = 1_000


def show_adding(draft: Draft) -> bool:
    """Forms that add a service or a pool; whether something was added."""
    service, pool = st.columns(2)
    with service:
        added = _show_service(draft)
    with pool:
        return _show_pool(draft) or added


def _show_service(draft: Draft) -> bool:
    names = [service.id for service in draft.scenario.services]
    with st.form(f"add-service-{draft.name}-{len(names)}"):
        st.markdown("**Add a service**")
        of = st.selectbox(
            "Like service", names, help="LLM, variants, promises and request shapes are copied."
        )
        name = st.text_input("Name of the new service", max_chars=_NAME_LIMIT).strip()
        factor = st.number_input(
            "Traffic, times that of the other", min_value=0.0, value=1.0, step=0.1, help="1: as much."
        )
        if not st.form_submit_button("Add service", icon=":material/add:"):
            return False
    if not name:
        return _refuse("service")
    return keep_fields(lambda fields: with_copied_service(fields, of, name=name, factor=factor))


def _show_pool(draft: Draft) -> bool:
    names = [pool.id for pool in draft.scenario.pools]
    with st.form(f"add-pool-{draft.name}-{len(names)}"):
        st.markdown("**Add a pool**")
        of = st.selectbox(
            "Like pool", [_FROM_CATALOG, *names], help="Nodes, price and place are copied; it is empty."
        )
        name = st.text_input("Name of the new pool", max_chars=_NAME_LIMIT).strip()
        st.caption("Only for a pool of the catalog:")
        values = _show_hardware()
        if not st.form_submit_button("Add pool", icon=":material/add:"):
            return False
    if not name:
        return _refuse("pool")
    if of == _FROM_CATALOG:
        return keep_fields(lambda fields: with_new_pool(fields, name=name, **values))
    return keep_fields(lambda fields: with_copied_pool(fields, of, name=name))


def _show_hardware() -> dict[str, Any]:
    (kind, price), (count, gpus) = st.columns(2), st.columns(2)
    return {
        "accelerator": kind.selectbox("Accelerator", sorted(catalog().accelerators)),
        "nodes": count.number_input("Nodes", min_value=0, max_value=_MOST_NODES, value=1),
        "gpus": gpus.number_input("GPUs of a node", min_value=1, max_value=_MOST_GPUS, value=8),
        "usd_per_h": price.number_input(
            "Price, $/GPU-h", min_value=0.0, value=None, help="Empty: the catalog's."
        ),
    }


def _refuse(what: str) -> bool:
    show_sentences(f"The new {what} needs a name. Nothing was changed.", [])
    return False

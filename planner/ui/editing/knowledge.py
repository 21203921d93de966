"""The catalog for checks and choices, read once in a while: it hardly ever changes while the app runs."""

from __future__ import annotations

import streamlit as st

from planner.catalog import Catalog
from planner.planning import known_catalog

__all__ = ["catalog"]

_READ_AGAIN_S = 300.0


@st.cache_resource(ttl=_READ_AGAIN_S, show_spinner=False)
def catalog() -> Catalog:
    """Accelerators, LLMs and profile tables that a scenario may name."""
    return known_catalog()

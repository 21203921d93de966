"""How scenarios are solved: solver, time, gap, and whether demand is a promise."""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.planning import HEURISTICS
from planner.ui import session
from planner.ui.workspace import How

__all__ = ["SOLVER_NAMES", "show_how"]

SOLVER_NAMES: Final = ("auto", "cp-sat", "pulp", "pulp-cbc", "scip", "column-generation", *HEURISTICS)
"""Solvers that come with fleetplan; asking for the installed ones would load them."""

_PERCENT: Final = 100.0
_MOST_S: Final = 3600.0


def show_how() -> bool:
    """The form; whether something was changed, so that there is something to solve."""
    how = session.workspace().how
    names = [*SOLVER_NAMES, *({how.solver} - {*SOLVER_NAMES})]
    with st.form(f"how-{how.fingerprint}", border=False):
        solver, seconds, gap = st.columns(3)
        name = solver.selectbox(
            "Solver",
            names,
            index=names.index(how.solver),
            help="auto chooses by size and races where it pays; the last four are published heuristics and prove nothing.",
        )
        limit_s = seconds.number_input(
            "Time limit, s",
            min_value=1.0,
            max_value=_MOST_S,
            value=how.time_limit_s,
            step=5.0,
            help="For all of it: sizing, the answer, what stands beside it and the explanation.",
        )
        percent = gap.number_input(
            "Gap, %",
            min_value=0.0,
            max_value=50.0,
            value=how.gap * _PERCENT,
            step=0.01,
            format="%.3f",
            help="Distance of value and proven bound at which a level counts as optimal.",
        )
        unserved = st.checkbox(
            "Demand may stay unserved",
            how.allow_unserved,
            help="Serving all is then the first objective, by priority, and no promise.",
        )
        done = st.form_submit_button("Solve like this", icon=":material/play_arrow:", type="primary")
    if not done:
        return False
    new = How(solver=name, time_limit_s=limit_s, gap=percent / _PERCENT, allow_unserved=unserved)
    session.keep(session.workspace().but(how=new))
    return True

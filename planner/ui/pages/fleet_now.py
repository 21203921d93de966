"""Fleet now: the last decisions of the controller with their reasons, how fresh they are, and what came before."""

from __future__ import annotations

import streamlit as st

from planner.errors import ConfigurationError, PermanentError, TemporaryError
from planner.ui.faults import show_fault, show_sentences
from planner.ui.fleet.looking import RECORDS, URL, is_here_alone, look_at, named
from planner.ui.fleet.showing import show_fleet

_EVERY_S = 5.0

st.title("Fleet now")
st.caption("What the controller decided last, and why; it is only read here.")
place = named()
if is_here_alone():
    place = st.text_input(
        "Records folder or address of the controller",
        place,
        key="fleet-place",
        placeholder="/var/lib/fleetplan/records or http://127.0.0.1:9470",
        help=f"The variables {RECORDS} and {URL} say so for all visits.",
    ).strip()
live = st.toggle(
    f"Look again every {_EVERY_S:g} s", key="fleet-live", help="Otherwise with every visit of the page."
)


@st.fragment(run_every=_EVERY_S if live else None)
def show() -> None:
    """Look, and draw what is seen."""
    try:
        look = look_at(place)
    except ConfigurationError as fault:
        show_fault(fault, "There is nothing to see.")
    except (TemporaryError, PermanentError) as fault:
        show_sentences(str(fault), [])
    else:
        show_fleet(look)


if place:
    show()
else:
    st.info(
        f"Nobody said where the controller is. Start the app with {RECORDS} naming the folder of its records, or {URL} its "
        "address (fleetplan controller run).",
        icon=":material/monitor_heart:",
    )

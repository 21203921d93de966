"""A plan carried out on clusters: reviewed, then wave by wave, each looked at afresh before anything is written."""

from planner.control.carrying.carrying import CarryOut, carry_out, look
from planner.control.carrying.clusters import Apis, apis_of
from planner.control.carrying.drift import Watch, drift_of, gauge_text
from planner.control.carrying.records import UNDO, Recorder, read_events, records_folder, waves_done

__all__ = [
    "UNDO",
    "Apis",
    "CarryOut",
    "Recorder",
    "Watch",
    "apis_of",
    "carry_out",
    "drift_of",
    "gauge_text",
    "look",
    "read_events",
    "records_folder",
    "waves_done",
]

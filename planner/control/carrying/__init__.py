"""A plan carried out on clusters: reviewed, then wave by wave, each looked at afresh before anything is written."""

from planner.control.carrying.carrying import CarryOut, carry_out, look
from planner.control.carrying.clusters import Apis, apis_of
from planner.control.carrying.drift import Watch, drift_of, gauge_text
from planner.control.carrying.ordering import Applied, Order, apply_order, begun_in
from planner.control.carrying.records import UNDO, read_events, records_folder
from planner.control.carrying.review import Begun

__all__ = [
    "UNDO",
    "Apis",
    "Applied",
    "Begun",
    "CarryOut",
    "Order",
    "Watch",
    "apis_of",
    "apply_order",
    "begun_in",
    "carry_out",
    "drift_of",
    "gauge_text",
    "look",
    "read_events",
    "records_folder",
]

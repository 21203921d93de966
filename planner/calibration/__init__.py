"""Calibration: from load tests and live metrics to parameters and thresholds, with how sure they are.

``calibrate`` fits the queueing model of a replica and refuses data that cannot tell a parameter;
``propose_thresholds`` finds where a replica saturates; ``tune`` follows parameters while a fleet runs.
"""

from planner.calibration.calibrate import FitOptions, calibrate
from planner.calibration.thresholds import SweepOptions, propose_thresholds
from planner.calibration.tuning import first_guess, restarted, started, tune

__all__ = [
    "FitOptions",
    "SweepOptions",
    "calibrate",
    "first_guess",
    "propose_thresholds",
    "restarted",
    "started",
    "tune",
]

"""What visitors of this server may do beyond planning: nothing, unless whoever starts it says otherwise."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["APPLY", "OBSERVE", "is_allowed"]

APPLY: Final = "FLEETPLAN_UI_ALLOW_APPLY"
"""``1``: visitors may compare a plan with the cluster of this server's kubeconfig, and carry it out."""

OBSERVE: Final = "FLEETPLAN_UI_ALLOW_OBSERVE"
"""``1``: visitors may have the cluster of this server's kubeconfig, and its Prometheus, observed."""


def is_allowed(variable: str) -> bool:
    """Whether a variable of the environment says so."""
    return os.environ.get(variable, "").strip().casefold() in {"1", "true", "yes", "on"}

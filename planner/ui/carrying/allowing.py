"""Whether this server may look at clusters and carry plans out: off unless whoever starts it says otherwise."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["ALLOW", "HOW_TO_ALLOW", "is_allowed"]

ALLOW: Final = "FLEETPLAN_UI_ALLOW_APPLY"
"""``1``: visitors may compare a plan with the cluster of this server's kubeconfig, and carry it out."""

HOW_TO_ALLOW: Final = (
    f"From here no cluster is asked or changed. Start the app with {ALLOW}=1 to compare the plan with the cluster of the "
    "server's kubeconfig and to carry it out, or run what stands above: fleetplan apply PLAN does the same from a terminal."
)


def is_allowed() -> bool:
    """Whether it says so."""
    return os.environ.get(ALLOW, "").strip().casefold() in {"1", "true", "yes", "on"}

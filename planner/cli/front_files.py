"""A front as JSON and as CSV (docs/pareto.md)."""

from __future__ import annotations

import csv
import io
from typing import Any, Final

from models import SCHEMA
from models.pareto import ParetoFront, ParetoPoint

__all__ = ["CSV_HEAD", "front_csv", "front_object"]

CSV_HEAD: Final = "x,y,status,gap,cost,unserved_rps,power_w,changes,headroom"
"""First line of the CSV."""


def front_object(front: ParetoFront) -> dict[str, Any]:
    """All of a front."""
    return {
        "schema": SCHEMA,
        "problem": front.problem,
        "status": str(front.status),
        "complete": front.complete,
        "x": {"name": str(front.x), "unit": front.x_unit},
        "y": {"name": str(front.y), "unit": front.y_unit},
        "points": [_point(point) for point in front.points],
        "derived_from": front.derived_from,
    }


def _point(point: ParetoPoint) -> dict[str, Any]:
    return _figures(point) | {
        "replicas": {name: count for name, count in point.solution.counts.items() if count},
        "nodes_added": dict(point.solution.nodes_added),
        "fingerprint": point.solution.fingerprint,
    }


def _figures(point: ParetoPoint) -> dict[str, Any]:
    return {
        "x": point.x,
        "y": point.y,
        "status": str(point.status),
        "gap": point.gap,
        "cost": point.cost,
        "unserved_rps": point.unserved_rps,
        "power_w": point.power_w,
        "changes": point.changes,
        "headroom": point.headroom,
    }


def front_csv(front: ParetoFront) -> str:
    """A line per point, for plotting; what is unknown is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_HEAD.split(","), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_figures(point) for point in front.points)
    return text.getvalue()

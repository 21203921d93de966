"""What the memory of each accelerator of a replica holds, as one bar per accelerator, and where the limit is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from models.picture import MemoryPicture
from planner.charts.style import COLORS, styled, values

__all__ = ["CACHE", "LEAST_CACHE", "OTHERS", "RESERVE", "WEIGHTS", "memory_chart", "memory_rows"]

WEIGHTS: Final = "weights"
CACHE: Final = "KV cache"
LEAST_CACHE: Final = "smallest cache that serves"
RESERVE: Final = "activations, graphs, runtime"
OTHERS: Final = "left to others"
_COLORS: Final = {
    WEIGHTS: COLORS[0],
    RESERVE: COLORS[3],
    CACHE: COLORS[2],
    LEAST_CACHE: COLORS[5],
    OTHERS: "#BDBDBD",
}
_GIB: Final = 2.0**30
_MOST_BARS: Final = 16
_INK: Final = "#767676"


def memory_rows(memory: MemoryPicture, *, gpus: int) -> list[dict[str, Any]]:
    """Parts of the memory of each accelerator, in GiB; where it does not fit, parts reach beyond the limit.

    Args:
        memory: of the fullest accelerator; the others are drawn alike.
        gpus: accelerators of the replica; more than 16 are one bar.
    """
    usable = memory.memory_bytes - memory.unused_bytes
    held = [(WEIGHTS, memory.weight_bytes), (RESERVE, memory.reserve_bytes)]
    if memory.missing_bytes:
        # What is missing is missing for a cache of that size.
        least = memory.missing_bytes + usable - memory.weight_bytes - memory.reserve_bytes
        held.append((LEAST_CACHE, max(0, least)))
    else:
        held += [(CACHE, memory.kv_bytes), (OTHERS, memory.unused_bytes)]
    names = [f"GPU {place}" for place in range(1, gpus + 1)] if gpus <= _MOST_BARS else [f"each of {gpus}"]
    rows: list[dict[str, Any]] = []
    for name in names:
        start = 0.0
        for part, size in held:
            end = start + size / _GIB
            rows.append({"gpu": name, "part": part, "from": start, "to": end, "gib": size / _GIB})
            start = end
    return rows


def memory_chart(rows: Sequence[dict[str, Any]], memory: MemoryPicture) -> Any:  # noqa: ANN401 - an Altair chart
    """One bar per accelerator with a line where the engine's share ends, and one where the memory does.

    Args:
        rows: of :func:`memory_rows`.
        memory: what they are of.
    """
    import altair as alt

    parts = [*dict.fromkeys(row["part"] for row in rows)]
    bars = (
        alt.Chart(values([row for row in rows if row["gib"] > 0]), height=alt.Step(30))
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("from:Q", title="GiB", scale=alt.Scale(zero=True, nice=False)),
            x2="to:Q",
            y=alt.Y("gpu:N", title=None, sort=None),
            color=alt.Color(
                "part:N",
                title=None,
                sort=parts,
                scale=alt.Scale(domain=parts, range=[_COLORS[part] for part in parts]),
                legend=alt.Legend(orient="bottom", columns=2, symbolStrokeWidth=0),
            ),
            tooltip=["gpu:N", "part:N", alt.Tooltip("gib:Q", title="GiB", format=",.2f")],
        )
    )
    whole = memory.memory_bytes / _GIB
    lines = [
        {"at": whole - memory.unused_bytes / _GIB, "what": "what the engine may use"},
        {"at": whole, "what": "all of it"},
    ]
    rules = (
        alt.Chart(values(lines))
        .mark_rule(color=_INK, strokeWidth=2)
        .encode(
            x="at:Q",
            strokeDash=alt.StrokeDash("what:N", sort=["all of it"], legend=None),
            tooltip=["what:N", alt.Tooltip("at:Q", title="GiB", format=",.2f")],
        )
    )
    return styled(alt.layer(bars, rules))

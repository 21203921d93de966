"""Charts of a candidate and of moves: what is drawn is what is known, and the drawing is one that browsers take."""

from __future__ import annotations

from typing import Any

import pytest

from models.performance import Origin, RatingQuestion
from models.picture import LoadCurve, LoadPoint, MemoryPicture
from models.saturation import SaturationThresholds
from models.variant import Variant
from models.workload import Slo
from planner.charts.latency import load_chart, load_rows, panels_of
from planner.charts.memory import CACHE, LEAST_CACHE, OTHERS, RESERVE, WEIGHTS, memory_chart, memory_rows
from planner.charts.timeline import held_chart, timeline_chart
from planner.planning import known_catalog

GIB = 2**30


def a_memory(**fields: int) -> MemoryPicture:
    """80 GiB of which 72 may be used: 32 weights, 4 reserve, 36 cache."""
    sizes = {"memory_bytes": 80, "weight_bytes": 32, "reserve_bytes": 4, "kv_bytes": 36, "unused_bytes": 8}
    return MemoryPicture.model_validate(
        {name: size * GIB for name, size in ({"missing_bytes": 0} | sizes | fields).items()}
    )


def a_point(rps: float, **fields: Any) -> LoadPoint:
    return LoadPoint.model_validate({"rps": rps, "in_flight": rps * 2, "ttft_s": rps, "itl_s": 0.01} | fields)


def a_curve(*points: LoadPoint, **fields: Any) -> LoadCurve:
    return LoadCurve.model_validate(
        {"origin": Origin.MODELED, "source": "lab", "points": points or (a_point(1), a_point(2))} | fields
    )


def a_question(**slo: Any) -> RatingQuestion:
    catalog = known_catalog()
    return RatingQuestion(
        llm=catalog.llm("Qwen3-32B"),
        accelerator=catalog.accelerator("H100"),
        variant=Variant(id="v", accelerator="H100"),
        input_tokens=1000,
        output_tokens=400,
        slo=Slo(**slo),
        thresholds=SaturationThresholds(),
    )


def test_parts_of_the_memory_fill_it_on_every_accelerator() -> None:
    rows = memory_rows(a_memory(), gpus=2)
    assert [(row["part"], row["gib"]) for row in rows[:4]] == [
        (WEIGHTS, 32),
        (RESERVE, 4),
        (CACHE, 36),
        (OTHERS, 8),
    ]
    assert {row["gpu"] for row in rows} == {"GPU 1", "GPU 2"}
    assert rows[3]["to"] == 80


def test_what_is_missing_reaches_beyond_what_the_engine_may_use() -> None:
    rows = memory_rows(a_memory(weight_bytes=70, kv_bytes=0, missing_bytes=5), gpus=1)
    assert [row["part"] for row in rows] == [WEIGHTS, RESERVE, LEAST_CACHE]
    assert rows[-1]["to"] == 72 + 5


def test_many_accelerators_are_one_bar() -> None:
    assert {row["gpu"] for row in memory_rows(a_memory(), gpus=64)} == {"each of 64"}


def test_a_figure_that_nobody_knows_has_no_panel() -> None:
    curve = a_curve(a_point(1, itl_s=None, kv_share=0.3))
    assert [panel.name for panel in panels_of(a_question(), [curve])] == ["ttft", "kv"]


def test_promises_and_thresholds_are_lines_in_the_unit_of_their_axis() -> None:
    curve = a_curve(a_point(1, kv_share=0.3, waiting=0.1))
    lines = {panel.name: dict(panel.lines) for panel in panels_of(a_question(ttft_s=2, itl_s=0.05), [curve])}
    assert lines["ttft"] == {"promised": 2}
    assert lines["itl"] == {"promised": 50}
    assert lines["kv"] == pytest.approx({"τ": 80, "trigger": 70})
    assert lines["queue"] == {"τ": 5, "trigger": 2}


def test_measured_points_are_dots_and_a_band_lies_where_both_edges_are_known() -> None:
    dots = a_curve(joined=False, origin=Origin.MEASURED)
    band = a_curve(
        low=(a_point(1, ttft_s=0.5), a_point(3, ttft_s=1.5)),
        high=(a_point(1, ttft_s=2), a_point(2, ttft_s=4)),
    )
    (ttft, *_) = panels_of(a_question(), [dots, band])
    rows = load_rows([dots, band], ttft)
    assert [row["kind"] for row in rows] == ["point", "point", "curve", "curve", "band", "band"]
    assert [(row["rps"], row["low"], row["high"]) for row in rows[4:]] == [(1, 0.5, 2), (2, 1, 4)]


def test_every_panel_is_a_drawing() -> None:
    curves = [
        a_curve(a_point(1, kv_share=0.3, waiting=0.1, e2e_s=3), a_point(2, e2e_s=4)),
        a_curve(joined=False),
    ]
    panels = panels_of(a_question(ttft_s=2, itl_s=0.05), curves)
    assert len(panels) == 5
    for panel in panels:
        spec = load_chart(load_rows(curves, panel), panel, marks={"rated": 1.0, "surge": 1.5}).to_dict()
        assert spec["layer"]


def test_memory_and_moves_are_drawings() -> None:
    rows = memory_rows(a_memory(), gpus=2)
    assert memory_chart(rows, a_memory()).to_dict()["layer"]
    step = {"lane": "east: a/b in", "kind": "start", "from": 0, "to": 90, "count": 1, "gpus": 2, "wave": 1}
    assert timeline_chart([step, step | {"kind": "remove", "to": 0}], waves=[0.0], unit="s").to_dict()[
        "layer"
    ]
    held = {"pool": "east", "from": -9, "to": 90, "held": 2, "there": None, "share": 1.0}
    assert held_chart([held, held | {"there": 8, "share": 0.25}], unit="s").to_dict()["layer"]

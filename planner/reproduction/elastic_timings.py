"""``elastic-ep-timings``: every published resize, as clients and observers of the deployment see it in the twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.elastic import MeasuredResize, ResizeMode
from models.reproduction import Claim, Origin, Parameter, Picture, Point, Reproduction, Table
from models.simulation import Outcome, ReplicaState
from planner.reproduction.elastic import PUBLISHED, SOURCE, VARIANT, Deployment, deployment
from planner.reproduction.intervals import mean_of
from planner.simulation.twin import Twin
from planner.traces.shapes import Constant

__all__ = ["Seen", "elastic_timings", "watch_resize"]

_SMALL, _LARGE = 16, 20
_LOOK_S: Final = 0.02
_SLACK_S: Final = 0.1
"""One published total is 0.04 s shorter than the downtime in it: each was measured on its own."""
_REFUSED_BY_C: Final = 1.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Constant traffic around a call.

    Attributes:
        rate_rps: of arrivals.
        call_s: when the resize is asked for.
        duration_s: of the traffic.
    """

    rate_rps: float = 8.0
    call_s: float = 120.0
    duration_s: float = 420.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One resize as it was seen.

    Attributes:
        downtime_s: time in which the deployment took and served nobody.
        total_s: from the call until it serves with the other number of ranks.
        turned_away: requests that were refused or cut off at least once.
        lost: requests that were not done in the end.
        worst_ttft_s: longest time to a first token.
        gpu_s: GPU-seconds without use: all in the downtime, those that join (or leave) before it.
        ranks: that serve afterwards.
    """

    downtime_s: float
    total_s: float
    turned_away: int
    lost: int
    worst_ttft_s: float
    gpu_s: float
    ranks: int


def watch_resize(mode: ResizeMode, *, grow: bool, seed: int, given: Deployment, traffic: Traffic) -> Seen:
    """Call for a resize under traffic and look at the deployment every 20 ms until it is over."""
    before, after = (_SMALL, _LARGE) if grow else (_LARGE, _SMALL)
    trace = given.traffic(Constant(traffic.rate_rps, traffic.duration_s), seed=seed)
    twin = Twin(deployment(given, before), trace, seed=seed)
    twin.advance(traffic.call_s)
    twin.resize(f"{VARIANT}-0", after, mode)
    paused, now = 0, twin.observe().replicas[0]
    while now.ranks != after or now.state is not ReplicaState.READY:
        twin.advance(twin.now_s + _LOOK_S)
        now = twin.observe().replicas[0]
        paused += now.state is ReplicaState.PAUSED
    total_s = twin.now_s - traffic.call_s
    while not twin.idle:
        twin.advance(twin.now_s + 10.0)
    rows = twin.finish().requests
    downtime_s = paused * _LOOK_S
    down = _LARGE if mode is ResizeMode.RESTART else before
    return Seen(
        downtime_s=downtime_s,
        total_s=total_s,
        turned_away=int(np.sum(rows["attempts"] > 0)),
        lost=int(np.sum(rows["outcome"] != Outcome.DONE)),
        worst_ttft_s=float(np.nanmax(rows["first_token_s"] - rows["arrival_s"])),
        gpu_s=downtime_s * down + (total_s - downtime_s) * (_LARGE - _SMALL if grow else 0),
        ranks=now.ranks,
    )


def elastic_timings(seeds: int) -> Reproduction:
    """Each configuration both ways, and the restart that they are measured against."""
    given, traffic = Deployment(), Traffic()
    seen = {
        (mode, grow): [
            watch_resize(mode, grow=grow, seed=seed, given=given, traffic=traffic) for seed in range(seeds)
        ]
        for mode, grow in PUBLISHED
    }
    return Reproduction(
        name="elastic-ep-timings",
        title="Resizing 16 → 20 → 16 GPUs in place, in three configurations, and by a restart",
        source=SOURCE,
        seeds=seeds,
        parameters=(*_traffic_parameters(traffic), *given.parameters),
        tables=(_table(seen),),
        pictures=(_picture(seen),),
        claims=_claims(seen, traffic),
        notes=(
            "Downtimes and totals go into the twin as published; what is shown is that clients and observers of the "
            "deployment see just these, and what they mean for requests: how many were turned away (503, or cut off "
            "on a rank that leaves), how many were lost for all their tries, and how many GPU-seconds were idle.",
        ),
    )


def _traffic_parameters(traffic: Traffic) -> tuple[Parameter, ...]:
    return (
        Parameter(
            name="traffic around the call",
            value=f"Poisson, {traffic.rate_rps:g} req/s; call after {traffic.call_s:g} s",
            origin=Origin.CHOSEN,
            why="the lower rate of the SLO scenario",
        ),
    )


def _name(mode: ResizeMode, grow: bool) -> str:
    way = "16→20" if grow else "20→16"
    return f"{way} {mode.value}"


Runs = dict[tuple[ResizeMode, bool], list[Seen]]


def _table(seen: Runs) -> Table:
    rows = []
    for (mode, grow), runs in seen.items():
        published = PUBLISHED[mode, grow]
        rows.append(
            (
                _name(mode, grow),
                f"{published.downtime_s:g}",
                mean_of(runs, "downtime_s").text(2),
                f"{published.total_s:g}",
                mean_of(runs, "total_s").text(2),
                mean_of(runs, "turned_away").text(1),
                mean_of(runs, "lost").text(1),
                mean_of(runs, "worst_ttft_s").text(1),
                mean_of(runs, "gpu_s").text(0),
            )
        )
    head = ("resize", "downtime, s: published", "here", "total, s: published", "here", "turned away", "lost")
    return Table(
        title="A, B, C: blocking, asynchronous, asynchronous with graph reuse",
        head=(*head, "worst TTFT, s", "idle GPU-s"),
        rows=tuple(rows),
    )


def _picture(seen: Runs) -> Picture:
    points = []
    for (mode, grow), runs in seen.items():
        for figure, published in (
            ("downtime_s", PUBLISHED[mode, grow].downtime_s),
            ("total_s", PUBLISHED[mode, grow].total_s),
        ):
            panel = figure.removesuffix("_s")
            points.append(Point(x=_name(mode, grow), y=published, series="published", panel=panel))
            points.append(
                Point(x=_name(mode, grow), y=mean_of(runs, figure).mean, series="twin", panel=panel)
            )
    return Picture(
        name="reproduction-elastic-ep-timings",
        title="Downtime and total time of each resize, published and in the twin",
        kind="bars",
        x="resize",
        y="s",
        points=tuple(points),
    )


def _near(ours: float, published: MeasuredResize, figure: str) -> bool:
    return abs(ours - float(getattr(published, figure))) <= _SLACK_S


def _claims(seen: Runs, traffic: Traffic) -> tuple[Claim, ...]:
    worst = max(
        abs(mean_of(runs, figure).mean - getattr(PUBLISHED[key], figure))
        for key, runs in seen.items()
        for figure in ("downtime_s", "total_s")
    )
    c_up = seen[ResizeMode.ASYNC_GRAPH_REUSE, True]
    restart = seen[ResizeMode.RESTART, True]
    expected = traffic.rate_rps * PUBLISHED[ResizeMode.ASYNC_GRAPH_REUSE, True].downtime_s
    turned = mean_of(c_up, "turned_away").mean
    return (
        Claim(
            text="Every downtime and every total is the published one",
            held=all(
                _near(mean_of(runs, figure).mean, PUBLISHED[key], figure)
                for key, runs in seen.items()
                for figure in ("downtime_s", "total_s")
            ),
            shown=f"largest difference {worst:.2f} s (looked at every {_LOOK_S:g} s)",
        ),
        Claim(
            text="Configuration C turns away what comes in its 0.82 s, and loses nothing",
            held=mean_of(c_up, "lost").mean == 0 and abs(turned - expected) <= _REFUSED_BY_C * expected,
            shown=f"{turned:.1f} turned away ({traffic.rate_rps:g} req/s × 0.82 s = {expected:.1f}), "
            f"{mean_of(c_up, 'lost').mean:g} lost",
        ),
        Claim(
            text="A restart takes 197 s without service, and loses requests",
            held=mean_of(restart, "lost").mean > 0 and _near(mean_of(restart, "downtime_s").mean, PUBLISHED[ResizeMode.RESTART, True], "downtime_s"),
            shown=f"{mean_of(restart, 'lost').text(0)} requests lost, {mean_of(restart, 'gpu_s').text(0)} idle GPU-s "
            f"against {mean_of(c_up, 'gpu_s').text(0)} of C",
        ),
    )  # fmt: skip

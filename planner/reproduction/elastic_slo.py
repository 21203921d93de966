"""``elastic-ep-slo``: the load doubles; the deployment stays, is restarted larger, or grows in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from models.elastic import ResizeMode
from models.reproduction import Claim, Origin, Parameter, Picture, Point, Reproduction, Table
from models.simulation import Outcome
from planner.reproduction.elastic import PUBLISHED, SOURCE, VARIANT, Deployment, deployment
from planner.reproduction.intervals import Estimate, estimate, mean_of
from planner.simulation.experiment import Experiment, Happening, run_experiment
from planner.traces.shapes import Steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.simulation.result import Result
    from planner.simulation.twin import Twin

__all__ = ["ARMS", "Scenario", "elastic_slo", "replay", "rolling_p95_s"]

_STATIC, _RESTART, _ELASTIC = "static 16", "restart to 20", "elastic to 20"
ARMS: Final[Mapping[str, ResizeMode | None]] = {
    _STATIC: None,
    _RESTART: ResizeMode.RESTART,
    _ELASTIC: ResizeMode.ASYNC_GRAPH_REUSE,
}
_LATE_S: Final = 60.0
"""Time that backlogs get to go before 'afterwards' begins."""
_ALIKE: Final = 0.1
_EVERY_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The load and what is promised.

    Attributes:
        low_rps: before the step.
        high_rps: after it.
        step_s: when the load steps up.
        requests: in all.
        reaction_s: from the step to the call.
        slo_s: bound of the rolling 95th percentile of TTFT.
        window_s: that it rolls over.
        failed_s: TTFT that a failed request counts as.
    """

    low_rps: float = 8.0
    high_rps: float = 16.0
    step_s: float = 300.0
    requests: int = 11_391
    reaction_s: float = 15.0
    slo_s: float = 5.0
    window_s: float = 30.0
    failed_s: float = 30.0

    @property
    def call_s(self) -> float:
        """When the deployment is told to change."""
        return self.step_s + self.reaction_s

    @property
    def shape(self) -> Steps:
        """Long enough for all requests."""
        return Steps((self.low_rps, self.high_rps), (self.step_s, 2 * self.requests / self.high_rps))


@dataclass(frozen=True, slots=True)
class Arm:
    """One deployment in one run.

    Attributes:
        done: requests done.
        failed: refused or cut off for good.
        worst_s: largest rolling p95.
        over_s: seconds in which it was above the promise.
        gpu_h: GPU-hours held.
        curve: (n, 2) time and rolling p95, s.
        result: of the run.
    """

    done: int
    failed: int
    worst_s: float
    over_s: float
    gpu_h: float
    curve: NDArray[np.float64]
    result: Result


def rolling_p95_s(
    result: Result, *, window_s: float, failed_s: float, every_s: float = 1.0
) -> NDArray[np.float64]:
    """95th percentile of TTFT over requests that arrived within the window, once every ``every_s``.

    Returns:
        (n, 2): end of the window and percentile, s.
    """
    rows = result.requests
    arrival_s = rows["arrival_s"]
    ttft_s = np.where(rows["outcome"] == Outcome.DONE, rows["first_token_s"] - arrival_s, failed_s)
    ends = np.arange(window_s, arrival_s[-1] + every_s, every_s)
    first, last = np.searchsorted(arrival_s, ends - window_s), np.searchsorted(arrival_s, ends)
    some = [(end, ttft_s[a:b]) for end, a, b in zip(ends, first, last, strict=True) if b > a]
    return np.array([(end, float(np.percentile(values, 95))) for end, values in some])


def replay(arm: str, scenario: Scenario, given: Deployment, *, seed: int) -> Arm:
    """One deployment through the whole load."""
    mode = ARMS[arm]
    happenings = []
    if mode is not None:
        happenings = [Happening(scenario.call_s, lambda twin: _grow(twin, mode))]
    trace = given.traffic(scenario.shape, seed=seed, most=scenario.requests)
    spec = deployment(given, 16, ttft_slo_s=scenario.slo_s)
    result = run_experiment(Experiment(spec, seed=seed, happenings=happenings), trace)
    curve = rolling_p95_s(result, window_s=scenario.window_s, failed_s=scenario.failed_s)
    outcomes = result.served().outcomes
    return Arm(
        done=outcomes[Outcome.DONE],
        failed=len(result.requests["request"]) - outcomes[Outcome.DONE],
        worst_s=float(curve[:, 1].max()),
        over_s=float(np.sum(curve[:, 1] >= scenario.slo_s)),
        gpu_h=result.gpu_hours,
        curve=curve,
        result=result,
    )


def _grow(twin: Twin, mode: ResizeMode) -> None:
    twin.resize(f"{VARIANT}-0", 20, mode)


def elastic_slo(seeds: int) -> Reproduction:
    """Three deployments, the same requests."""
    scenario, given = Scenario(), Deployment()
    runs = {arm: [replay(arm, scenario, given, seed=seed) for seed in range(seeds)] for arm in ARMS}
    return Reproduction(
        name="elastic-ep-slo",
        title="Load steps from 8 to 16 req/s: 16 GPUs, restarted with 20, or grown to 20 in place",
        source=SOURCE,
        seeds=seeds,
        parameters=(*_parameters(scenario), *given.parameters),
        tables=(_table(runs, scenario),),
        pictures=(_picture(runs, scenario),),
        claims=_claims(runs, scenario),
        notes=(
            "The source gives figures for the elastic deployment alone; what the other two do is ours. A failed request "
            f"counts as {scenario.failed_s:g} s. The restarted deployment refuses for 197 s; clients give up long before. "
            "What GPUs beside the one deployment could do is the planner's question, not this experiment's.",
        ),
    )


def _parameters(scenario: Scenario) -> tuple[Parameter, ...]:
    paper, chosen = Origin.PAPER, Origin.CHOSEN
    return (
        Parameter(
            name="load",
            value=f"{scenario.low_rps:g}, then {scenario.high_rps:g} req/s, {scenario.requests:,} requests",
            origin=paper,
            why="'about' 8 and 16",
        ),
        Parameter(
            name="promise",
            value=f"p95 TTFT < {scenario.slo_s:g} s over {scenario.window_s:g} s; a failure counts as {scenario.failed_s:g} s",
            origin=paper,
        ),
        Parameter(name="arrivals, time of the step", value=f"Poisson, {scenario.step_s:g} s", origin=chosen),
        Parameter(
            name="call for the resize",
            value=f"{scenario.reaction_s:g} s after the step",
            origin=chosen,
            why="one period of the planner's loop",
        ),
        Parameter(
            name="window of a request", value="that of its arrival", origin=chosen, why="the source does not say"
        ),
    )  # fmt: skip


Runs = dict[str, list[Arm]]


def _table(runs: Runs, scenario: Scenario) -> Table:
    rows = tuple(
        (
            arm,
            mean_of(each, "done").text(0),
            mean_of(each, "failed").text(0),
            mean_of(each, "worst_s").text(2),
            mean_of(each, "over_s").text(0),
            mean_of(each, "gpu_h").text(2),
        )
        for arm, each in runs.items()
    )
    head = (
        "deployment",
        f"done of {scenario.requests:,}",
        "failed",
        "worst p95 TTFT, s",
        "s above 5 s",
        "GPU-h",
    )
    published = ("published: elastic", "11391", "0", "< 5", "0", "–")
    return Table(title="Three deployments, the same requests", head=head, rows=(*rows, published))


def _picture(runs: Runs, scenario: Scenario) -> Picture:
    points = [
        Point(x=float(end), y=float(min(value, scenario.failed_s)), series=arm)
        for arm, each in runs.items()
        for end, value in each[0].curve
        if end % _EVERY_S == 0
    ]
    ends = [float(runs[_STATIC][0].curve[at, 0]) for at in (0, -1)]
    points += [Point(x=end, y=scenario.slo_s, series="promise") for end in ends]
    return Picture(
        name="reproduction-elastic-ep-slo",
        title="Rolling p95 of TTFT while the load doubles (first seed)",
        kind="lines",
        x="time, s",
        y="p95 TTFT over 30 s, s",
        points=tuple(points),
    )


def _before_commit(runs: Runs, scenario: Scenario) -> float:
    """Largest difference of a TTFT between the elastic and the static deployment, of first tokens before the commit."""
    commit_s = scenario.call_s + _prepared_s()
    worst = 0.0
    for elastic, static in zip(runs[_ELASTIC], runs[_STATIC], strict=True):
        ours, theirs = elastic.result.requests["first_token_s"], static.result.requests["first_token_s"]
        early = theirs < commit_s
        worst = max(worst, float(np.max(np.abs(np.nan_to_num(ours[early], nan=np.inf) - theirs[early]))))
    return worst


def _prepared_s() -> float:
    published = PUBLISHED[ResizeMode.ASYNC_GRAPH_REUSE, True]
    return published.total_s - published.downtime_s


def _afterwards(runs: Runs, scenario: Scenario) -> tuple[Estimate, Estimate]:
    """Mean rolling p95 of the elastic and of the restarted deployment, once both have no backlog."""
    since_s = scenario.call_s + PUBLISHED[ResizeMode.RESTART, True].total_s + _LATE_S

    def late(each: list[Arm]) -> Estimate:
        return estimate([float(run.curve[run.curve[:, 0] > since_s, 1].mean()) for run in each])

    return late(runs[_ELASTIC]), late(runs[_RESTART])


def _claims(runs: Runs, scenario: Scenario) -> tuple[Claim, ...]:
    elastic, static, restart = runs[_ELASTIC], runs[_STATIC], runs[_RESTART]
    apart = _before_commit(runs, scenario)
    ours, theirs = _afterwards(runs, scenario)
    return (
        Claim(
            text=f"Elastic finishes {scenario.requests:,} of {scenario.requests:,}",
            held=all(run.done == scenario.requests for run in elastic),
            shown=f"{min(run.done for run in elastic):,} in the worst run",
        ),
        Claim(
            text="Elastic keeps p95 TTFT below 5 s throughout",
            held=all(run.worst_s < scenario.slo_s for run in elastic),
            shown=f"{max(run.worst_s for run in elastic):.2f} s in the worst window of the worst run",
        ),
        Claim(
            text="Elastic equals static 16 while it prepares",
            held=apart == 0,
            shown=f"largest difference of a first token before the commit: {apart:g} s",
        ),
        Claim(
            text="Elastic equals a restarted 20 afterwards",
            held=abs(ours.mean - theirs.mean) <= _ALIKE * theirs.mean,
            shown=f"p95 TTFT {ours.text(3)} s against {theirs.text(3)} s once both have no backlog",
        ),
        Claim(
            text="Static 16 breaches (expected; no figures published)",
            held=all(run.worst_s >= scenario.slo_s for run in static),
            shown=f"up to {mean_of(static, 'worst_s').text(1)} s, above 5 s for {mean_of(static, 'over_s').text(0)} s",
        ),
        Claim(
            text="A restart breaches (expected; no figures published)",
            held=all(run.worst_s >= scenario.slo_s for run in restart),
            shown=f"{mean_of(restart, 'failed').text(0)} requests failed, above 5 s for {mean_of(restart, 'over_s').text(0)} s",
        ),
    )

"""Which replicas go, when they may, and which come back: a state machine that knows no clock and no cluster.

A replica that is to go is marked, which takes it out of routing and makes it the first victim. When its requests are
done the count may fall by it. What was marked is known from the replicas themselves, so a restart goes on where it was,
and whatever is not to go any more comes back.

Source: Kubernetes, ranking of pods of a ReplicaSet (1.22): not ready before ready, then ``pod-deletion-cost``; a
StatefulSet, and a LeaderWorkerSet with it, ends its highest ordinals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

__all__ = ["DrainRules", "Mark", "Overdue", "Phase", "Replica", "Scene", "Step", "Waiting", "next_step"]


class Phase(StrEnum):
    """How far a replica is on its way out."""

    DRAINING = "draining"
    DRAINED = "drained"


class Overdue(StrEnum):
    """What becomes of a replica that is not idle when time is over."""

    GO = "go"
    """It goes; its requests have the grace period of its pod."""
    GIVE_BACK = "give-back"
    """It comes back, and another is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRules:
    """How long is waited.

    Attributes:
        limit_s: for a replica to become idle, s.
        overdue: what happens then.
        settle_s: after it was taken out of routing until that is known everywhere; zero counts from then on, s.
    """

    limit_s: float = 600.0
    overdue: Overdue = Overdue.GO
    settle_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A replica is on its way out.

    Attributes:
        since_s: when it was taken out of routing, seconds of the epoch.
        phase: how far it is.
    """

    since_s: float
    phase: Phase = Phase.DRAINING


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica that is not ending.

    Attributes:
        name: of its pod, or of the leader of its group.
        ready: it is ready.
        rank: its ordinal, where ordinals say which goes first.
        mark: None: it is not on its way out.
        spoiled: it was on its way out, and nobody can read since when.
        out: nothing routes to it.
        load: requests that run in it and wait for it; None: it does not say, which is not zero.
        seen_s: when the load was so, seconds of the epoch; None: never.
        spared_until_s: it is not tried again before, seconds of the epoch.
    """

    name: str
    ready: bool = True
    rank: int | None = None
    mark: Mark | None = None
    spoiled: bool = False
    out: bool = False
    load: float | None = None
    seen_s: float | None = None
    spared_until_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One variant at one moment.

    Attributes:
        replicas: that are not ending.
        wanted: count that is asked for now.
        desired: count that was decided.
        first: ordinal of the first replica; None: ordinals do not matter.
        victims: replicas that the decision wants to go, the first first.
    """

    replicas: Sequence[Replica]
    wanted: int
    desired: int
    first: int | None = None
    victims: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A replica that is waited for.

    Attributes:
        name: of the replica.
        load: its requests; None: it does not say.
        since_s: for how long, s.
    """

    name: str
    load: float | None
    since_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is to be done now, in this order.

    Attributes:
        restore: replicas that come back.
        spare: those of them that are not tried again for a while.
        mark: replicas whose way out begins.
        settle: replicas that are idle, or not waited for any more: they are to go before all others.
        cut: those of them that are not idle.
        count: replicas to ask for once all of that is done.
        waiting: what is waited for.
    """

    restore: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    mark: tuple[str, ...] = ()
    settle: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    count: int = 0
    waiting: tuple[Waiting, ...] = ()


class _Verdict(StrEnum):
    FREE = "free"
    """Nothing was ever routed to it, or it is drained: it may go."""
    IDLE = "idle"
    CUT = "cut"
    BEGIN = "begin"
    WAIT = "wait"
    BACK = "back"


def next_step(scene: Scene, rules: DrainRules, now_s: float) -> Step:
    """The step of one variant.

    Replicas beyond the count that is asked for are on their way out already and nobody can hold them, so they are not
    touched; of those that are to go beyond them each is begun, waited for or let go.

    Args:
        scene: as it is now.
        rules: how long is waited.
        now_s: seconds of the epoch.
    """
    going, leaving = _going(scene, now_s)
    verdicts = _in_turn(scene, going, {each.name: _judged(each, rules, now_s) for each in going})
    kept = {each.name for each in (*going, *leaving)}
    by = {
        verdict: tuple(name for name, found in verdicts.items() if found is verdict) for verdict in _Verdict
    }
    touched = [each.name for each in scene.replicas if each.mark is not None or each.spoiled]
    restore = [name for name in touched if name not in kept]
    return Step(
        restore=(*restore, *by[_Verdict.BACK]),
        spare=by[_Verdict.BACK],
        mark=by[_Verdict.BEGIN],
        settle=(*by[_Verdict.IDLE], *by[_Verdict.CUT]),
        cut=by[_Verdict.CUT],
        count=_count(scene, going, verdicts),
        waiting=tuple(
            Waiting(each.name, each.load, 0.0 if each.mark is None else max(0.0, now_s - each.mark.since_s))
            for each in going
            if verdicts[each.name] in {_Verdict.WAIT, _Verdict.BEGIN}
        ),
    )


def _going(scene: Scene, now_s: float) -> tuple[Sequence[Replica], Sequence[Replica]]:
    """Replicas that are to go, the first first; and those before them that leave already."""
    if scene.first is not None:
        order = sorted(scene.replicas, key=lambda each: -(each.rank or 0))
        above = [each for each in order if (each.rank or 0) >= scene.first + scene.desired]
        gone = [each for each in above if (each.rank or 0) >= scene.first + scene.wanted]
        return above[len(gone) :], gone
    order = sorted(scene.replicas, key=lambda each: _turn(each, scene))
    out = order[: max(0, len(order) - scene.desired)]
    beyond = max(0, len(order) - scene.wanted)
    going = [each for each in out[beyond:] if each.mark is not None or each.spared_until_s <= now_s]
    # One that is spared gives its place to the next that is not.
    spared = len(out[beyond:]) - len(going)
    more = [each for each in order[len(out) :] if each.mark is None and each.spared_until_s <= now_s]
    return [*going, *more[:spared]], out[:beyond]


def _turn(replica: Replica, scene: Scene) -> tuple[float, ...]:
    """Who goes first: what serves nobody, what is on its way, what the decision says, what has the least to do."""
    mark = replica.mark
    phase = 2.0 if mark is None else 0.0 if mark.phase is Phase.DRAINED else 1.0
    starting = not replica.ready and mark is None
    victims = {name: place for place, name in enumerate(scene.victims)}
    place = float(victims.get(replica.name, len(victims)))
    load = inf if replica.load is None else replica.load
    return (0.0 if starting else 1.0, phase, place, load, -(0.0 if mark is None else mark.since_s))


def _judged(replica: Replica, rules: DrainRules, now_s: float) -> _Verdict:
    mark, busy = replica.mark, bool(replica.load)
    if mark is None:
        if replica.spared_until_s > now_s:
            return _Verdict.WAIT
        return _Verdict.FREE if not replica.ready and not busy else _Verdict.BEGIN
    if mark.phase is Phase.DRAINED and not busy:
        return _Verdict.FREE
    known_s = mark.since_s + rules.settle_s
    if replica.out and replica.load == 0 and replica.seen_s is not None and replica.seen_s >= known_s:
        return _Verdict.IDLE
    if now_s - mark.since_s < rules.limit_s:
        return _Verdict.WAIT
    return _Verdict.CUT if rules.overdue is Overdue.GO else _Verdict.BACK


def _in_turn(scene: Scene, going: Sequence[Replica], verdicts: dict[str, _Verdict]) -> dict[str, _Verdict]:
    """The verdicts, with nobody to begin while others that are not ready are about to go.

    A readiness gate makes one that begins not ready too, and a count that falls by the others a moment later might take
    it for one of them, with all its requests.
    """
    leaves = {_Verdict.FREE, _Verdict.IDLE, _Verdict.CUT}
    shut = any(each.mark is not None and not each.ready and verdicts[each.name] in leaves for each in going)
    if scene.first is not None or not shut:
        return verdicts
    return {name: _Verdict.WAIT if each is _Verdict.BEGIN else each for name, each in verdicts.items()}


def _count(scene: Scene, going: Sequence[Replica], verdicts: dict[str, _Verdict]) -> int:
    """Replicas that may be asked for: never fewer than were decided, never one less that still has requests."""
    if scene.desired >= scene.wanted:
        return scene.desired
    may = {name for name, each in verdicts.items() if each in {_Verdict.FREE, _Verdict.IDLE, _Verdict.CUT}}
    if scene.first is not None:
        return _down_to(scene, may)
    # Among pods that are not ready nobody can say which goes first.
    held = any(not each.ready and each.name not in may and each.name in verdicts for each in going)
    allowed = len(scene.replicas) - (0 if held else len(may))
    return min(scene.wanted, max(scene.desired, allowed - max(0, len(scene.replicas) - scene.wanted)))


def _down_to(scene: Scene, may: set[str]) -> int:
    """The highest ordinals go, so each waits for those above it."""
    first = scene.first or 0
    by_rank = {each.rank: each.name for each in scene.replicas}
    count = scene.wanted
    while count > scene.desired:
        name = by_rank.get(first + count - 1)
        if name is not None and name not in may:
            break
        count -= 1
    return count

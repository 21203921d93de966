"""One resize, step by step: accelerators first, then the one call, then look, then traffic; and back where it fails.

Each step is written down before it is taken and can be taken again, but for the call, of which there is one. After an
answer that does not say what happened, nothing is called, given back or routed until the deployment itself says what
it is; where it does not say so in time, people must look, and everything stays as it is.

Source: behavior of vLLM 0.27 to 0.33 on failed and cut calls: no blind retry after 500 or a time-out; a failed commit
answers 503 until a restart; a failed preparation stands in the way of later resizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from models.resize_call import CallAnswer, CallVerdict, ResizePhase, ResizeStatus
from models.resize_operation import OperationPhase, ResizeOperation
from planner.clock import Clock
from planner.control.resizing.world import ANSWERS, OperationStore, World
from planner.errors import SafetyGateError

__all__ = ["POLL_S", "advance", "drive", "order", "resume"]

POLL_S: Final = 2.0
_RACE_S: Final = 30.0
"""An accepted call may not show in the status for so long."""
_RESTART: Final = "restart it at the last good size, {good} ranks; then start this operation again, which looks before it does anything"

_P = OperationPhase
Step = Callable[[ResizeOperation, World, float], ResizeOperation]
Tell = Callable[[ResizeOperation], None]


def order(operation: ResizeOperation, world: World) -> ResizeOperation:
    """Take up a resize: a new one, or the one that is on its way already.

    Raises:
        SafetyGateError: another one is on its way, or the last one left something that people must look at.
        FleetPlanError: its record cannot be read or written.
    """
    last = world.store.load()
    if last is not None and last.id == operation.id:
        return last
    if last is not None and not (last.over and last.phase is not _P.NEEDS_PEOPLE):
        way_out = f"; {last.way_out}" if last.way_out else ""
        raise SafetyGateError(
            f"{operation.deployment}: a resize from {last.from_ranks} to {last.to_ranks} ranks is "
            f"{last.phase.value}{way_out}"
        )
    if last is not None and last.blocked:
        raise SafetyGateError(
            f"{operation.deployment}: its last resize failed while it was prepared, which stands in the way of any "
            f"other; {_RESTART.format(good=last.from_ranks)}"
        )
    world.store.save(operation)
    return operation


def resume(store: OperationStore, now_s: float) -> ResizeOperation | None:
    """Look again at what was left to people, who say that they have seen to it; None: there was nothing.

    Raises:
        FleetPlanError: its record cannot be read or written.
    """
    last = store.load()
    if last is None or not (last.phase is _P.NEEDS_PEOPLE or last.blocked):
        return None
    told = "people say that it was seen to"
    changes: dict[str, object] = {"blocked": False, "way_out": "", "answer": None}
    if last.phase is _P.NEEDS_PEOPLE:
        changes["phase"] = _P.SETTLING
    again = last.noted(told, now_s, **changes)
    store.save(again)
    return again


def drive(
    operation: ResizeOperation,
    world: World,
    clock: Clock,
    *,
    tell: Tell | None = None,
    poll_s: float = POLL_S,
) -> ResizeOperation:
    """Go on until nothing more can be done by itself; ``tell`` hears of every change.

    Raises:
        FleetPlanError: the record cannot be written; nothing was done that it does not say.
    """
    while not operation.over:
        following = advance(operation, world, clock)
        if following == operation:
            clock.sleep(poll_s)
            continue
        operation = following
        if tell is not None:
            tell(operation)
    return operation


def advance(operation: ResizeOperation, world: World, clock: Clock) -> ResizeOperation:
    """One step; the same operation where there is nothing to do but wait."""
    if operation.over:
        return operation
    if operation.phase is _P.CALLING:
        following = _calling(operation, world, clock)
    else:
        following = _STEPS[operation.phase](operation, world, clock.unix_s())
    if following != operation:
        world.store.save(following)
    return following


def _may_wait(operation: ResizeOperation, now_s: float, limit_s: float) -> bool:
    """Whether this phase has not yet lasted for so long."""
    return now_s - operation.since_s < limit_s


def _planned(operation: ResizeOperation, world: World, now_s: float) -> ResizeOperation:
    """Nothing has been touched yet: see that it is what it is taken for."""
    ranks, healthy = world.engine.ranks(), world.engine.healthy()
    if ranks == operation.to_ranks and healthy:
        return operation.noted("it has this size already", now_s, phase=_P.DONE, serving_ranks=ranks)
    if ranks is not None and ranks != operation.from_ranks:
        told = f"it has {ranks} ranks, not {operation.from_ranks}: nothing was done"
        return operation.noted(told, now_s, phase=_P.ABANDONED, serving_ranks=ranks)
    if not healthy or ranks is None:
        if _may_wait(operation, now_s, operation.limits.verify_s):
            return operation
        told = "it does not say that it is well, and how large: nothing was done"
        return operation.noted(told, now_s, phase=_P.ABANDONED)
    changes: dict[str, object] = {"answer_before": world.engine.answer(), "serving_ranks": ranks}
    if operation.grows:
        return operation.noted(f"{ranks} ranks serve", now_s, phase=_P.RESERVING, **changes)
    return operation.noted(f"{ranks} ranks serve", now_s, phase=_P.UNROUTING, **changes)


def _reserving(operation: ResizeOperation, world: World, now_s: float) -> ResizeOperation:
    """Accelerators first: the call would wait for them, or fail."""
    there = world.ground.there()
    if there is not None and there >= operation.to_ranks:
        return operation.noted("the accelerators of all joiners are there", now_s, phase=_P.CALLING)
    why = world.ground.reserve(operation.to_ranks)
    if _may_wait(operation, now_s, operation.limits.reserve_s):
        return operation
    told = why or f"accelerators for {there if there is not None else 'an unknown number of'} ranks are there"
    return operation.noted(f"{told}: given up", now_s, phase=_P.UNDOING)


def _unrouting(operation: ResizeOperation, world: World, now_s: float) -> ResizeOperation:
    """No new request for the ranks that leave, which are always the highest."""
    why = world.router.route(operation.to_ranks)
    if why is None:
        told = f"no new request goes to ranks {operation.to_ranks} and above"
        return operation.noted(told, now_s, phase=_P.DRAINING)
    if _may_wait(operation, now_s, operation.limits.verify_s):
        return operation
    return operation.noted(f"{why}: given up", now_s, phase=_P.UNDOING)


def _draining(operation: ResizeOperation, world: World, now_s: float) -> ResizeOperation:
    left = world.router.in_flight(operation.to_ranks)
    if left == 0:
        return operation.noted("the ranks that leave are empty", now_s, phase=_P.CALLING)
    if _may_wait(operation, now_s, operation.limits.drain_s):
        return operation
    told = "nobody says how many requests are" if left is None else f"{left:g} requests are still"
    return operation.noted(f"{told} on the ranks that leave: given up", now_s, phase=_P.UNDOING)


def _calling(operation: ResizeOperation, world: World, clock: Clock) -> ResizeOperation:
    """The one call. Written down before it is sent: whoever finds this written never sends it again.

    It takes minutes, and the next phase begins when it is over.
    """
    now_s = clock.unix_s()
    if operation.called_s is not None:
        told = "the call was sent, or was about to be; its answer is not known"
        return operation.noted(told, now_s, phase=_P.SETTLING)
    told = f"called for {operation.to_ranks} ranks"
    sent = operation.noted(told, now_s, called_s=now_s)
    world.store.save(sent)
    answer = world.engine.call(sent)
    return _answered(sent, answer, clock.unix_s())


def _answered(operation: ResizeOperation, answer: CallAnswer, now_s: float) -> ResizeOperation:
    said = f"answer: {answer.verdict.value}{f', {answer.message}' if answer.message else ''}"
    following = _AFTER.get(answer.verdict, _P.SETTLING)
    return operation.noted(said, now_s, phase=following, answer=answer.verdict)


def _settling(operation: ResizeOperation, world: World, now_s: float) -> ResizeOperation:
    """What happened is not known: wait until the deployment says it, and touch nothing meanwhile."""
    status = world.engine.status()
    ranks = _settled_ranks(world, status)
    elapsed_s = now_s - (operation.called_s or operation.since_s)
    if ranks == operation.to_ranks:
        return operation.noted(f"{ranks} ranks serve", now_s, phase=_P.VERIFYING, serving_ranks=ranks)
    if ranks == operation.from_ranks and _nothing_runs(operation, status, elapsed_s):
        return _failed_before_commit(operation, status, now_s)
    if ranks is not None and ranks not in (operation.from_ranks, operation.to_ranks):
        told = f"{ranks} ranks serve, which nobody asked for; accelerators stay as they are"
        return _people(operation, told, now_s, serving_ranks=ranks)
    if elapsed_s < operation.limits.give_up_s:
        return operation
    told = f"after {elapsed_s:.0f} s it does not say that it is well; accelerators stay as they are"
    return _people(operation, told, now_s, serving_ranks=ranks)


def _settled_ranks(world: World, status: ResizeStatus) -> int | None:
    """Ranks that serve, where it is well and nothing is known to be on its way."""
    if status.phase in (ResizePhase.PREPARING, ResizePhase.COMMITTING) or world.engine.healthy() is not True:
        return None
    return world.engine.ranks()


def _nothing_runs(operation: ResizeOperation, status: ResizeStatus, elapsed_s: float) -> bool:
    """Whether it will stay as it is: it says so, or it has been quiet for longer than anything takes."""
    if status.phase is ResizePhase.FAILED:
        return True
    told = status.shows_preparing and status.phase in (ResizePhase.IDLE, ResizePhase.COMPLETED)
    return elapsed_s >= (_RACE_S if told else operation.limits.quiet_s)


def _failed_before_commit(operation: ResizeOperation, status: ResizeStatus, now_s: float) -> ResizeOperation:
    told = f"nothing changed{f': {status.message}' if status.message else ''}"
    blocked = status.phase is ResizePhase.FAILED or operation.answer is CallVerdict.UNKNOWN
    return operation.noted(told, now_s, phase=_P.UNDOING, serving_ranks=operation.from_ranks, blocked=blocked)


def _verifying(operation: ResizeOperation, world: World, now_s: float) -> ResizeOperation:
    """The new size is seen, it is well, and it answers what it answered before."""
    ranks, healthy = world.engine.ranks(), world.engine.healthy()
    if ranks == operation.to_ranks and healthy:
        answer = world.engine.answer() if operation.answer_before is not None else None
        if (
            operation.answer_before is not None
            and answer is not None
            and _is_new(answer, operation.answer_before)
        ):
            told = "it answers a fixed prompt in another way than before; joiners get no traffic"
            return _people(operation, told, now_s, serving_ranks=ranks)
        if operation.answer_before is None or answer is not None:
            return _verified(operation, now_s, ranks)
    if _may_wait(operation, now_s, operation.limits.verify_s):
        return operation
    told = f"{'an unknown number of' if ranks is None else ranks} ranks are seen, {operation.to_ranks} were expected"
    if ranks == operation.to_ranks:
        told = "it has its new size and does not answer"
    return _people(operation, f"{told}; accelerators stay as they are", now_s, serving_ranks=ranks)


def _is_new(answer: str, before: str) -> bool:
    """Whether some rank answers what none did before; that ranks which left are not heard any more is no news."""
    return not set(answer.split(ANSWERS)) <= set(before.split(ANSWERS))


def _verified(operation: ResizeOperation, now_s: float, ranks: int) -> ResizeOperation:
    known = "and answers as before" if operation.answer_before is not None else "and is well"
    following = _P.ROUTING if operation.grows else _P.RELEASING
    return operation.noted(f"it has {ranks} ranks {known}", now_s, phase=following, serving_ranks=ranks)


def _routing(operation: ResizeOperation, world: World, now_s: float) -> ResizeOperation:
    why = world.router.route(operation.to_ranks)
    if why is None:
        return operation.noted("all ranks get traffic", now_s, phase=_P.DONE)
    if _may_wait(operation, now_s, operation.limits.verify_s):
        return operation
    return _people(operation, f"joiners get no traffic: {why}", now_s)


def _releasing(operation: ResizeOperation, world: World, now_s: float) -> ResizeOperation:
    """Give accelerators back, having looked once more that no rank lives on them."""
    if world.engine.ranks() != operation.to_ranks:
        if _may_wait(operation, now_s, operation.limits.verify_s):
            return operation
        return _people(operation, "its size is not known any more; accelerators stay as they are", now_s)
    why = world.ground.release(operation.to_ranks)
    if why is None:
        told = f"accelerators of ranks {operation.to_ranks} and above are given back"
        return operation.noted(told, now_s, phase=_P.DONE)
    if _may_wait(operation, now_s, operation.limits.reserve_s):
        return operation
    return _people(operation, f"accelerators could not be given back: {why}", now_s)


def _undoing(operation: ResizeOperation, world: World, now_s: float) -> ResizeOperation:
    """Back to how it was; only where it is seen to have the size that it had."""
    if world.engine.ranks() != operation.from_ranks:
        if _may_wait(operation, now_s, operation.limits.give_up_s):
            return operation
        return _people(operation, "its size is not known; accelerators stay as they are", now_s)
    back = world.ground.release if operation.grows else world.router.route
    why = back(operation.from_ranks)
    if why is None:
        told = "joiners' accelerators are given back" if operation.grows else "all ranks get traffic again"
        return operation.noted(told, now_s, phase=_P.ABANDONED, serving_ranks=operation.from_ranks)
    if _may_wait(operation, now_s, operation.limits.reserve_s):
        return operation
    return _people(operation, why, now_s)


def _people(operation: ResizeOperation, told: str, now_s: float, **changes: object) -> ResizeOperation:
    way_out = _RESTART.format(good=operation.serving_ranks or operation.from_ranks)
    return operation.noted(told, now_s, phase=_P.NEEDS_PEOPLE, way_out=way_out, **changes)


_AFTER: Final[Mapping[CallVerdict, OperationPhase]] = {
    CallVerdict.DONE: _P.VERIFYING,
    CallVerdict.REFUSED: _P.UNDOING,
}
"""Where an answer leads; after all others, also where somebody else's resize is on its way, it must be seen."""

_STEPS: Final[Mapping[OperationPhase, Step]] = {
    _P.PLANNED: _planned,
    _P.RESERVING: _reserving,
    _P.UNROUTING: _unrouting,
    _P.DRAINING: _draining,
    _P.SETTLING: _settling,
    _P.VERIFYING: _verifying,
    _P.ROUTING: _routing,
    _P.RELEASING: _releasing,
    _P.UNDOING: _undoing,
}

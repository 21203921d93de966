"""Which sizes a deployment can reach in place, and everything that speaks against the others.

Physical experts per rank never change in a resize: with E experts, R copies beside them and d ranks of TP accelerators
at launch there are s = (E + R)/(d·TP) slots on each, so n ranks hold R' = s·n·TP - E copies, and R' >= 0 is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from models.elastic import Dialect, ElasticEngine, ElasticShape
from models.explanation import Fact
from models.resizing import SizeReason, SizeRefusal, SizeVerdict
from planner.elastic.versions import Traits, traits_of

__all__ = ["REDUNDANCY_CAP", "Room", "floor_ranks", "judge_size", "largest_ranks", "reachable_sizes"]

REDUNDANCY_CAP: Final = 1023
"""Copies of experts that EPLB counts (vLLM asserts it)."""
_SIZES_AT_MOST: Final = 4096


@dataclass(frozen=True, slots=True)
class Room:
    """Accelerators that are free for ranks that join.

    Attributes:
        domain: free accelerators of each node of the deployment's fabric domain.
        elsewhere: free accelerators of each node outside it.
    """

    domain: Sequence[int]
    elsewhere: Sequence[int] = ()

    def seats(self, tensor_parallel: int) -> int:
        """Ranks that fit: each needs its accelerators on one node."""
        return sum(free // tensor_parallel for free in self.domain)

    def seats_elsewhere(self, tensor_parallel: int) -> int:
        """Ranks that would fit outside the fabric domain."""
        return sum(free // tensor_parallel for free in self.elsewhere)


def floor_ranks(shape: ElasticShape) -> int:
    """The smallest size that still holds every expert: n_min = ceil(E·d/(E + R))."""
    return -(-shape.experts * shape.launch_ranks // (shape.experts + shape.redundant_experts))


def largest_ranks(shape: ElasticShape, engine: ElasticEngine) -> int:
    """The largest size that flags, version and the count of copies allow."""
    traits = traits_of(engine)
    launch = shape.launch_ranks
    if traits is None or not engine.elastic or shape.slots_per_rank != int(shape.slots_per_rank):
        return launch
    slots = int(shape.slots_per_rank) * shape.tensor_parallel
    most = (shape.experts + REDUNDANCY_CAP) // slots
    if traits.checks_sizes:
        most = min(most, shape.max_ranks or launch)
    cap = _rank_cap(traits, engine)
    return most if cap is None else min(most, cap // shape.tensor_parallel)


def judge_size(
    shape: ElasticShape, ranks: int, *, engine: ElasticEngine, current: int, room: Room | None = None
) -> SizeVerdict:
    """Everything that speaks against a size.

    Args:
        shape: of the deployment.
        ranks: data-parallel ranks that are wanted (expert-parallel ranks for SGLang).
        engine: what it is started as.
        current: ranks now.
        room: free accelerators; None: not known, so nothing is said of them.
    """
    copies = shape.slots_per_rank * ranks * shape.tensor_parallel - shape.experts
    refusals = [*_against_launch(shape, engine)]
    if not refusals and ranks != current:
        refusals = [*_against_size(shape, ranks, engine, current)]
        if room is not None and ranks > current:
            refusals += _against_room(shape, ranks - current, room)
    whole = copies == int(copies)
    return SizeVerdict(
        ranks=ranks, redundant_experts=int(copies) if whole else None, refusals=tuple(refusals)
    )


def reachable_sizes(
    shape: ElasticShape, *, engine: ElasticEngine, current: int, room: Room | None = None
) -> tuple[int, ...]:
    """Sizes that nothing speaks against, the smallest first; the current one is among them."""
    most = min(max(largest_ranks(shape, engine), current), _SIZES_AT_MOST)
    least = min(floor_ranks(shape), current)
    sizes = range(least, most + 1)
    return tuple(
        n
        for n in sizes
        if n == current or judge_size(shape, n, engine=engine, current=current, room=room).reachable
    )


def _against_launch(shape: ElasticShape, engine: ElasticEngine) -> Iterator[SizeRefusal]:
    slots = shape.slots_per_rank
    if slots != int(slots):
        yield SizeRefusal(
            reason=SizeReason.LAUNCH_DOES_NOT_DIVIDE,
            facts={**_experts(shape), "ep_size": shape.launch_ranks * shape.tensor_parallel},
        )
    if not engine.elastic or traits_of(engine) is None:
        yield SizeRefusal(reason=SizeReason.NOT_ELASTIC, facts={"version": engine.version})


def _against_size(
    shape: ElasticShape, ranks: int, engine: ElasticEngine, current: int
) -> Iterator[SizeRefusal]:
    traits = traits_of(engine) or Traits()
    floor, total = floor_ranks(shape), ranks * shape.tensor_parallel
    if ranks < floor:
        yield SizeRefusal(reason=SizeReason.BELOW_FLOOR, facts={"floor": floor, **_experts(shape)})
    elif ranks < shape.launch_ranks and traits.resets_redundancy:
        yield SizeRefusal(reason=SizeReason.BELOW_LAUNCH_UNSAFE, facts={"launch_ranks": shape.launch_ranks})
    most = shape.max_ranks or shape.launch_ranks
    if traits.checks_sizes and ranks > most:
        unset = shape.max_ranks is None
        yield SizeRefusal(reason=SizeReason.ABOVE_MAXIMUM, facts={"maximum": most, "unset": int(unset)})
    copies = int(shape.slots_per_rank) * total - shape.experts
    if copies > REDUNDANCY_CAP:
        yield SizeRefusal(
            reason=SizeReason.REDUNDANCY_CAP, facts={"redundant_experts": copies, "cap": REDUNDANCY_CAP}
        )
    cap = _rank_cap(traits, engine)
    if cap is not None and total > cap:
        yield SizeRefusal(
            reason=SizeReason.RANK_CAP_OF_VERSION,
            facts={"ep_size": total, "cap": cap, "version": engine.version},
        )
    if traits.grows_only and ranks < current:
        yield SizeRefusal(reason=SizeReason.GROWS_ONLY, facts={"current": current})
    if engine.dialect is Dialect.DYNAMO and total <= 1:
        yield SizeRefusal(reason=SizeReason.ONE_RANK_ALONE, facts={"ep_size": total})
    if (ranks - current) % shape.rank_group:
        yield SizeRefusal(
            reason=SizeReason.WHOLE_GROUPS, facts={"group": shape.rank_group, "current": current}
        )


def _rank_cap(traits: Traits, engine: ElasticEngine) -> int | None:
    return traits.rank_cap if engine.all2all_backend == "nixl_ep" else None


def _experts(shape: ElasticShape) -> dict[str, Fact]:
    return {
        "experts": shape.experts,
        "redundant_experts": shape.redundant_experts,
        "launch_ranks": shape.launch_ranks,
    }


def _against_room(shape: ElasticShape, joiners: int, room: Room) -> Iterator[SizeRefusal]:
    seats, elsewhere = room.seats(shape.tensor_parallel), room.seats_elsewhere(shape.tensor_parallel)
    if joiners <= seats:
        return
    facts: dict[str, Fact] = {"joiners": joiners, "seats": seats, "gpus_per_rank": shape.tensor_parallel}
    if joiners <= seats + elsewhere:
        yield SizeRefusal(
            reason=SizeReason.NO_ROOM_IN_FABRIC_DOMAIN, facts={**facts, "seats_elsewhere": elsewhere}
        )
    else:
        yield SizeRefusal(reason=SizeReason.NO_ROOM_ON_NODES, facts=facts)

"""What services that may move ask for, and what one replica of each variant carries of it, in the analyzers' own unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from planner.control.analysis import Move, Service, VariantRef, VariantSeen
from planner.saturation import Analysis
from planner.saturation.published import SATURATION

__all__ = ["Carries", "Group", "groups_of", "within_reach"]

_BY_A_HAIR: Final = 1e-3
_REACH: Final = 4.0
"""So many times what all replicas carry is planned for at most."""
_PAIR: Final = frozenset({"prefill", "decode"})


class Carries(NamedTuple):
    """What one replica carries, tokens: inside the trigger (τ - γ), and up to τ."""

    rated: float
    surge: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One role of a service that may move, or a pair of roles that grow together.

    Attributes:
        service: that it belongs to.
        moves: by role.
        tokens: that are asked for.
        carries: of one replica, by variant.
        most: tokens that are planned for; a demand far beyond what all replicas together carry is cut to it.
    """

    service: Service
    moves: Mapping[str, Move]
    tokens: float
    carries: Mapping[VariantRef, Carries]
    most: float = math.inf

    @property
    def planned(self) -> float:
        """Tokens that are planned for."""
        return min(self.tokens, self.most)

    @property
    def key(self) -> str:
        """``namespace/model#roles``."""
        return f"{self.service.seen.key}#{'+'.join(sorted(self.moves))}"


def groups_of(service: Service, *, yields: bool = False) -> list[Group]:
    """Roles that may move, each by itself; prefill and decode that both grow are one, so that neither outruns the other.

    Args:
        service: as the analyzers see it.
        yields: a more important service is short of accelerators, so that roles which would stay may shrink too.
    """
    moves = {role: service.move(role) for role in service.seen.roles}
    if yields and service.voters:
        moves = {role: Move.DOWN if move is Move.HOLD else move for role, move in moves.items()}
    moves = {role: move for role, move in moves.items() if move is not Move.HOLD}
    together = moves.keys() >= _PAIR and all(moves[role] is Move.UP for role in _PAIR)
    alone = moves.keys() - (_PAIR if together else set())
    sets = [*([_PAIR] if together else []), *(frozenset({role}) for role in sorted(alone))]
    groups = (_group(service, {role: moves[role] for role in sorted(roles)}) for roles in sets)
    return [group for group in groups if group.carries]


def _group(service: Service, moves: Mapping[str, Move]) -> Group:
    asked = {role: _demands(service, role, move) for role, move in moves.items()}
    # One unit for all of a group: the tokens of its most asked role.
    tokens = max((each.get(SATURATION, 0.0) for each in asked.values()), default=0.0)
    if tokens <= 0:
        tokens = max((demand for each in asked.values() for demand in each.values()), default=0.0)
    carries = {
        seen.ref: found
        for role in moves
        for seen in service.seen.variants
        if seen.observed.role.value == role and _may_change(seen)
        if (found := _carries(service, seen, asked[role], tokens)) is not None
    }
    return Group(service=service, moves=moves, tokens=tokens, carries=carries)


def within_reach(group: Group, replicas: Mapping[VariantRef, int]) -> Group:
    """The group with a demand that its replicas make a difference to.

    Where a hundred times of what all of them carry is asked for, each one more serves next to nothing of it, and every
    plan is as good as the best within any tolerance: nothing would grow.

    Args:
        group: as it asks.
        replicas: that each of its variants may have at most.
    """
    carried = dict.fromkeys((seen.observed.role.value for seen in _changing(group)), 0.0)
    for seen in _changing(group):
        carried[seen.observed.role.value] += group.carries[seen.ref].rated * replicas[seen.ref]
    least = min((each for each in carried.values() if each > 0), default=math.inf)
    return replace(group, most=_REACH * least)


def _changing(group: Group) -> list[VariantSeen]:
    return [seen for seen in group.service.seen.variants if seen.ref in group.carries]


def _may_change(seen: VariantSeen) -> bool:
    return seen.resolved and not seen.paused and (seen.wanted > 0 or seen.observed.max_replicas != 0)


def _demands(service: Service, role: str, move: Move) -> dict[str, float]:
    """What each voting analyzer says that a role is asked for, in its own unit."""
    found = {
        one.analyzer: step.demand for one in service.voters if (step := service.step(one, role)) is not None
    }
    step = service.step(service.tokens, role)
    others = [service.step(one, role) for one in service.voters if one.analyzer != SATURATION]
    missing = any(other is not None and other.required > 0 for other in others)
    if move is Move.UP and step is not None and not missing and SATURATION in found:
        # A queue may ask for more before the tokens do: a hair above what there will be makes one replica more.
        enough = service.seen.roles[role].usable * step.anticipated
        found[SATURATION] = max(step.demand, enough * (1.0 + _BY_A_HAIR))
    return found


def _carries(
    service: Service, seen: VariantSeen, asked: Mapping[str, float], tokens: float
) -> Carries | None:
    """The least that any voting analyzer grants; None: none knows the size of its replicas."""
    found: list[Carries] = []
    for analysis in service.voters:
        sized, demand = analysis.variants.get(seen.name), asked.get(analysis.analyzer, 0.0)
        if sized is None or sized.capacity <= 0 or analysis.analyzer not in asked:
            continue
        if demand > 0:
            scale = 1.0 if demand == tokens else tokens / demand
            found.append(
                Carries(_usable(service, seen, analysis) * sized.capacity * scale, sized.capacity * scale)
            )
        elif analysis.analyzer == SATURATION and tokens <= 0:
            found.append(Carries(sized.capacity, sized.capacity))
        else:
            # Nothing is asked for by this one: any replica will do.
            found.append(Carries(tokens, tokens))
    if not found:
        return None
    rated = min(one.rated for one in found)
    surge = min(one.surge for one in found) * _own_headroom(service, seen)
    return Carries(rated, max(rated, surge)) if math.isfinite(rated) else None


def _usable(service: Service, seen: VariantSeen, analysis: Analysis) -> float:
    """Share of its capacity that may be in use once a service has moved."""
    rules = service.seen.roles[seen.observed.role.value]
    if analysis.analyzer != SATURATION:
        return rules.bounds.up
    return (seen.rules.tau_kv - seen.rules.gamma_kv) / seen.rules.tau_kv


def _own_headroom(service: Service, seen: VariantSeen) -> float:
    """A variant whose δ is other than that of its role counts for as much less, or more."""
    own, pooled = seen.rules.delta.relative, service.seen.roles[seen.observed.role.value].rules.delta.relative
    return 1.0 if own is None or pooled is None else (1.0 + pooled) / (1.0 + own)

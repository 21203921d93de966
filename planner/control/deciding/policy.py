"""Policies by name: who wishes for replicas. What becomes of a wish is decided by the rules that follow, for all alike.

A plug-in of the group ``fleetplan.policy`` is a factory of options and a clock. What it makes either decides from the
observation alone (:class:`~planner.control.protocols.ScalingPolicy`), or proposes from what the analyzers say of the
services that named it (:class:`Policy`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from models.controller import ControllerSettings
from models.explanation import Fact
from models.observation import Finding, Observation, VariantObservation
from models.problem import Problem
from models.solution import Solution
from planner.clock import Clock
from planner.control.analysis import Service, VariantRef, Voices, ref_of
from planner.control.deciding.room import Room
from planner.control.protocols import ScalingPolicy
from planner.errors import ConfigurationError
from planner.registry import Registry

__all__ = [
    "POLICIES",
    "Policy",
    "PolicyFactory",
    "Proposal",
    "Proposed",
    "Question",
    "RoomMaker",
    "open_policy",
]


class RoomMaker(Protocol):
    """Makes what is free."""

    def __call__(
        self, variants: Iterable[VariantObservation] | None = None, staying: Iterable[VariantObservation] = ()
    ) -> Room:
        """Free accelerators beside these variants (None: all that were observed); see :meth:`Room.of`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a policy is asked.

    Attributes:
        observation: as it was seen, of all services.
        services: those that named it, as the analyzers see them.
        settings: as they are now.
        room: makes anew what accelerators are free beside some variants, with what others hold on nodes that take no
            pods any more; None: growth is not bounded by them.
        now_s: seconds of the epoch.
        warm: what it left the last time; None: nothing.
    """

    observation: Observation
    services: tuple[Service, ...]
    settings: ControllerSettings
    room: RoomMaker | None
    now_s: float
    warm: object | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What a variant is wished to have.

    Attributes:
        replicas: wished for.
        why: one word in the policy's own terms.
        message: one sentence; empty: the word says it.
        short: replicas that were needed and not wished for, since nothing has room for them.
        carries: what one replica carries, in the policy's own unit; None: it does not say.
        asked: what all replicas of its role are asked for, in that unit.
        facts: figures behind it.
    """

    replicas: int
    why: str
    message: str = ""
    short: int = 0
    carries: float | None = None
    asked: float = 0.0
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The wishes of a policy; a variant that is not named is held.

    Attributes:
        wishes: by variant.
        problem: what was solved; None: nothing was.
        solution: its answer.
        findings: what could not be done, and why.
        warm: for the next question; it is not kept over a restart.
    """

    wishes: Mapping[VariantRef, Proposed]
    problem: Problem | None = None
    solution: Solution | None = None
    findings: tuple[Finding, ...] = ()
    warm: object | None = None


@runtime_checkable
class Policy(Protocol):
    """Proposes from what analyzers say, the forecast of services that ask for one included.

    One with an attribute ``reactive`` that is true has no use for a forecast, and records say so.
    """

    @property
    def voices(self) -> Voices:
        """Further analyzers that it wants to hear, with their scores."""
        ...

    def propose(self, question: Question) -> Proposal:
        """Wishes for the services of the question."""
        ...


PolicyFactory = Callable[[Mapping[str, object], Clock], Policy | ScalingPolicy]
"""Makes a policy of options and a clock; refuses wrong options with a ConfigurationError that lists them all."""

_PUBLISHED: Final = "planner.control.deciding.published"

POLICIES: Final[Registry[PolicyFactory]] = Registry(
    "policy",
    {
        "planner": "planner.control.deciding.planning:policy",
        "wva": f"{_PUBLISHED}:percentage_policy",
        "wva-v1": f"{_PUBLISHED}:percentage_policy",
        "wva-v2": f"{_PUBLISHED}:token_policy",
    },
)


def open_policy(
    name: str, options: Mapping[str, object], clock: Clock, policies: Registry[PolicyFactory] | None = None
) -> Policy:
    """The policy of a name.

    Args:
        name: built in or of a plug-in.
        options: of that policy.
        clock: for limits of time.
        policies: by name; None: built in and installed ones.

    Raises:
        ConfigurationError: there is no such policy, what it needs is not installed, or an option is wrong.
    """
    made = (policies or POLICIES).get(name)(options, clock)
    if isinstance(made, Policy):
        return made
    if not callable(getattr(made, "decide", None)):
        raise ConfigurationError(
            f"policy {name!r} neither proposes nor decides: a {type(made).__name__} is none"
        )
    return _FromObservation(made)


@dataclass(frozen=True, slots=True)
class _FromObservation:
    """A policy that looks at the observation alone; what it says of services that named others is not looked at."""

    policy: ScalingPolicy

    @property
    def reactive(self) -> bool:
        """It sees what is observed alone."""
        return True

    @property
    def voices(self) -> Voices:
        return {}

    def propose(self, question: Question) -> Proposal:
        ours = {one.ref for service in question.services for one in service.seen.variants}
        wishes = {
            ref: Proposed(
                replicas=each.desired, why=each.reason, message=each.message, facts=dict(each.facts)
            )
            for each in self.policy.decide(question.observation, question.now_s)
            if (ref := ref_of(each.variant)) in ours
        }
        return Proposal(wishes=wishes)

"""Plans that are carried out: one at a time on a server, in a thread of its own, whoever looks on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Final

import streamlit as st

from models.applied import ApplyEvent, ApplyReview
from planner.clock import SystemClock
from planner.control.carrying import (
    Apis,
    Applied,
    CarryOut,
    Order,
    apis_of,
    apply_order,
    begun_in,
    look,
    records_folder,
)
from planner.errors import FleetPlanError
from planner.manifests import Route

__all__ = ["Run", "Runs", "connect", "reviewed", "runs"]

_WHY: Final = "from the app"


def connect(route: Route, context: str) -> Apis:
    """The clusters of a plan, by the kubeconfig of this server.

    Raises:
        ConfigurationError: there is no such context.
    """
    return apis_of(route, SystemClock(), context=context or None)


def _how(order: Order, context: str) -> CarryOut:
    begun = begun_in(order, records_folder())
    return CarryOut(apis=connect(order.route(), context), clock=SystemClock(), begun=begun)


def reviewed(order: Order, context: str) -> ApplyReview:
    """What carrying it out would do now; nothing is written.

    Raises:
        FleetPlanError: it cannot be carried out at all.
    """
    return look(order.route(), _how(order, context))


@dataclass(slots=True)
class Run:
    """A plan on its way.

    Attributes:
        key: of the plan and its direction.
        name: of the plan.
        order: what is carried out.
        context: of the kubeconfig.
        events: what happened so far.
        applied: what came of it; None: it is on its way, or failed.
        failure: why it could not be carried out; empty: nothing.
        stopping: somebody asked to stop.
    """

    key: str
    name: str
    order: Order
    context: str
    events: list[ApplyEvent] = field(default_factory=list)
    applied: Applied | None = None
    failure: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def over(self) -> bool:
        """Whether nothing more happens."""
        return self.applied is not None or bool(self.failure)


class Runs:
    """The plan that is carried out now, or was last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Run | None = None

    @property
    def last(self) -> Run | None:
        """The last one; None: none was begun since the server started."""
        return self._last

    def begin(self, run: Run, *, why: str) -> bool:
        """Carry a plan out; False: another one is on its way."""
        with self._lock:
            if self._last is not None and not self._last.over:
                return False
            self._last = run
        # A server that ends does not wait for it: the record says how far it came, and the next one goes on.
        threading.Thread(target=self._carry, args=(run, why), daemon=True, name="apply").start()
        return True

    @staticmethod
    def _carry(run: Run, why: str) -> None:
        try:
            how = replace(_how(run.order, run.context), note=run.events.append, stop=run.stopping.is_set)
            run.applied = apply_order(run.order, how, records_folder(), why=f"{_WHY}: {why}" if why else _WHY)
        except FleetPlanError as fault:
            run.failure = str(fault)
        except Exception as fault:
            run.failure = f"a fault of ours: {type(fault).__name__}"
            raise


@st.cache_resource(show_spinner=False)
def runs() -> Runs:
    """Of this server."""
    return Runs()

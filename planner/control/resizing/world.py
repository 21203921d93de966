"""What a resize touches, as it is handed in: the engine, the accelerators under it, the router, and its own record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from models.resize_call import CallAnswer, ResizeStatus
from models.resize_operation import ResizeOperation

__all__ = ["ANSWERS", "Engine", "Ground", "OperationStore", "Router", "World"]


ANSWERS: Final = " | "
"""Between answers of ranks that do not say the same."""


class Engine(Protocol):
    """The deployment itself. Nothing here raises for what cannot be reached: that is unknown."""

    def call(self, operation: ResizeOperation) -> CallAnswer:
        """Order the resize, once, and wait for the answer: minutes."""

    def status(self) -> ResizeStatus:
        """How far a resize is."""

    def healthy(self) -> bool | None:
        """Whether it serves; None: not known."""

    def ranks(self) -> int | None:
        """How many ranks it has; None: not known."""

    def answer(self) -> str | None:
        """What its ranks answer to a fixed prompt, with a temperature of 0, each answer once; None: one of them does not."""


class Ground(Protocol):
    """Accelerators (pods, ranks) under the deployment. Each call is idempotent; one that fails says why."""

    def reserve(self, ranks: int) -> str | None:
        """Have accelerators for so many ranks; why not, or None."""

    def there(self) -> int | None:
        """For how many ranks accelerators are there now; None: not known."""

    def release(self, ranks: int) -> str | None:
        """Give back what is under the ranks from this number on; why not, or None."""


class Router(Protocol):
    """Who sends requests to ranks."""

    def route(self, ranks: int) -> str | None:
        """Send requests to the ranks below this number, and to no others; why not, or None."""

    def in_flight(self, first: int) -> float | None:
        """Requests on the ranks from this number on; None: not known."""


class OperationStore(Protocol):
    """Where the record of the one operation of a deployment is kept; it is the lock as well."""

    def load(self) -> ResizeOperation | None:
        """The last operation; None: there never was one.

        Raises:
            FleetPlanError: it cannot be read.
        """

    def save(self, operation: ResizeOperation) -> None:
        """Write it down.

        Raises:
            FleetPlanError: it cannot be written, or another operation that is not over is there.
        """


@dataclass(frozen=True, slots=True)
class World:
    """Everything that a resize touches."""

    engine: Engine
    ground: Ground
    router: Router
    store: OperationStore

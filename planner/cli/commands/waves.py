"""What ``plan`` and ``commands`` have in common: how much may change at once on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.edge import Common

if TYPE_CHECKING:
    from models.plan import WaveLimits

__all__ = ["Waves", "wave_limits"]


@dataclass(frozen=True, kw_only=True)
class Waves(Common):
    """Limits on the waves from the fleet that runs to the plan."""

    max_surge_gpus: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=10**9,
            metavar="N",
            show_default=False,
            help="GPUs that may be held on the way above the larger of start and plan, all pools together; default: "
            "what the scenario's limits allow.",
        ),
    ] = None
    max_surge_replicas: Annotated[
        int | None,
        typer.Option(
            min=0, max=10**9, metavar="N", show_default=False, help="The same in replicas, per service."
        ),
    ] = None
    max_unavailable: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=10**9,
            metavar="N",
            show_default=False,
            help="Ready replicas that a service may lack on the way below the smaller of start and plan; default: as "
            "many as leave it what it serves.",
        ),
    ] = None
    max_step_gpus: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**9,
            metavar="N",
            show_default=False,
            help="GPUs of the replicas that one step starts or drains; default: any number.",
        ),
    ] = None
    drain: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1e7,
            metavar="S",
            show_default=False,
            help="Time in which a draining replica ends its requests, s; default 60.",
        ),
    ] = None


def wave_limits(options: Waves, *, base: WaveLimits | None = None) -> WaveLimits | None:
    """The limits that the options ask for, those of ``base`` where they say nothing; None: no option is given."""
    from models.plan import WaveLimits

    named = {
        "max_surge_gpus": options.max_surge_gpus,
        "max_surge_replicas": options.max_surge_replicas,
        "max_unavailable": options.max_unavailable,
        "max_step_gpus": options.max_step_gpus,
        "drain_s": options.drain,
    }
    given = {name: value for name, value in named.items() if value is not None}
    return (base or WaveLimits()).but(**given) if given else None

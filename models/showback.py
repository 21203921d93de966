"""Who pays: the cost of a plan by team, split into what works, what is kept free and what is left over."""

from __future__ import annotations

from pydantic import Field

from models.ids import Name, ServiceId
from models.value import Value

__all__ = ["Bill", "Showback"]


class Bill(Value):
    """What one team pays. All amounts are in the cost unit of the problem; the four parts add up to ``total``."""

    team: Name = Field(description="team of the services; the namespace where a service names none")
    services: tuple[ServiceId, ...] = Field(description="services of the team")
    used: float = Field(description="share of its replicas that carries load")
    headroom: float = Field(description="share that is kept free because the services ask for headroom")
    idle: float = Field(description="share that is free beyond it: whole replicas, minimum counts")
    starts: float = Field(description="cost of its starts, spread over the horizon")
    total: float = Field(description="all of it")


class Showback(Value):
    """The bills of all teams, the largest first; they add up to the cost of the plan."""

    bills: tuple[Bill, ...] = Field(description="one for each team with services")
    unassigned: float = Field(0.0, description="cost of added nodes on which nothing runs")
    total: float = Field(description="cost of the plan, in the cost unit of the problem")

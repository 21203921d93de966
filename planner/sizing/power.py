"""What one replica draws, and which caps speak of which pool."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from models.hardware import Accelerator, PowerDomain
from models.ids import PoolId
from models.scenario import PowerBasis, Scenario
from models.variant import Variant
from planner.errors import Finding
from planner.sizing.names import Names
from planner.sizing.references import finding

__all__ = ["Draw", "capped_pools", "draw_of", "power_findings", "resolved_domains"]


@dataclass(frozen=True, slots=True)
class Draw:
    """Power of one replica, W (None: unknown), and where the figure is from."""

    power_w: float | None
    source: str


def draw_of(
    variant: Variant,
    accelerator: Accelerator,
    basis: PowerBasis,
    *,
    rated_w: float | None,
    source: str | None = None,
) -> Draw:
    """The draw of one replica on this basis.

    ``tdp``: accelerators x thermal design power. ``expected``: the figure the variant states, else the one at
    the rated rate, measured or modeled, else the thermal design power, which no replica exceeds: the safe
    figure where nobody knows.

    Args:
        variant: states accelerators, and perhaps a draw.
        accelerator: states its thermal design power, or does not.
        basis: of the problem.
        rated_w: draw at the rated rate that the rating came with.
        source: where that is from; None: from the measured row that the rates are from.
    """
    gpus = variant.parallelism.gpus
    tdp_w = None if accelerator.tdp_w is None else gpus * accelerator.tdp_w
    if basis is PowerBasis.TDP:
        return Draw(tdp_w, "TDP" if tdp_w is not None else "TDP unknown")
    if variant.capacity.power_w is not None:
        return Draw(variant.capacity.power_w, "variant.capacity")
    if rated_w is not None:
        return Draw(rated_w, source or "measured at the rated rate")
    return Draw(tdp_w, "TDP as the safe figure, nobody measured" if tdp_w is not None else "unknown")


def resolved_domains(scenario: Scenario) -> tuple[PowerDomain, ...]:
    """Power domains, sorted, each with the pools it caps: those it lists, or those that name it."""
    return tuple(
        domain.but(pools=tuple(sorted(set(domain.pools) or _naming(domain, scenario))))
        for domain in sorted(scenario.limits.power, key=lambda domain: domain.id)
    )


def capped_pools(domains: Collection[PowerDomain]) -> frozenset[PoolId]:
    """Pools that some cap speaks of."""
    return frozenset(pool for domain in domains for pool in domain.pools)


def power_findings(scenario: Scenario, names: Names) -> Iterator[Finding]:
    """A cap that caps no pool, and a cap on idle power that nobody knows.

    An unknown idle draw is not zero, and the thermal design power in its place would reward plans for
    keeping accelerators busy: so it must be given where the expected basis meets a cap.
    """
    for i, domain in enumerate(scenario.limits.power):
        if not domain.pools and not _naming(domain, scenario):
            path = f"limits.power[{i}].pools"
            yield finding(
                path, f"no pool, and no pool names power domain {domain.id!r}", allowed="at least one pool"
            )
    if scenario.limits.power_basis is not PowerBasis.EXPECTED:
        return
    capped = capped_pools(resolved_domains(scenario))
    unknown = {names.accelerators[pool.accelerator].id for pool in scenario.pools if pool.id in capped}
    for name in sorted(unknown):
        if names.accelerators[name].idle_w is None:
            yield finding(
                "limits.power_basis",
                f"'expected' with a power cap, and the idle draw of {name} is unknown",
                allowed="idle_w in an accelerators entry of the scenario, or power_basis: tdp",
            )


def _naming(domain: PowerDomain, scenario: Scenario) -> set[PoolId]:
    return {pool.id for pool in scenario.pools if pool.power_domain == domain.id}

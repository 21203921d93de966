"""What one replica costs, and that all costs of a problem have one unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from models.hardware import Accelerator, Pool
from models.problem import CostUnit
from models.scenario import Scenario
from models.variant import Variant
from planner.errors import Finding
from planner.sizing.references import finding

__all__ = ["Price", "cost_unit", "money_findings", "price_of"]


@dataclass(frozen=True, slots=True)
class Price:
    """Cost of one replica.

    Attributes:
        value: in ``unit``.
        unit: $/h or relative.
        source: where it is from.
    """

    value: float
    unit: CostUnit
    source: str


def price_of(variant: Variant, pool: Pool, accelerator: Accelerator) -> Price | None:
    """The cost the variant states, else accelerators x price of the pool, else x list price; None: unknown."""
    cost = variant.cost
    if cost is not None and cost.relative is not None:
        return Price(cost.relative, CostUnit.RELATIVE, "variant.cost")
    if cost is not None and cost.usd_per_h is not None:
        return Price(cost.usd_per_h, CostUnit.USD_PER_H, "variant.cost")
    gpus = variant.parallelism.gpus
    if pool.offering.usd_per_h is not None:
        return Price(gpus * pool.offering.usd_per_h, CostUnit.USD_PER_H, "price of the pool")
    if accelerator.usd_per_h is not None:
        return Price(gpus * accelerator.usd_per_h, CostUnit.USD_PER_H, "list price of the accelerator")
    return None


def cost_unit(prices: Iterable[Price]) -> CostUnit:
    """The unit of a problem: relative where every cost is, else $/h."""
    units = {price.unit for price in prices}
    return CostUnit.RELATIVE if units == {CostUnit.RELATIVE} else CostUnit.USD_PER_H


def money_findings(scenario: Scenario, priced: Iterable[tuple[str, str, Price]]) -> Iterator[Finding]:
    """Costs that do not add up: two units in one problem, or money beside relative costs.

    Args:
        scenario: as the user wrote it.
        priced: service, variant and price of everything that may be in the plan.
    """
    by_unit: dict[CostUnit, dict[tuple[str, str], Price]] = {unit: {} for unit in CostUnit}
    for service_id, variant_id, price in priced:
        by_unit[price.unit][service_id, variant_id] = price
    relative, usd = by_unit[CostUnit.RELATIVE], by_unit[CostUnit.USD_PER_H]
    if not relative:
        return
    if usd:
        yield from _mixed(scenario, relative, usd)
        return
    limits = scenario.limits
    if limits.spend_usd_per_h is not None:
        yield finding(
            "limits.spend_usd_per_h", "a limit in $/h beside relative costs", allowed="costs in $/h"
        )
    for i, pool in enumerate(scenario.pools):
        if pool.growth is not None and pool.growth.usd_per_node_h > 0:
            path = f"pools[{i}].growth.usd_per_node_h"
            yield finding(path, "a price in $/h beside relative costs", allowed="costs in $/h, or 0")
    for where, key, variant in _variants(scenario):
        if key in relative and variant.startup_cost_usd > 0:
            yield finding(
                f"{where}.startup_cost_usd",
                "a price in $ beside relative costs",
                allowed="costs in $/h, or 0",
            )


def _mixed(
    scenario: Scenario, relative: dict[tuple[str, str], Price], usd: dict[tuple[str, str], Price]
) -> Iterator[Finding]:
    """One finding for each variant with a relative cost, and one for each in $/h: nobody knows which is meant."""
    for path, key, _ in _variants(scenario):
        if key in relative:
            yield finding(
                f"{path}.cost", "a relative cost beside costs in $/h", allowed="one unit for all variants"
            )
        elif key in usd:
            found = f"$/h ({usd[key].source}) beside relative costs"
            yield finding(f"{path}.cost", found, allowed="one unit for all variants")


def _variants(scenario: Scenario) -> Iterator[tuple[str, tuple[str, str], Variant]]:
    for i, service in enumerate(scenario.services):
        for j, variant in enumerate(service.variants):
            yield f"services[{i}].variants[{j}]", (service.id, variant.id), variant

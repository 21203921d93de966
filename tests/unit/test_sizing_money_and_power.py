"""What a replica costs and draws, from which figure, and what does not add up."""

from __future__ import annotations

from typing import Any

import pytest

from models.explanation import Reason
from models.hardware import Accelerator, Pool
from models.performance import RatingQuestion
from models.problem import CostUnit
from models.scenario import Scenario
from models.workload import Service
from planner.errors import ConfigurationError
from planner.sizing import Rate
from tests.scenarios import (
    a_pool_entry,
    a_rating,
    a_scenario,
    a_service,
    a_variant,
    an_accelerator,
    one_rps,
    sized,
)


def findings(scenario: Scenario, rate: Rate = one_rps) -> list[str]:
    """What is wrong with a scenario, by path."""
    with pytest.raises(ConfigurationError) as caught:
        sized(scenario, rate)
    return [f"{finding.path}: {finding.found}" for finding in caught.value.findings]


class TestCost:
    """The variant, else the pool, else the catalog."""

    @pytest.mark.parametrize(
        ("cost", "pool_price", "accelerator", "expected", "source"),
        [
            ({"usd_per_h": 7.0}, 2.0, "A100", 7.0, "variant.cost"),
            (None, 2.0, "A100", 8.0, "price of the pool"),
            (None, 0.0, "A100", 0.0, "price of the pool"),
            (None, None, "A100", 6.0, "list price of the accelerator"),
        ],
    )
    def test_the_first_that_is_known_counts(
        self, cost: Any, pool_price: float | None, accelerator: str, expected: float, source: str
    ) -> None:
        variant = a_variant(accelerator=accelerator, parallelism={"tp": 4}, cost=cost)
        pool = a_pool_entry(accelerator=accelerator, offering={"usd_per_h": pool_price})
        (candidate,) = sized(a_scenario(services=(a_service(variants=(variant,)),), pools=(pool,))).candidates
        assert candidate.cost == expected
        assert f"cost: {source}" in candidate.source

    def test_no_price_is_a_rejection(self) -> None:
        problem = sized(a_scenario(pools=(a_pool_entry(offering={}),)))
        assert [(r.reason, r.facts) for r in problem.rejected] == [
            (Reason.UNKNOWN_PRICE, {"accelerator": "H100"})
        ]

    def test_relative_only_if_all_are(self) -> None:
        variants = (a_variant("a", cost={"relative": 1.0}), a_variant("b", cost={"relative": 2.5}))
        problem = sized(a_scenario(services=(a_service(variants=variants),)))
        assert problem.cost_unit is CostUnit.RELATIVE
        assert sized(a_scenario()).cost_unit is CostUnit.USD_PER_H

    def test_two_units_are_all_named(self) -> None:
        variants = (
            a_variant("a", cost={"relative": 1.0}),
            a_variant("b"),
            a_variant("c", cost={"relative": 2.0}),
        )
        assert findings(a_scenario(services=(a_service(variants=variants),))) == [
            "services[0].variants[0].cost: a relative cost beside costs in $/h",
            "services[0].variants[1].cost: $/h (price of the pool) beside relative costs",
            "services[0].variants[2].cost: a relative cost beside costs in $/h",
        ]

    def test_a_variant_that_can_be_nowhere_mixes_nothing(self) -> None:
        variants = (
            a_variant("a", cost={"relative": 1.0}),
            a_variant("b", accelerator="A100", cost={"usd_per_h": 1}),
        )
        assert sized(a_scenario(services=(a_service(variants=variants),))).cost_unit is CostUnit.RELATIVE

    def test_money_beside_relative_costs(self) -> None:
        variant = a_variant(cost={"relative": 1.0}, startup_cost_usd=0.5)
        pool = a_pool_entry(growth={"gpus_per_node": 8, "usd_per_node_h": 3.0})
        scenario = a_scenario(
            services=(a_service(variants=(variant,)),), pools=(pool,), limits={"spend_usd_per_h": 10.0}
        )
        assert [text.partition(":")[0] for text in findings(scenario)] == [
            "limits.spend_usd_per_h",
            "pools[0].growth.usd_per_node_h",
            "services[0].variants[0].startup_cost_usd",
        ]

    def test_free_nodes_do_not_matter(self) -> None:
        pool = a_pool_entry(growth={"gpus_per_node": 8})
        service = a_service(variants=(a_variant(cost={"relative": 1.0}),))
        assert sized(a_scenario(services=(service,), pools=(pool,))).cost_unit is CostUnit.RELATIVE


def measured(power_w: float | None) -> Rate:
    def rate(_question: RatingQuestion) -> Any:
        return a_rating(power_w=power_w)

    return rate


class TestPower:
    """TDP, or what is expected at the rated load."""

    @pytest.mark.parametrize(
        ("basis", "stated", "measured_w", "expected", "source"),
        [
            ("tdp", 900.0, 800.0, 1400.0, "TDP"),
            ("expected", 900.0, 800.0, 900.0, "variant.capacity"),
            ("expected", None, 800.0, 800.0, "measured at the rated rate"),
            ("expected", None, None, 1400.0, "TDP as the safe figure, nobody measured"),
        ],
    )
    def test_the_figure_of_the_basis(
        self, basis: str, stated: float | None, measured_w: float | None, expected: float, source: str
    ) -> None:
        variant = a_variant(parallelism={"tp": 2}, capacity={"power_w": stated})
        scenario = a_scenario(services=(a_service(variants=(variant,)),), limits={"power_basis": basis})
        (candidate,) = sized(scenario, measured(measured_w)).candidates
        assert candidate.power_w == expected
        assert candidate.source.endswith(f"power: {source}")

    def test_a_draw_from_elsewhere_says_so(self) -> None:
        def rate(_question: RatingQuestion) -> Any:
            return a_rating(power_w=640.0, power_source="modeled")

        (candidate,) = sized(a_scenario(limits={"power_basis": "expected"}), rate).candidates
        assert (candidate.power_w, candidate.source.rpartition("power: ")[2]) == (640.0, "modeled")

    @pytest.mark.parametrize(("basis", "idle_w"), [("tdp", 0.0), ("expected", 100.0)])
    def test_idle_accelerators_count_on_the_expected_basis(self, basis: str, idle_w: float) -> None:
        assert sized(a_scenario(limits={"power_basis": basis})).pools[0].idle_gpu_w == idle_w

    @staticmethod
    def dark(**fields: Any) -> Scenario:
        """A scenario whose accelerator states no power."""
        figures = {
            "accelerators": (an_accelerator("X1", tdp_w=None),),
            "services": (a_service(variants=(a_variant(accelerator="X1"),)),),
            "pools": (a_pool_entry(accelerator="X1", power_domain="hall"),),
        }
        return a_scenario(**(figures | fields))

    def test_unknown_power_is_unknown(self) -> None:
        (candidate,) = sized(self.dark()).candidates
        assert candidate.power_w is None

    @pytest.mark.parametrize("pools", [(), ("east",)])
    def test_unknown_power_under_a_cap_is_a_rejection(self, pools: tuple[str, ...]) -> None:
        problem = sized(self.dark(limits={"power": ({"id": "hall", "cap_w": 1e6, "pools": pools},)}))
        assert [r.reason for r in problem.rejected] == [Reason.UNKNOWN_POWER]
        assert problem.candidates == ()

    def test_a_cap_elsewhere_does_not_matter(self) -> None:
        pools = (a_pool_entry(accelerator="X1"), a_pool_entry("west"))
        problem = sized(
            self.dark(pools=pools, limits={"power": ({"id": "h", "cap_w": 1, "pools": ("west",)},)})
        )
        assert len(problem.candidates) == 1

    def test_a_stated_draw_will_do_under_a_cap(self) -> None:
        variant = a_variant(accelerator="X1", capacity={"power_w": 500.0})
        limits = {"power": ({"id": "hall", "cap_w": 1e6},), "power_basis": "expected"}
        accelerators = (an_accelerator("X1", tdp_w=None, idle_w=50.0),)
        scenario = self.dark(
            services=(a_service(variants=(variant,)),), limits=limits, accelerators=accelerators
        )
        assert [candidate.power_w for candidate in sized(scenario).candidates] == [500.0]

    def test_unknown_idle_power_under_a_cap_on_the_expected_basis_must_be_given(self) -> None:
        limits = {"power": ({"id": "hall", "cap_w": 1e6},), "power_basis": "expected"}
        assert findings(self.dark(limits=limits)) == [
            "limits.power_basis: 'expected' with a power cap, and the idle draw of X1 is unknown"
        ]

    def test_a_cap_of_no_pool_is_refused(self) -> None:
        assert findings(a_scenario(limits={"power": ({"id": "hall", "cap_w": 1e6},)})) == [
            "limits.power[0].pools: no pool, and no pool names power domain 'hall'"
        ]

    def test_domains_are_resolved_to_pools(self) -> None:
        pools: tuple[Pool, ...] = tuple(a_pool_entry(name, power_domain="hall") for name in ("b", "a"))
        limits = {"power": ({"id": "x", "cap_w": 5, "pools": ("b",)}, {"id": "hall", "cap_w": 9})}
        problem = sized(a_scenario(pools=pools, limits=limits))
        assert [(domain.id, domain.pools) for domain in problem.power] == [
            ("hall", ("a", "b")),
            ("x", ("b",)),
        ]


def test_own_entries_go_before_the_catalog() -> None:
    ours: Accelerator = an_accelerator("H100", tdp_w=350.0)
    service: Service = a_service()
    assert [c.power_w for c in sized(a_scenario(services=(service,), accelerators=(ours,))).candidates] == [
        350.0
    ]


def test_an_own_alias_goes_before_a_name_of_the_catalog() -> None:
    ours = an_accelerator("H100-PCIe", tdp_w=350.0, aliases=("H100",))
    (candidate,) = sized(a_scenario(accelerators=(ours,))).candidates
    assert (candidate.accelerator, candidate.power_w) == ("H100-PCIe", 350.0)

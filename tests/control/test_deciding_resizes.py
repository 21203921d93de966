"""A resize on its way, and for a while after it: seen in its Lease, judged by nobody, and ranks that left not counted."""

from __future__ import annotations

from typing import Any

import pytest

from models.elastic import ElasticEngine
from models.observation import EngineObservation, ResizeObservation, VariantObservation
from models.resize_call import CallVerdict
from models.resize_operation import OperationLimits, OperationPhase, ResizeOperation
from planner.clock import FakeClock
from planner.control.analysis import RuleBook
from planner.control.analysis.seeing import see
from planner.control.cluster import Api, MemoryCluster
from planner.control.cluster.kinds import LEASES
from planner.control.cluster.reading import Object
from planner.control.discovery.snapshot import snapshot
from planner.control.protocols import ClusterReading
from planner.control.resizing.stores import ANNOTATION, LeaseStore
from tests.kube_objects import a_deployment, an_hpa, notes, reading
from tests.observed_fleets import NOW_S, Cycles, a_variant, engines_of, observed

P = OperationPhase
FULL = (0.95, 9.0)
IDLE = (0.0, 0.0)


def a_record(phase: OperationPhase = P.CALLING, **fields: Any) -> ResizeOperation:
    given: dict[str, Any] = {
        "since_s": NOW_S,
        "limits": OperationLimits(balance_s=30.0),
        "called_s": NOW_S - 90,
    }
    return ResizeOperation(
        id="a",
        deployment="prod/llama",
        engine=ElasticEngine(),
        urls=("http://127.0.0.1:1",),
        from_ranks=8,
        to_ranks=16,
        started_s=NOW_S - 100,
        phase=phase,
        **given | fields,
    )


def a_lease(record: ResizeOperation | None = None, workload: str = "llama") -> Object:
    """The Lease as the store writes it."""
    cluster = MemoryCluster()
    LeaseStore(Api(cluster, FakeClock()), "prod", workload).save(record or a_record())
    lease = Api(cluster, FakeClock()).list(LEASES, "prod").items[0]
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease}


def seen(*leases: Object) -> tuple[VariantObservation, str]:
    found = reading(a_deployment(), an_hpa(annotations=notes()), *leases)
    return found.variants[0], " ".join(each.problem for each in found.findings)


class TestDiscovery:
    def test_the_record_beside_a_workload_is_its_last_resize(self) -> None:
        resize = seen(a_lease())[0].resize
        assert resize is not None
        assert (resize.phase, resize.from_ranks, resize.to_ranks) == (P.CALLING, 8, 16)
        assert (resize.ranks, resize.resizing_until_s) == (None, None)

    def test_one_of_another_workload_is_not(self) -> None:
        assert seen()[0].resize is None
        assert seen(a_lease(workload="llama-2"))[0].resize is None

    @pytest.mark.parametrize(
        ("phase", "fields", "until_s", "ranks"),
        [
            (P.DONE, {"serving_ranks": 16}, NOW_S + 30, 16),
            (P.ABANDONED, {"serving_ranks": 8, "called_s": None}, NOW_S, 8),
            (P.ABANDONED, {"serving_ranks": 8, "answer": CallVerdict.REFUSED}, NOW_S, 8),
            (P.ABANDONED, {"serving_ranks": 8, "answer": CallVerdict.UNKNOWN}, NOW_S + 30, 8),
            (P.NEEDS_PEOPLE, {"serving_ranks": 15}, None, None),
            (P.SETTLING, {"serving_ranks": 8}, None, None),
        ],
    )
    def test_when_its_capacity_is_there(
        self, phase: OperationPhase, fields: dict[str, Any], until_s: float | None, ranks: int | None
    ) -> None:
        resize = seen(a_lease(a_record(phase, **fields)))[0].resize
        assert resize is not None
        assert (resize.resizing_until_s, resize.ranks) == (until_s, ranks)

    def test_a_record_that_cannot_be_read_is_told_and_may_be_one_that_runs(self) -> None:
        lease = a_lease()
        broken = {**lease, "metadata": {**lease["metadata"], "annotations": {ANNOTATION: "{}"}}}
        variant, problems = seen(broken)
        assert "record of its resize cannot be read" in problems
        assert variant.resize == ResizeObservation()

    def test_leases_of_nodes_and_controllers_are_not_asked_for(self) -> None:
        other = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "node-1", "namespace": "kube-node-lease"}}  # fmt: skip
        found = snapshot(Api(MemoryCluster([other, a_lease()]), FakeClock())).of(LEASES)
        assert [each["metadata"]["name"] for each in found] == ["fleetplan-resize-llama"]

    def test_without_the_right_to_look_everything_else_is_seen(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa(annotations=notes())], denied=[("list", "leases")])
        found = snapshot(Api(cluster, FakeClock()))
        assert found.lacking == {LEASES}
        assert "judged while they run" in found.findings[0].problem


def resized(phase: OperationPhase | None = P.CALLING, **fields: Any) -> ResizeObservation:
    return ResizeObservation(phase=phase, since_s=NOW_S, from_ranks=8, to_ranks=16, **fields)


class TestDeciding:
    @pytest.mark.parametrize("load", [FULL, IDLE])
    @pytest.mark.parametrize("phase", [None, P.RESERVING, P.CALLING, P.SETTLING, P.NEEDS_PEOPLE])
    def test_one_that_changes_its_size_is_left_as_it_is(
        self, phase: OperationPhase | None, load: tuple[float, float]
    ) -> None:
        variant = a_variant(ready=3, resize=resized(phase))
        cycles = Cycles()
        assert cycles(observed([variant], engines_of(variant, load))) == {"v": 3}
        assert cycles.why("v") == "Resizing"

    def test_it_is_judged_again_once_it_has_settled_and_metrics_forgot_it(self) -> None:
        variant = a_variant(ready=3, resize=resized(P.DONE, ranks=16, resizing_until_s=NOW_S + 30))
        seen = observed([variant], engines_of(variant, FULL))
        cycles = Cycles()
        assert (cycles(seen, after_s=29), cycles.why("v")) == ({"v": 3}, "Resizing")
        assert (cycles(seen, after_s=60), cycles.why("v")) == ({"v": 3}, "Resizing")
        assert cycles(seen, after_s=2)["v"] > 3
        assert cycles.why("v") == "ScaledUp"

    def test_others_of_its_service_may_grow_and_do_not_shrink(self) -> None:
        moving = a_variant("moving", ready=1, resize=resized())
        beside = a_variant("beside", ready=4)
        engines = (*engines_of(moving, IDLE), *engines_of(beside, IDLE))
        cycles = Cycles()
        assert cycles(observed([moving, beside], engines)) == {"moving": 1, "beside": 4}
        full = (*engines_of(moving, FULL), *engines_of(beside, FULL))
        assert cycles(observed([moving, beside], full))["beside"] > 4

    @pytest.mark.parametrize("resize", [None, resized()])
    def test_what_is_shown_meanwhile_teaches_nothing(self, resize: ResizeObservation | None) -> None:
        cycles = Cycles()
        before = a_variant(ready=3)
        cycles(observed([before], engines_of(before, (0.3, 0.0))))
        learned = cycles.state.analysis.tokens
        assert learned
        then = a_variant(ready=3, resize=resize)
        cycles(observed([then], engines_of(then, FULL)))
        assert (cycles.state.analysis.tokens == learned) is (resize is not None)

    def test_without_a_resize_the_same_fleet_shrinks(self) -> None:
        variant = a_variant(ready=3)
        assert Cycles()(observed([variant], engines_of(variant, IDLE)))["v"] < 3


def test_one_that_began_since_it_was_decided_on_is_left_as_it_is() -> None:
    variant = a_variant(ready=3)
    cycles = Cycles()
    cycles(observed([variant], engines_of(variant, FULL)))
    assert cycles.last is not None
    fresh = ClusterReading(variants=(variant.but(resize=resized()),))
    looked = cycles.decider.revalidate(cycles.last, fresh).decisions[0]
    assert (looked.desired, looked.reason) == (3, "Resizing")


def ranks_of(variant: VariantObservation, count: int, **more: Any) -> list[EngineObservation]:
    first = engines_of(variant, FULL)[0]
    names = [f"v-0:8000/{rank}" if rank else "v-0:8000" for rank in range(count)]
    return [first.but(instance=name, pod="v-0", **more) for name in names]


@pytest.mark.parametrize(
    ("resize", "started_s", "counted"),
    [
        (None, None, 8),
        (resized(P.CALLING), None, 8),
        (resized(P.DONE, ranks=4, resizing_until_s=NOW_S), None, 4),
        (resized(P.DONE, ranks=4, resizing_until_s=NOW_S), NOW_S - 5000, 4),
        (resized(P.DONE, ranks=4, resizing_until_s=NOW_S), NOW_S + 5000, 8),
        (resized(P.DONE, ranks=16, resizing_until_s=NOW_S), None, 8),
    ],
)
def test_series_of_ranks_that_left_are_not_counted_until_a_restart(
    resize: ResizeObservation | None, started_s: float | None, counted: int
) -> None:
    variant = a_variant(ready=1, resize=resize)
    given = observed([variant], ranks_of(variant, 8, started_s=started_s))
    cycles = Cycles()
    found = see(given, RuleBook(cycles.settings), cycles.settings.freshness)
    assert len(found[0].variants[0].engines) == counted

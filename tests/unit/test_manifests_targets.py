"""Which objects a problem names, and what is wrong with a name."""

from __future__ import annotations

from typing import Any

import pytest

from models.problem import Problem
from planner.errors import ConfigurationError
from planner.manifests.targets import targets_of
from tests.builders import a_candidate, a_pool, a_problem
from tests.rollouts import an_object, one_variant
from tests.scenarios import a_pool_entry, a_scenario, a_service, a_variant, sized


def two_variants(first: dict[str, Any], second: dict[str, Any], **pool: Any) -> Problem:
    """Variants ``a`` in pool ``east`` and ``b`` in pool ``west`` with these objects."""
    return a_problem(
        candidates=(
            a_candidate(variant="a", object=an_object(**first)),
            a_candidate(variant="b", pool="west", object=an_object(**second)),
        ),
        pools=(a_pool("east"), a_pool("west", **pool)),
    )


@pytest.mark.parametrize(
    ("named", "namespace"),
    [
        ({"name": "small"}, "team-a"),
        ({"name": "small", "namespace": "default"}, "default"),
        ({"name": "small", "namespace": "other"}, "other"),
    ],
)
def test_the_namespace_of_an_object_is_that_of_its_service_unless_it_names_one(
    named: dict[str, str], namespace: str
) -> None:
    service = a_service(namespace="team-a", variants=(a_variant(object=named),))
    problem = sized(a_scenario(services=(service,)))
    (candidate,) = problem.candidates
    assert candidate.object is not None
    assert (candidate.object.name, candidate.object.namespace) == ("small", namespace)


def test_a_variant_without_an_object_makes_a_candidate_without_one() -> None:
    assert [candidate.object for candidate in sized(a_scenario()).candidates] == [None]


def test_one_variant_in_two_pools_is_one_object() -> None:
    pools = (a_pool_entry("east"), a_pool_entry("west"))
    service = a_service(variants=(a_variant(object={"name": "small"}),))
    (target,) = targets_of(sized(a_scenario(services=(service,), pools=pools)))
    assert target.pools == ("east", "west")


def test_an_object_asks_for_ready_and_pending_replicas_of_all_its_places() -> None:
    west = a_candidate(pool="west", current=2, pending=1, object=an_object())
    (target,) = targets_of(one_variant(3, west))
    assert target.on_order == 6


def test_the_same_name_in_two_clusters_is_two_objects() -> None:
    problem = one_variant(1, a_candidate(pool="west", object=an_object()))
    pools = (problem.pools[0].but(cluster="eu"), problem.pools[1].but(cluster="us"))
    assert [target.cluster for target in targets_of(problem.but(pools=pools))] == ["eu", "us"]


@pytest.mark.parametrize(
    ("cost", "written"), [(4.5, "4.5"), (10.0, "10.0"), (1e-7, "0.0000001"), (2e16, "20000000000000000"), (0, "0.0")]
)  # fmt: skip
def test_a_cost_is_written_without_an_exponent(cost: float, written: str) -> None:
    (target,) = targets_of(a_problem(candidates=(a_candidate(cost=cost, object=an_object()),)))
    assert target.cost == written
    assert float(target.cost) == cost


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"name": "Chat"}, "object.name"),
        ({"name": "a/b"}, "object.name"),
        ({"name": "a-"}, "object.name"),
        ({"name": "a..b"}, "object.name"),
        ({"scaler": "hpa", "scaler_name": "a:b"}, "object.scaler_name"),
        ({"namespace": "a.b"}, "object.namespace"),
        ({"namespace": "a" * 64}, "object.namespace"),
        ({"api_version": "apps/v1\nkind: Secret"}, "object.api_version"),
        ({"api_version": "apps/v1; reboot"}, "object.api_version"),
        ({"api_version": "apps/v1\n"}, "object.api_version"),
        ({"api_version": ""}, "object.api_version"),
    ],
)
def test_a_name_that_kubernetes_does_not_take_is_told(fields: dict[str, str], path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        targets_of(one_variant(1, **fields))
    assert [finding.path for finding in caught.value.findings] == [f"services.chat.variants.small.{path}"]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a.b-c.0"},
        {"name": "a" * 253},
        {"namespace": "n" * 63},
        {"api_version": "v1"},
        {"api_version": "x.example.com/v1alpha2", "kind": "LeaderWorkerSet"},
    ],
)
def test_a_name_that_kubernetes_takes_is_taken(fields: dict[str, str]) -> None:
    assert len(targets_of(one_variant(1, **fields))) == 1


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_an_object_that_counts_pods_cannot_count_replicas_of_several(kind: str) -> None:
    problem = a_problem(candidates=(a_candidate(pods_per_replica=2, object=an_object(kind=kind)),))
    with pytest.raises(ConfigurationError, match=f"{kind}, which counts pods.*LeaderWorkerSet"):
        targets_of(problem)


def test_two_variants_cannot_share_an_object() -> None:
    with pytest.raises(ConfigurationError, match="the object of chat/a once more"):
        targets_of(two_variants({}, {}))


@pytest.mark.parametrize("scaler", ["hpa", "keda", "variantautoscaling"])
def test_two_objects_cannot_share_a_scaler(scaler: str) -> None:
    shared = {"scaler": scaler, "scaler_name": "shared"}
    with pytest.raises(ConfigurationError, match="'shared', which scales Deployment 'a'"):
        targets_of(two_variants({"name": "a"} | shared, {"name": "b"} | shared))


@pytest.mark.parametrize(
    ("first", "second", "pool"),
    [
        ({"name": "a", "scaler": "hpa"}, {"name": "b", "scaler": "keda"}, {}),
        ({"scaler": "hpa"}, {"scaler": "hpa", "namespace": "other"}, {}),
        ({"scaler": "hpa"}, {"scaler": "hpa"}, {"cluster": "us"}),
        ({"scaler": "hpa"}, {"scaler": "hpa", "kind": "StatefulSet", "scaler_name": "other"}, {}),
    ],
)
def test_objects_that_differ_may_be_named_alike(
    first: dict[str, Any], second: dict[str, Any], pool: dict[str, Any]
) -> None:
    assert len(targets_of(two_variants(first, second, **pool))) == 2

"""Whose engines, power and queues are: pods, labels, pools; what two might claim counts for none."""

from __future__ import annotations

from typing import Any

import pytest

from models.observation import EngineObservation, VariantObservation
from models.variant import KubernetesObject
from planner.control.collectors.assembling import assemble
from planner.control.collectors.sightings import Place, RouterRow, Row, Sightings
from planner.control.protocols import MetricsReading

FULL = {
    "running": 1.0, "waiting": 0.0, "waiting_now": 0.0, "kv_usage": 0.1, "kv_now": 0.1, "kv_tokens": 1e4,
    "input_tokens": 10.0, "output_tokens": 5.0, "ttft_s": 0.1, "itl_s": 0.01, "token_rate": 5.0, "request_rps": 1.0,
}  # fmt: skip


def a_variant(name: str = "v", *pods: str, namespace: str = "a", **more: Any) -> VariantObservation:
    kind = more.pop("kind", "Deployment")
    fields = {"model": "m", "target": KubernetesObject(name=name, kind=kind)} | more
    return VariantObservation(name=name, namespace=namespace, pods=pods, **fields)


def seen(*rows: tuple[Place, Row], **more: Any) -> Sightings:
    return Sightings(rows=dict(rows), **more)


def an_engine(pod: str, namespace: str = "a", **more: Any) -> tuple[Place, Row]:
    place = Place(namespace, pod, more.pop("instance", "10.0.0.1:8000"), more.pop("rank", ""))
    fields = {"model": "m", "engine": "vllm", "age_s": 1.0} | more
    fields["values"] = FULL | fields.pop("values", {})
    return place, Row(**fields)


def only(reading: MetricsReading) -> EngineObservation:
    (engine,) = reading.engines
    return engine


@pytest.mark.parametrize(
    ("engine", "variants", "owner"),
    [
        (an_engine("p"), [a_variant("v", "p")], "v"),
        (an_engine("p"), [a_variant("v", "p"), a_variant("w", "q")], "v"),
        (an_engine("p", variant="w"), [a_variant("v", "p"), a_variant("w", "q")], "w"),
        (an_engine("p", variant="gone"), [a_variant("v", "p")], "v"),
        (an_engine("p"), [a_variant("v", "p", namespace="b")], ""),
        (an_engine("p", ""), [a_variant("v", "p", namespace="b")], "v"),
        (an_engine("p", ""), [a_variant("v", "p", namespace="b"), a_variant("w", "p", namespace="c")], ""),
        (an_engine(""), [a_variant("v")], "v"),
        (an_engine(""), [a_variant("v"), a_variant("w")], ""),
        (an_engine("stranger"), [a_variant("v")], ""),
    ],
    ids=["pod", "of-two", "label-first", "label-of-nobody", "other-namespace", "no-namespace", "same-pod-in-two",
         "only-one-of-the-model", "two-of-the-model", "pod-of-nobody"],
)  # fmt: skip
def test_an_engine_belongs_to_whom_its_label_pod_or_model_says(
    engine: tuple[Place, Row], variants: list[VariantObservation], owner: str
) -> None:
    reading = assemble(seen(engine), variants, 1e9)
    assert {each.variant for each in reading.engines if each.age_s is not None} == {owner}


def test_equal_pods_of_two_namespaces_are_two_engines_with_names_of_their_own() -> None:
    reading = assemble(seen(an_engine("vllm-0", "a"), an_engine("vllm-0", "b")), (), 1e9)
    assert [each.instance for each in reading.engines] == ["a/vllm-0:8000", "b/vllm-0:8000"]


def test_ranks_share_what_their_pod_says_as_a_whole() -> None:
    whole = Place("a", "p", "10.0.0.1:8000")
    ranks = [an_engine("p", rank=rank) for rank in ("0", "1")]
    for _, row in ranks:
        del row.values["token_rate"], row.values["ttft_s"]
    sightings = seen(*ranks, extras={whole: {"token_rate": 10.0, "ttft_s": 0.3, "started_s": 5.0}})
    sightings.power_w["", "a", "p"] = 700.0
    engines = assemble(sightings, (), 1e9).engines
    assert [each.instance for each in engines] == ["p:8000", "p:8000/1"]
    assert [(each.token_rate, each.ttft_s, each.power_w) for each in engines] == [(5.0, 0.3, 350.0)] * 2


def test_a_label_engine_that_is_no_number_is_no_rank() -> None:
    assert only(assemble(seen(an_engine("p", rank="vllm")), (), 1e9)).instance == "p:8000"


@pytest.mark.parametrize(
    ("pod", "kind", "labels", "kept"),
    [
        ("g-0", "LeaderWorkerSet", {}, True),
        ("g-0-1", "LeaderWorkerSet", {}, False),
        ("g-0-1", "StatefulSet", {}, True),
        ("h-0-1", "LeaderWorkerSet", {}, True),
        ("p", "Deployment", {"worker": "2"}, False),
        ("p", "Deployment", {"worker": "0"}, True),
    ],
)
def test_workers_of_groups_are_no_engines(pod: str, kind: str, labels: dict[str, str], kept: bool) -> None:
    reading = assemble(seen(an_engine(pod, **labels)), [a_variant("g", kind=kind)], 1e9)
    assert bool(reading.engines) is kept


def test_maxima_of_the_process_before_are_forgotten() -> None:
    row = {"started_s": 1e9 - 20, "kv_usage": 0.9, "kv_now": 0.1, "waiting": 8.0, "waiting_now": 0.0}
    engine = only(assemble(seen(an_engine("p", values=row)), (), 1e9))
    assert (engine.kv_usage, engine.waiting) == (0.1, 0.0)
    engine = only(assemble(seen(an_engine("p", values=row | {"started_s": 1e9 - 90})), (), 1e9))
    assert (engine.kv_usage, engine.waiting) == (0.9, 8.0)


def test_what_is_in_engines_is_unknown_where_one_of_them_does_not_say() -> None:
    variant = a_variant("v", "p", "q")
    both = assemble(seen(an_engine("p"), an_engine("q")), [variant], 1e9)
    assert both.traffic[0].in_flight == 2.0
    one = assemble(seen(an_engine("p")), [variant], 1e9)
    assert one.traffic[0].in_flight is None


@pytest.mark.parametrize("cluster", ["", "eu"])
def test_series_need_not_name_the_only_cluster(cluster: str) -> None:
    variant = a_variant("v", "p", "q", cluster="eu")
    place, row = an_engine("p")
    sightings = seen(
        (place._replace(cluster=cluster), row), routers=[RouterRow(cluster, "a", "", "m", {"queued": 1.0})]
    )
    reading = assemble(sightings, [variant], 1e9)
    assert [(each.instance, each.cluster, each.variant) for each in reading.engines] == [
        ("p:8000", "eu", "v"), ("q", "eu", "v")
    ]  # fmt: skip
    assert [(each.cluster, each.queued) for each in reading.traffic] == [("eu", 1.0)]


def test_series_of_several_clusters_must_name_theirs() -> None:
    variants = [a_variant("v", "p", cluster="eu"), a_variant("v", "p", cluster="us")]
    place, row = an_engine("p")
    named = assemble(seen((place._replace(cluster="us"), row)), variants, 1e9)
    assert [(each.cluster, each.variant) for each in named.engines if each.age_s is not None] == [("us", "v")]
    nameless = assemble(seen((place, row)), variants, 1e9)
    assert [each.variant for each in nameless.engines if each.age_s is not None] == [""]


def a_queue(namespace: str = "", **more: Any) -> RouterRow:
    return RouterRow("", namespace, more.pop("pool", ""), "m", {"queued": 4.0} | more)


@pytest.mark.parametrize(
    ("queues", "variants", "pools", "queued"),
    [
        ([a_queue("a")], [a_variant()], {}, {"a": 4.0}),
        ([a_queue()], [a_variant()], {}, {"a": 4.0}),
        ([a_queue()], [a_variant(), a_variant(namespace="b")], {}, {"a": None, "b": None}),
        ([a_queue(pool="p")], [a_variant(), a_variant(namespace="b")], {"p": "b"}, {"a": None, "b": 4.0}),
        ([a_queue("a"), a_queue("b")], [a_variant(), a_variant(namespace="b")], {}, {"a": 4.0, "b": 4.0}),
        ([a_queue("a"), a_queue("a")], [a_variant()], {}, {"a": 8.0}),
    ],
    ids=["its-namespace", "the-only-one", "either-of-two", "by-pool", "each-its-own", "two-routers"],
)
def test_a_queue_counts_once_where_it_belongs(
    queues: list[RouterRow],
    variants: list[VariantObservation],
    pools: dict[str, str],
    queued: dict[str, float | None],
) -> None:
    rows = [an_engine(f"p-{each.namespace}", each.namespace) for each in variants]
    reading = assemble(seen(*rows, routers=list(queues)), variants, 1e9, pools=pools)
    assert {each.namespace: each.queued for each in reading.traffic} == queued
    homeless = [each for each in reading.findings if "counted nowhere" in each.problem]
    assert bool(homeless) is (None in queued.values() and not pools)


def test_arrivals_are_attempts_or_requests_and_never_both() -> None:
    both = a_queue("a", arrival_rps=3.0, requested_rps=5.0, arrived=100.0, attempted=90.0)
    (traffic,) = assemble(seen(routers=[both]), (), 1e9).traffic
    assert (traffic.arrival_rps, traffic.arrived) == (3.0, 100.0)
    (traffic,) = assemble(seen(routers=[a_queue("a", requested_rps=5.0, attempted=90.0)]), (), 1e9).traffic
    assert (traffic.arrival_rps, traffic.arrived) == (5.0, 90.0)


def test_a_served_name_stands_for_the_model_of_its_variant() -> None:
    variant = a_variant("v", "p", model="org/m")
    reading = assemble(
        seen(an_engine("p"), routers=[a_queue("a")], completed={("", "a", "m"): 7.0}), [variant], 1e9
    )
    (traffic,) = reading.traffic
    assert (traffic.model, traffic.queued, traffic.completed, traffic.in_flight) == ("org/m", 4.0, 7.0, 1.0)


def test_findings_name_the_series_that_is_missing_and_at_how_many_engines() -> None:
    place, row = an_engine("p")
    del row.values["kv_usage"]
    findings = assemble(seen((place, row), an_engine("q")), (), 1e9).findings
    assert [(each.subject, each.problem) for each in findings] == [
        ("vllm:kv_cache_usage_perc", "missing at p:8000 of 2 engines, so kv_usage is unknown there")
    ]

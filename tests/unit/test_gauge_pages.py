"""The page of series is what prometheus_client writes, byte by byte."""

from __future__ import annotations

import math

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from planner.control.actuators.pages import page_of

VALUES = (0, 3, 2.5, 1e6, 1234567.0, 1e21, -4.0, 1e-9, math.inf, -math.inf, math.nan)
TEXTS = ("", "plain", 'quo"ted', "back\\slash", "two\nlines", "ünïcode 界", '\\"\n')


class Once:
    def __init__(self, families: list[Metric]) -> None:
        self.families = families

    def collect(self) -> list[Metric]:
        return self.families


def theirs(families: list[Metric]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once(families))
    return generate_latest(registry)


def a_gauge(*labels: str) -> Metric:
    family = GaugeMetricFamily("wva_desired_replicas", 'A "text" with \\ and\na line.', labels=labels)
    for value in VALUES:
        for text in TEXTS:
            family.add_metric([f"{text}{place}" for place in range(len(labels))], value)
    return family


def a_counter() -> Metric:
    family = CounterMetricFamily("wva_replica_scaling", "Changes.", labels=("namespace", "direction"))
    for text in TEXTS:
        family.add_metric([text, "up"], 7)
    return family


@pytest.mark.parametrize(
    "families",
    [
        [],
        [a_gauge("variant_name", "namespace", "accelerator_type")],
        [a_gauge()],
        [a_gauge("z", "a", "m"), a_counter(), a_gauge("only")],
        [GaugeMetricFamily("empty", "No sample.", labels=("a",))],
    ],
    ids=["nothing", "labels", "no labels", "several", "no samples"],
)
def test_the_page_is_that_of_prometheus_client(families: list[Metric]) -> None:
    assert page_of(families) == theirs(families)

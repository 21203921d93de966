"""Whatever engines, routers, clusters and ConfigMaps say, the loop ends its cycle, and never scales to zero by accident."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.controller import ControllerSettings
from models.observation import EngineObservation, TrafficObservation
from planner.clock import FakeClock
from planner.control.cluster import Api, Limits, MemoryCluster
from planner.control.protocols import MetricsReading
from planner.control.running.controller import Controller
from planner.control.running.live import LiveConfiguration
from tests.control.controller_builders import START, Served, Told, a_controller, led, settings_layer
from tests.control.test_run_configuration import a_config_map
from tests.control.test_run_cycles import SCALES

_FIGURES = st.none() | st.sampled_from([0.0, 1e-300, 1e15, 1e9, 7.5]) | st.floats(0, 1e15, allow_nan=False)
_SHARES = st.none() | st.floats(0, 1)
_ENGINE = st.fixed_dictionaries(
    {
        "age_s": st.none() | st.floats(0, 1e9),
        "running": _FIGURES,
        "waiting": _FIGURES,
        "kv_usage": _SHARES,
        "kv_now": _SHARES,
        "kv_tokens": _FIGURES,
        "input_tokens": _FIGURES,
        "output_tokens": _FIGURES,
        "hit_share": _SHARES,
        "itl_s": st.none() | st.floats(0, 1e9),
        "token_rate": _FIGURES,
        "request_rps": st.none() | st.floats(0, 1e7),
    }
)
_TRAFFIC = st.fixed_dictionaries(
    {
        "queued": _FIGURES,
        "queued_bytes": _FIGURES,
        "arrived": _FIGURES,
        "completed": _FIGURES,
        "in_flight": _FIGURES,
        "arrival_rps": st.none() | st.floats(0, 1e7),
    }
)


class Absurd(Told):
    """A source that says what Hypothesis thinks of."""

    def __init__(self) -> None:
        super().__init__()
        self.engines: list[dict[str, Any]] = []
        self.traffic: list[dict[str, Any]] = []
        self.complete = True

    def read(self, variants: Any, now_s: float) -> MetricsReading:
        names = [(one, pod) for one in variants for pod in one.pods]
        engines = tuple(
            EngineObservation(
                instance=f"{pod}:8000",
                namespace=one.namespace,
                pod=pod,
                variant=one.name,
                model=one.model,
                **said,
            )
            for (one, pod), said in zip(names, self.engines, strict=False)
        )
        traffic = tuple(
            TrafficObservation(model="llama-8b", namespace="prod", **said) for said in self.traffic
        )
        return MetricsReading(engines=engines, traffic=traffic, complete=self.complete)


def a_loop(text: str = "") -> tuple[Controller, Absurd, Served]:
    source, cluster = Absurd(), Served()
    return led(a_controller(cluster, source, f"{SCALES}\nlease: {{enabled: false}}\n{text}")), source, cluster


_LOOPS = {policy: a_loop(f"rules: {{policy: {policy}}}") for policy in ("wva", "wva-v2")}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    policy=st.sampled_from(sorted(_LOOPS)),
    engines=st.lists(_ENGINE, max_size=3),
    traffic=st.lists(_TRAFFIC, max_size=2),
    complete=st.booleans(),
)
def test_absurd_metrics_end_in_a_decision_within_the_bounds(
    policy: str, engines: list[dict[str, Any]], traffic: list[dict[str, Any]], complete: bool
) -> None:
    controller, source, _ = _LOOPS[policy]
    source.engines, source.traffic, source.complete = engines, traffic, complete
    record = controller.cycle(("timer",))
    assert record.kind != "failed", record.findings
    (row,) = controller.loop.rows.values()
    assert row.desired is not None
    assert 1 <= row.desired <= 10
    assert complete or row.desired >= (row.before or 0)
    record.canonical_json()
    controller.metrics(None).decode()


_YAML = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=12,
)
_NAMES = st.sampled_from([*sorted(ControllerSettings.model_fields), "unknown"])


@settings(max_examples=100, deadline=None)
@given(said=st.dictionaries(_NAMES, _YAML, max_size=4) | _YAML, torn=st.integers(0, 400))
def test_whatever_stands_in_a_config_map_the_last_good_settings_count(said: Any, torn: int) -> None:
    import yaml

    try:
        text = yaml.safe_dump(said, allow_unicode=True)
    except yaml.YAMLError:
        text = repr(said)
    cluster = MemoryCluster([a_config_map("paused: true")])
    api = Api(cluster, FakeClock(START), None, Limits(tries=1))
    live = LiveConfiguration([settings_layer("{live: {}, cycle_s: 20}")], api)
    live.refresh()
    for edit in (text, text[:torn]):
        cluster._keep(("", "configmaps", "default", "fleetplan-controller"), a_config_map(edit))
        before, refused = live.settings, live.refused
        findings = live.refresh()
        assert live.settings.cycle_s == 20.0
        assert live.refused - refused <= len(findings) <= 1
        if findings:
            assert live.refused
            assert live.settings == before

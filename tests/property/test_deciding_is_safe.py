"""Whatever is observed, however hostile: a cycle never raises, never goes to zero by accident, and holds what it cannot judge."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from models.controller import ControllerSettings
from models.observation import (
    EngineObservation,
    Observation,
    QuotaObservation,
    TrafficObservation,
    VariantObservation,
)
from models.variant import Role
from tests.observed_fleets import Cycles, a_pool, a_variant, engines_of, observed, settings

NUMBERS = st.one_of(st.none(), st.sampled_from([0.0, 1e-300, 1.0, 7.5, 1e3, 1e15]), st.floats(0, 1e6))
SHARES = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 0.79, 0.8, 1.0]), st.floats(0, 1))
NAMES = st.sampled_from(["llm", "meta-llama/Llama-3.1-8B", "päß wörd\n#{}", "x" * 250, "a b"])


@st.composite
def variants(draw: st.DrawFn) -> list[VariantObservation]:
    found = []
    for place in range(draw(st.integers(1, 4))):
        ready = draw(st.integers(0, 4))
        least = draw(st.integers(0, 3))
        found.append(
            a_variant(
                f"v{place}",
                ready=ready,
                wanted=draw(st.one_of(st.none(), st.integers(0, 6))),
                pending=draw(st.integers(0, 3)),
                model=draw(NAMES),
                role=draw(st.sampled_from(list(Role))),
                cost=draw(st.sampled_from([0.0, 1.0, 5.0, 1e12, 1e300])),
                gpus=draw(st.sampled_from([1, 2, 8, 10**6, 10**14])),
                accelerator=draw(st.sampled_from(["H100", "", "nobody-knows", "L4"])),
                min_replicas=least,
                max_replicas=draw(st.one_of(st.none(), st.integers(0, 9))),
                paused=draw(st.booleans()),
            )
        )
    return found


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    fleet = draw(variants())
    engines: list[EngineObservation] = []
    for variant in fleet:
        for engine in engines_of(variant, (draw(SHARES), draw(NUMBERS))):
            fields = {name: draw(NUMBERS) for name in ("kv_tokens", "token_rate", "running", "input_tokens")}
            age_s = draw(st.sampled_from([None, 1.0, 90.0, 1e6]))
            engines.append(engine.model_copy(update={**fields, "age_s": age_s}))
    traffic = [
        TrafficObservation(
            model=model,
            namespace="prod",
            arrival_rps=draw(st.one_of(st.none(), st.floats(0, 1e7))),
            queued=draw(NUMBERS),
            queued_bytes=draw(NUMBERS),
            in_flight=draw(NUMBERS),
        )
        for model in {one.model for one in fleet}
        if draw(st.booleans())
    ]
    quotas = [
        QuotaObservation(
            namespace="prod", resource="requests.nvidia.com/gpu", hard=draw(st.integers(0, 9)), used=3
        )
    ]
    pools = draw(
        st.sampled_from([[], [a_pool(nodes=1)], [a_pool(), a_pool(accelerator="L4", cordoned=True)]])
    )
    return observed(
        fleet, engines, traffic=traffic, pools=pools, quotas=quotas if draw(st.booleans()) else [], complete=draw(st.booleans())
    )  # fmt: skip


def _rules(policy: str) -> ControllerSettings:
    return settings(policy=policy, scale_to_zero=True, retention_s=20.0, step_up=3, dead_band=0.05)


@pytest.mark.parametrize("policy", ["wva-v1", "wva-v2", "planner"])
@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_cycle_stands_everything(policy: str, data: st.DataObject) -> None:
    cycles = Cycles(_rules(policy))
    for _ in range(2):
        seen = data.draw(observations())
        cycles(seen)
        assert cycles.last is not None
        told = str([one.problem for one in cycles.last.findings])
        assert "failed" not in told
        assert "no plan could be made" not in told
        _judge(seen, cycles)
        cycles.restart()


def _judge(seen: Observation, cycles: Cycles) -> None:
    assert cycles.last is not None
    assert len(cycles.last.decisions) == len(seen.variants)
    for one in cycles.last.decisions:
        variant, wanted = one.variant, one.variant.wanted
        assert one.desired >= 0
        assert one.message
        if wanted is None:
            continue
        shrinks = one.desired < wanted
        for holds, why in _forbidden(seen, variant):
            assert not (shrinks and holds), why
        if variant.max_replicas is not None and one.desired > wanted:
            assert one.desired <= max(variant.max_replicas, variant.min_replicas), "above its maximum"
        assert len(one.victims) <= max(0, variant.ready - one.desired)


def _forbidden(seen: Observation, variant: VariantObservation) -> list[tuple[bool, str]]:
    mine: Callable[[EngineObservation], bool] = lambda engine: engine.variant == variant.name  # noqa: E731
    dim = any(engine.age_s is None or engine.age_s >= 60 for engine in seen.engines if mine(engine))
    return [
        (not seen.complete, "scaled in on an incomplete observation"),
        (variant.paused, "scaled in though paused"),
        (variant.ready > 0 and dim, "scaled in on old or missing metrics"),
    ]

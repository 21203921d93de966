"""Whatever a configuration of an endpoint picker looks like: it is left alone, or the way back leads where it began."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.control.actuators.epp_options import CapSettings
from planner.control.actuators.epp_text import NotUnderstoodError, at_cap, put_back

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(0, 1), st.text("ab:-{[", max_size=4)
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
THRESHOLDS = st.dictionaries(
    st.sampled_from(["queueDepthThreshold", "kvCacheUtilThreshold", "headroom"]), SCALARS
)
PLUGIN = st.fixed_dictionaries(
    {"type": st.sampled_from(["utilization-detector", "concurrency-detector", "queue-scorer"])},
    optional={
        "name": st.sampled_from(["d", "utilization-detector"]),
        "parameters": st.one_of(THRESHOLDS, ANYTHING),
    },
)
REFERENCE = st.fixed_dictionaries(
    {}, optional={"pluginRef": st.sampled_from(["d", "utilization-detector", "x"])}
)
BAND = st.one_of(st.fixed_dictionaries({}, optional={"maxRequests": SCALARS, "priority": SCALARS}), ANYTHING)
FLOW = st.fixed_dictionaries(
    {},
    optional={
        "maxRequests": SCALARS, "maxBytes": SCALARS, "defaultRequestTTL": SCALARS, "saturationDetector": st.one_of(REFERENCE, ANYTHING),
        "defaultNegativePriorityBand": BAND,
    },
)  # fmt: skip
CONFIGURATIONS = st.fixed_dictionaries(
    {"kind": st.just("EndpointPickerConfig")},
    optional={
        "apiVersion": st.sampled_from(["llm-d.ai/v1alpha1", "inference.networking.x-k8s.io/v1alpha1"]),
        "plugins": st.one_of(st.lists(PLUGIN, max_size=3), ANYTHING),
        "featureGates": st.one_of(st.lists(st.sampled_from(["flowControl", "flowControl=false", "x"]), max_size=3), ANYTHING),
        "flowControl": st.one_of(FLOW, ANYTHING),
        "saturationDetector": st.one_of(REFERENCE, THRESHOLDS, ANYTHING),
    },
)  # fmt: skip
CAPS = st.builds(
    CapSettings,
    flow_control=st.booleans(),
    max_requests=st.one_of(st.none(), st.integers(1, 9)),
    max_bytes=st.one_of(st.none(), st.just("1Gi")),
    request_ttl_s=st.one_of(st.none(), st.just(2.5)),
    negative_requests=st.one_of(st.none(), st.integers(1, 3)),
    queue_depth=st.one_of(st.none(), st.integers(1, 9)),
    kv_usage=st.one_of(st.none(), st.just(0.8)),
)


def pruned(value: Any) -> Any:
    """Without what says nothing: an empty mapping or list, or nothing, reads as if it were absent."""
    if isinstance(value, dict):
        kept = {key: pruned(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, {}, [])}
    return [pruned(each) for each in value] if isinstance(value, list) else value


@settings(max_examples=300, deadline=None)
@given(CONFIGURATIONS, CAPS)
def test_the_way_back_leads_where_it_began(configuration: dict[str, Any], cap: CapSettings) -> None:
    text = yaml.safe_dump(configuration)
    try:
        changed, edits = at_cap(text, cap)
    except NotUnderstoodError:
        return
    assert at_cap(changed, cap)[1] == ()
    back, kept = put_back(changed, edits)
    assert kept == ()
    assert pruned(yaml.safe_load(back)) == pruned(configuration)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200).filter(lambda text: "EndpointPickerConfig" not in text), CAPS)
def test_no_text_breaks_it(text: str, cap: CapSettings) -> None:
    with pytest.raises(NotUnderstoodError) as raised:
        at_cap(text, cap)
    assert len(str(raised.value)) < 200

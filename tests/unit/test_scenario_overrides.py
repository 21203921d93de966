"""``PATH=VALUE`` changes a document before it is checked."""

from __future__ import annotations

from typing import Any, Final

import pytest

from planner.errors import ConfigurationError
from planner.scenario import parse_scenario

TEXT: Final = """\
services:
  chat:
    llm: Llama-3.1-8B
    traffic: {rate: 12 req/s, input: 4096, output: 1024}
    variants:
      v1.5: {accelerator: H100, tp: 2, cost: 2.5 $/h}
pools:
  h100: {accelerator: H100, nodes: {count: 4, gpus: 8}}
  two: {accelerator: H100, nodes: [{id: a, gpus: 8}, {id: b, gpus: 4}]}
  three: {accelerator: H100, nodes: {x: {gpus: 8}, y: {gpus: 4}}}
"""


def value_after(override: str, path: str) -> Any:
    value: Any = parse_scenario(TEXT, overrides=[override]).model_dump(mode="json")
    for step in path.split("/"):
        value = value[int(step)] if step.isdecimal() else value[step]
    return value


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("services.chat.traffic.rate=20 req/s", "services/0/buckets/0/arrival_rps", 20.0),
        ("services.chat.traffic.rate=+3", "services/0/buckets/0/arrival_rps", 15.0),
        ("services.chat.traffic.rate=+3 req/s", "services/0/buckets/0/arrival_rps", 15.0),
        ("services.chat.traffic.rate=*1.5", "services/0/buckets/0/arrival_rps", 18.0),
        ("services.chat.buckets.arrival_rps=7", "services/0/buckets/0/arrival_rps", 7.0),
        (" services.chat.traffic.rate = 7 ", "services/0/buckets/0/arrival_rps", 7.0),
        ("services.chat.slo.ttft=2 s", "services/0/slo/ttft_s", 2.0),
        ("services.chat.headroom=20 %", "services/0/headroom/relative", 0.2),
        ("services.chat.variants.v1.5.tp=*2", "services/0/variants/0/parallelism/tp", 4),
        ("services.chat.variants.v1.5.cost=3 $/h", "services/0/variants/0/cost/usd_per_h", 3.0),
        ("services.chat.variants.v1.5.cost=*2", "services/0/variants/0/cost/usd_per_h", 5.0),
        ("services.chat.variants={w: {accelerator: H100}}", "services/0/variants/0/id", "w"),
        ("services.chat.priority=-2", "services/0/priority", -2),
        ("services.chat.priority=+2", "services/0/priority", 2),
        ("pools.h100.nodes.count=+2", "pools/0/nodes/0/count", 6),
        ("pools.h100.nodes.count=0", "pools/0/nodes/0/count", 0),
        ("limits.quotas={x: {gpus: 3}}", "limits/quotas/0/gpus", 3),
        ("pools.two.nodes.b.gpus=6", "pools/1/nodes/1/gpus", 6),
        ("pools.two.nodes[0].gpus=6", "pools/1/nodes/0/gpus", 6),
        ("pools.three.nodes.y.gpus=6", "pools/2/nodes/1/gpus", 6),
        ("limits.power.cap=40 kW", "limits/power/0/cap_w", 40000.0),
        ("limits.spend=120 $/h", "limits/spend_usd_per_h", 120.0),
        ("mode=unconstrained", "mode", "unconstrained"),
        ("name=no", "name", "no"),
        ("defaults.service.priority=4", "services/0/priority", 4),
    ],
)
def test_an_override_changes_one_value(override: str, path: str, value: object) -> None:
    assert value_after(override, path) == value


SHORT: Final = """\
services:
  chat:
    llm: Llama-3.1-8B
    traffic: {rate: 12 req/s, input: 4096, output: 1024}
    headroom: 20 %
    survive: 100 %
    variants:
      a: {accelerator: H100, parallelism: tp8-pp2, quantization: fp8, cost: 2.5 $/h, capacity: 3 req/s, object: pods}
      b: {accelerator: H100, tp: 2, cost: 5 $/h}
pools:
  h100: {accelerator: H100, nodes: 16, offering: spot}
current: {chat/a@h100: 1}
limits: {power: 40 kW}
objective: [unserved, cost]
"""


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("services.chat.survive.share=80 %", "services/0/survive/share", 0.8),
        ("services.chat.survive.share=+-30 %", "services/0/survive/share", 0.7),
        ("services.chat.survive.domains=h100", "services/0/survive", {"share": 1.0, "failure_domains": ["h100"]}),
        ("services.chat.headroom.relative=30 %", "services/0/headroom/relative", 0.3),
        ("services.chat.variants.a.parallelism.pp=1", "services/0/variants/0/parallelism",
         {"tp": 8, "pp": 1, "dp": 1, "ep": 1}),
        ("services.chat.variants.a.tp=4", "services/0/variants/0/parallelism", {"tp": 4, "pp": 2, "dp": 1, "ep": 1}),
        ("services.chat.variants.b.parallelism.tp=4", "services/0/variants/1/parallelism/tp", 4),
        ("services.chat.variants.a.weights=bf16", "services/0/variants/0/quantization/weights", "bf16"),
        ("services.chat.variants.a.quantization.kv_cache=fp8", "services/0/variants/0/quantization/kv_cache", "fp8"),
        ("services.chat.variants.a.cost.price=3 $/h", "services/0/variants/0/cost/usd_per_h", 3.0),
        ("services.chat.variants.a.cost.usd_per_h=*2", "services/0/variants/0/cost/usd_per_h", 5.0),
        ("services.chat.variants.a.capacity.surge=4", "services/0/variants/0/capacity/surge_rps", 4.0),
        ("services.chat.variants.a.object.kind=StatefulSet", "services/0/variants/0/object/kind", "StatefulSet"),
        ("pools.h100.nodes.count=3", "pools/0/nodes/0/count", 3),
        ("pools.h100.nodes.gpus=*2", "pools/0/nodes/0/gpus", 32),
        ("pools.h100.price=2 $/h", "pools/0/offering", {"market": "spot", "usd_per_h": 2.0}),
        ("limits.power.cap=50 kW", "limits/power/0/cap_w", 50000.0),
        ("current.chat/a@h100.pending=2", "fleet/running/0/pending", 2),
        ("current.chat/a@h100=+-1", "fleet/running/0/replicas", 0),
        ("objective.horizon=2 h", "objective/horizon_h", 2.0),
    ],
)  # fmt: skip
def test_an_override_into_a_short_form_writes_it_out(override: str, path: str, value: object) -> None:
    found: Any = parse_scenario(SHORT, overrides=[override]).model_dump(mode="json")
    for step in path.split("/"):
        found = found[int(step)] if step.isdecimal() else found[step]
    if isinstance(value, dict):
        found = {key: found[key] for key in value}
    assert found == value


def test_overrides_apply_in_turn() -> None:
    overrides = ["pools.h100.nodes.count=2", "pools.h100.nodes.count=*3", "pools.h100.nodes.count=+1"]
    assert parse_scenario(TEXT, overrides=overrides).pools[0].nodes[0].count == 7


@pytest.mark.parametrize(
    ("override", "found"),
    [
        ("services.chta.priority=3", "--set: services.chta.priority: found unknown step 'chta'; allowed: chat; did you mean 'chat'?"),
        ("services.chat.variants.v2.tp=3", "--set: services.chat.variants.v2.tp: found unknown step 'v2'; allowed: v1.5"),
        ("pools.two.nodes.c.gpus=6", "--set: pools.two.nodes.c.gpus: found unknown step 'c'; allowed: a, b, [0], [1]"),
        ("pools.three.nodes.gpus=6", "--set: pools.three.nodes.gpus: found unknown step 'gpus'; allowed: x, y"),
        ("mode.x=6", "--set: mode.x: found unknown step 'x'; allowed: nothing below"),
        ("pools.h100.accelerator.x=6", "--set: pools.h100.accelerator.x: found 'H100' at pools.h100.accelerator; "
         "allowed: to set pools.h100.accelerator as a whole"),
        ("pools.h100.accelerator=+1", "--set: pools.h100.accelerator: found 'H100' to change; allowed: a number there, and +NUMBER or *NUMBER given"),
        ("services.chat.slo.ttft=*2", "--set: services.chat.slo.ttft: found nothing to change; allowed: a number there, and +NUMBER or *NUMBER given"),
        ("services.chat.traffic.rate=*x", "--set: services.chat.traffic.rate: found '*x'; allowed: a number there, and +NUMBER or *NUMBER given"),
        ("services.chat.traffic.rate=+3 W", "--set: services.chat.traffic.rate: found unit 'W'; allowed: 'req/s', as it is there"),
        ("services.chat.traffic.rate=*3 W", "--set: services.chat.traffic.rate: found unit 'W'; allowed: a bare factor"),
        ("services.chat.traffic.rate=-3", "--set: services.chat.traffic.rate: found -3; allowed: at least 0"),
        ("services.[0].priority=2", "--set: services.[0].priority: found unknown step '[0]'; allowed: chat"),
        ("limits.quotas.x.gpus=2", "--set: limits.quotas.x.gpus: found unknown quota 'x'; "
         "allowed: nothing below, there is no quota yet; limits.quotas={NAME: {...}} makes one"),
        ("limits.power.hall.cap=2", "--set: limits.power.hall.cap: found unknown power domain 'hall'; "
         "allowed: nothing below, there is no power domain yet; limits.power={NAME: {...}} makes one"),
        ("services.chat.traffic.rate={", "--set: services.chat.traffic.rate: found no YAML: did not find expected node content (column 1)"),
        ("services.chat", "--set: found 'services.chat'; allowed: PATH=VALUE"),
        ("=3", "--set: found '=3'; allowed: PATH=VALUE"),
    ],
)  # fmt: skip
def test_an_override_that_goes_nowhere_says_so(override: str, found: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_scenario(TEXT, overrides=[override])
    assert [str(finding) for finding in caught.value.findings] == [found]


def test_a_misspelled_field_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown step 'sol'.*did you mean 'slo'"):
        parse_scenario(TEXT, overrides=["services.chat.sol.ttft=3"])

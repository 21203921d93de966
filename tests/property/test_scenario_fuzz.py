"""Whatever stands in a scenario file, the answer is a scenario or one ConfigurationError."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.errors import ConfigurationError
from planner.scenario import dump_scenario, parse_scenario

GOOD: Final = """\
name: everything
defaults: {service: {slo: {ttft: 3 s}}, variant: {startup: 60}, pool: {region: eu}}
services:
  chat:
    llm: Llama-3.1-70B
    traffic: {short: {rate: 12 req/s, input: 512, output: 128}, long: {rate: 1, input: 8192, output: 10}}
    slo: {itl: 50 ms, at: p95}
    headroom: 20 %
    survive: {share: 80 %, domains: [a100]}
    places: {allow_regions: [eu], deny_pools: []}
    min: 1
    max: 9
    ratio: {min: 0.5}
    variants:
      pre: {accelerator: A100, tp: 4, role: prefill, cost: 1.0 $/h, capacity: {rated: 1}}
      dec: {accelerator: H100, parallelism: tp2, quantization: fp8, role: decode, cost: 2.5 $/h, pools: [h100]}
  night:
    kind: batch
    llm: Llama-3.1-70B
    traffic: {rate: 1, input: 10, output: 10}
    shares_replicas_of: chat
pools:
  a100: {accelerator: A100, nodes: {count: 4, gpus: 8}, price: 2 $/h, power_domain: row}
  h100: {accelerator: H100, nodes: [{id: n, gpus: 8, foreign: 1}], growth: {gpus: 8, max: 2}}
current: {chat/dec@h100: {replicas: 1, details: [{nodes: n, kv: 70 %, queue: 1}]}}
limits: {power: {row: {cap: 40 kW}}, quotas: {q: {gpus: 9, accelerator: H100}}, spend: 120 $/h}
objective: [unserved, cost]
accelerators: {mine: {vendor: me, memory: 1 GiB}}
llms: {ours: {parameters: 8, layers: 2, attention: {kv_lora_rank: 4, rope_head_dim: 2}}}
"""
DOCUMENT: Final = yaml.safe_load(GOOD)
WORDS: Final = [
    "",
    "no",
    "1e3",
    "a100",
    "chat",
    "p95",
    "-1",
    "20 %",
    "3 req/s",
    "2 $/h",
    "nan",
    "id",
    "tp4",
    "*",
    "0",
    "9" * 400,
    "é",
    "a/b@c",
]
FEW: Final = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(WORDS), st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything below the top."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in steps for found in [(*path, key), *places(item, (*path, key))]]


PLACES: Final = places(DOCUMENT)


def read(text: str, **more: Any) -> None:
    """Load, and load again what was loaded."""
    try:
        scenario = parse_scenario(text, **more)
    except ConfigurationError as error:
        refused = error
    else:
        assert parse_scenario(dump_scenario(scenario)) == scenario
        return
    assert refused.findings
    assert all(finding.found and "validation error" not in str(finding) for finding in refused.findings)


def test_the_good_file_is_good() -> None:
    scenario = parse_scenario(GOOD)
    assert parse_scenario(dump_scenario(scenario)) == scenario


@FEW
@given(st.sampled_from(PLACES), st.sampled_from(["set", "rename", "drop"]), values)
def test_a_changed_place_never_escapes_as_anything_else(path: tuple[Any, ...], how: str, value: Any) -> None:
    document = json.loads(json.dumps(DOCUMENT))
    owner = document
    for step in path[:-1]:
        owner = owner[step]
    if how in {"drop", "rename"}:
        old = owner.pop(path[-1])
        if how == "rename" and isinstance(owner, dict):
            owner[str(value)[:9]] = old
    else:
        owner[path[-1]] = value
    read(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


@FEW
@given(
    st.integers(0, len(GOOD)),
    st.integers(0, 12),
    st.text(max_size=6) | st.sampled_from(["\t", "&a ", "*a", "<<: ", "{", "- ", "!!x ", "? "]),
)
def test_a_changed_letter_never_escapes_as_anything_else(at: int, length: int, text: str) -> None:
    read(GOOD[:at] + text + GOOD[at + length :])


@FEW
@given(st.one_of(st.text(), values.map(yaml.safe_dump)))
def test_any_text_is_read_or_refused(text: str) -> None:
    read(text)


@FEW
@given(st.sampled_from(PLACES), st.sampled_from(["=", "=+", "=*", "", ".x=", "[0]="]), scalars)
def test_any_override_is_applied_or_refused(path: tuple[Any, ...], sign: str, value: Any) -> None:
    read(GOOD, overrides=[".".join(map(str, path)) + sign + str(value)])

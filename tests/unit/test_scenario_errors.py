"""Broken scenario files: every problem at once, each where a person would look for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from planner.errors import ConfigurationError, Finding
from planner.planning import sized
from planner.scenario import load_scenario, parse_scenario

GOOD: Final = """\
services:
  chat:
    llm: Llama-3.1-8B
    traffic: {rate: 12 req/s, input: 4096, output: 1024}
    slo: {ttft: 3 s}
    variants:
      small: {accelerator: H100, cost: 2 $/h}
  nightly:
    llm: Llama-3.1-70B
    kind: batch
    traffic: {rate: 1, input: 10, output: 10}
    variants: {big: {accelerator: A100, cost: 3 $/h}}
pools:
  h100: {accelerator: H100, nodes: 8}
  a100: {accelerator: A100, nodes: 8}
"""


def findings(text: str) -> tuple[Finding, ...]:
    with pytest.raises(ConfigurationError) as caught:
        parse_scenario(text, name="s.yaml")
    assert caught.value.exit_code == 2
    return caught.value.findings


def said(text: str) -> list[str]:
    return [str(finding) for finding in findings(text)]


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) >= 1
    return GOOD.replace(old, new, 1)


def test_the_unbroken_file_is_good() -> None:
    assert len(parse_scenario(GOOD).services) == 2


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("slo: {ttft: 3 s}", "slo: {tfft: 3 s}",
         ["s.yaml:5: services.chat.slo.tfft: found unknown key 'tfft'; allowed: ttft, itl, e2e, at; did you mean 'ttft'?"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: 3 s, ttft_s: 2}",
         ["s.yaml:5: services.chat.slo.ttft_s: found the same thing twice; allowed: once; 'ttft' on line 5 says it too"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: 3 W}",
         ["s.yaml:5: services.chat.slo.ttft: found unit 'W' in '3 W'; "
          "allowed: a plain number or one with us, µs, ms, s, sec, second, seconds, min and more"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: soon}",
         ["s.yaml:5: services.chat.slo.ttft: found 'soon'; "
          "allowed: a plain number or one with us, µs, ms, s, sec, second, seconds, min and more"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: 800 msec}",
         ["s.yaml:5: services.chat.slo.ttft: found unit 'msec' in '800 msec'; "
          "allowed: a plain number or one with us, µs, ms, s, sec, second, seconds, min and more; did you mean 'ms'?"]),
        ("cost: 2 $/h", "cost: 2 $/hur",
         ["s.yaml:7: services.chat.variants.small.cost: found unit '$/hur' in '2 $/hur'; allowed: a plain number or one with "
          "$/h, $/hr, $/hour, usd/h, usd/hr, usd/hour, /h, /hr and more; did you mean '$/hour'?"]),
        ("12 req/s", "1e300", ["s.yaml:4: services.chat.traffic.rate: found 1e300; allowed: at most 10000000"]),
        ("12 req/s", "1e9 req/s", ["s.yaml:4: services.chat.traffic.rate: found '1e9 req/s'; allowed: at most 10000000"]),
        ("cost: 2 $/h", "cost: 2e9 $/h",
         ["s.yaml:7: services.chat.variants.small.cost: found '2e9 $/h'; allowed: at most 1000000000"]),
        ("cost: 2 $/h", "capacity: {rated: 1e-7}",
         ["s.yaml:7: services.chat.variants.small.capacity.rated: found 1e-7; allowed: at least 1e-06"]),
        ("cost: 2 $/h", "capacity: {rated: 1e9}",
         ["s.yaml:7: services.chat.variants.small.capacity.rated: found 1e9; allowed: at most 10000000"]),
        ("cost: 2 $/h", "capacity: {rated: 5, surge: 240 req/min}",
         ["s.yaml:7: services.chat.variants.small.capacity: found rated 5 req/s above surge 4 req/s; "
          "allowed: a surge of at least the rated rate"]),
        ("slo: {ttft: 3 s}\n    variants:\n      small: {accelerator: H100, cost: 2 $/h}", "slo: {ttft: 3 s}",
         ["s.yaml:2: services.chat.variants: found nothing; "
          "allowed: it is required: a mapping from the id of each variant to what it is"]),
        ("  nightly:\n", "  empty:\n  nightly:\n",
         ["s.yaml:8: services.empty.variants: found nothing; "
          "allowed: it is required: a mapping from the id of each variant to what it is",
          "s.yaml:8: services.empty.llm: found nothing; "
          "allowed: it is required: LLM that is served, by name or alias of the catalog",
          "s.yaml:8: services.empty.traffic: found nothing; allowed: it is required: traffic by request shape"]),
        ("pools:\n", "current: {chat/small@h100: 9}\npools:\n",
         ["s.yaml:13: current.chat/small@h100: found replicas that hold 9 GPUs in pool h100; "
          "allowed: at most 8, which its nodes have beside what foreign pods use"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: .nan}", ["s.yaml:5: services.chat.slo.ttft: found .nan; allowed: a finite number"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: -.inf}", ["s.yaml:5: services.chat.slo.ttft: found -.inf; allowed: a finite number"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: 1e999}", ["s.yaml:5: services.chat.slo.ttft: found 1e999; allowed: a finite number"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: 1e999 s}",
         ["s.yaml:5: services.chat.slo.ttft: found '1e999 s'; allowed: a finite number"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: 0}", ["s.yaml:5: services.chat.slo.ttft: found 0; allowed: more than 0"]),
        ("slo: {ttft: 3 s}", "slo: {ttft: 1, at: p100}",
         ["s.yaml:5: services.chat.slo.at: found 'p100'; allowed: mean, or a percentile between p0 and p100, such as p95"]),
        ("slo: {ttft: 3 s}", "slo: fast", ["s.yaml:5: services.chat.slo: found 'fast'; allowed: a mapping"]),
        ("slo: {ttft: 3 s}", "min: -1", ["s.yaml:5: services.chat.min: found -1; allowed: at least 0"]),
        ("slo: {ttft: 3 s}", "min: 2.5", ["s.yaml:5: services.chat.min: found 2.5; allowed: a whole number"]),
        ("slo: {ttft: 3 s}", "min: true", ["s.yaml:5: services.chat.min: found true or false; allowed: a number"]),
        ("slo: {ttft: 3 s}", "min: 5\n    max: 3",
         ["s.yaml:5: services.chat.min: found 5; allowed: at most 3, as services.chat.max says"]),
        ("slo: {ttft: 3 s}", "kind: onlin",
         ["s.yaml:5: services.chat.kind: found 'onlin'; allowed: online, batch; did you mean 'online'?"]),
        ("slo: {ttft: 3 s}", "team: 1e3",
         ["s.yaml:5: services.chat.team: found 1e3; allowed: a text; what YAML reads as something else needs quotes"]),
        ("slo: {ttft: 3 s}", "team: a b",
         ["s.yaml:5: services.chat.team: found 'a b'; "
          "allowed: a name: an ASCII letter or digit, then ASCII letters, digits and . _ : / @ # + -"]),
        ("slo: {ttft: 3 s}", "headroom: {relative: 0.2, burst: 3}",
         ["s.yaml:5: services.chat.headroom: found relative, burst_rps; "
          "allowed: give headroom in one way only: relative, burst_rps or kv_tokens"]),
        ("slo: {ttft: 3 s}", "ratio: {min: 2, max: 1}",
         ["s.yaml:5: services.chat.ratio: found a ratio without a variant for decode and prefill; allowed: variants of both roles",
          "s.yaml:5: services.chat.ratio.min: found 2; allowed: at most 1, as services.chat.ratio.max says"]),
        ("slo: {ttft: 3 s}", "places: {allow_regions: eu}",
         ["s.yaml:5: services.chat.places.allow_regions: found unknown region 'eu'; allowed: there is no region"]),
        ("slo: {ttft: 3 s}", "places: {deny_pools: [h10]}",
         ["s.yaml:5: services.chat.places.deny_pools[0]: found unknown pool 'h10'; allowed: a100, h100; did you mean 'h100'?"]),
        ("slo: {ttft: 3 s}", "survive: {domains: h10}",
         ["s.yaml:5: services.chat.survive.domains: found unknown failure domain 'h10'; allowed: a100, h100; did you mean 'h100'?"]),
        ("kind: batch", "kind: batch\n    shares_replicas_of: chta",
         ["s.yaml:11: services.nightly.shares_replicas_of: found unknown service 'chta'; allowed: chat; did you mean 'chat'?"]),
        ("kind: batch", "kind: batch\n    shares_replicas_of: chat",
         ["s.yaml:11: services.nightly.shares_replicas_of: found 'chat', which serves Llama-3.1-8B; "
          "allowed: an online service of Llama-3.1-70B"]),
        ("kind: batch", "kind: batch\n    shares_replicas_of: nightly",
         ["s.yaml:11: services.nightly.shares_replicas_of: found 'nightly', which is not online; "
          "allowed: an online service of the same LLM"]),
        ("12 req/s, input: 4096", "12 req/s", ["s.yaml:4: services.chat.traffic.input: found nothing; allowed: it is required: input length (prompt), tokens"]),
        ("    llm: Llama-3.1-8B\n", "", ["s.yaml:2: services.chat.llm: found nothing; "
          "allowed: it is required: LLM that is served, by name or alias of the catalog"]),
        ("cost: 2 $/h", "cost: 2",
         ["s.yaml:7: services.chat.variants.small.cost: found 2 without a unit; "
          "allowed: 2 $/h, or {relative: 2}; did you mean '2 $/h'?"]),
        ("cost: 2 $/h", "cost: {relative: 2}",
         ["s.yaml:12: services.nightly.variants.big.cost: found a cost in $/h; "
          "allowed: relative, as services.chat.variants.small.cost.relative (line 7); one unit for all"]),
        ("cost: 2 $/h", "tp: 3, pods: 2",
         ["s.yaml:7: services.chat.variants.small: found 3 accelerators do not divide evenly over 2 pods"]),
        ("cost: 2 $/h", "parallelism: tp4tp2",
         ["s.yaml:7: services.chat.variants.small.parallelism: found 'tp4tp2'; "
          "allowed: degrees such as tp4, tp8-pp2 or dp8-ep8, each once"]),
        ("cost: 2 $/h", "pools: [a100]",
         ["s.yaml:7: services.chat.variants.small.pools[0]: found pool 'a100' of A100-80GB; allowed: a pool of H100"]),
        ("  a100: {accelerator: A100, nodes: 8}", "  a100: {accelerator: A100, nodes: {gpus: 8, count: -1}}",
         ["s.yaml:15: pools.a100.nodes.count: found -1; allowed: at least 0"]),
        ("  a100: {accelerator: A100, nodes: 8}", "  a100: {accelerator: A100, nodes: {h100: {gpus: 8}}}",
         ["s.yaml:15: pools.a100.nodes.h100: found node 'h100' again; allowed: each once; line 14 has it"]),
        ("  a100: {accelerator: A100, nodes: 8}", "  a100: {accelerator: A100, nodes: {gpus: 8, count: 100001}}",
         ["s.yaml:15: pools.a100.nodes: found more than 100000 nodes in all; allowed: at most 100000"]),
        ("  h100: {accelerator: H100, nodes: 8}", "  a100: {accelerator: A100}",
         ["s.yaml:15: pools.a100: found key 'a100' twice; allowed: once; first on line 14"]),
        ("  h100: {accelerator: H100, nodes: 8}", "  1e3: {accelerator: H100, nodes: 8}",
         ["s.yaml:14: pools: found key 1e3, which YAML reads as a number; allowed: a text; did you mean '\"1e3\"'?"]),
        ("  h100: {accelerator: H100, nodes: 8}", "  true: {accelerator: H100, nodes: 8}",
         ["s.yaml:14: pools: found key true, which YAML reads as a truth value; allowed: a text; did you mean '\"true\"'?"]),
        ("  h100: {accelerator: H100, nodes: 8}", "  ? [a, b]\n  : {accelerator: H100, nodes: 8}",
         ["s.yaml:14: pools: found a list or mapping as key; allowed: a text"]),
        ("pools:\n", "limits: {power: {row: 3 kW, col: {cap: 2 kW}}}\npools:\n",
         ["s.yaml:13: limits.power.row: found unknown key 'row'; allowed: id, cap, pools",
          "s.yaml:13: limits.power.col: found unknown key 'col'; allowed: id, cap, pools",
          "s.yaml:13: limits.power.cap: found nothing; allowed: it is required: largest power drawn at once, W"]),
        ("pools:\n", "limits: {power: {row: {cap: 3 kW}}}\npools:\n",
         ["s.yaml:13: limits.power.row: found unknown power domain of a pool 'row'; "
          "allowed: there is no power domain of a pool"]),
        ("pools:\n", "limits: {power: {row: {cap: 3 kW, pools: h10}}}\npools:\n",
         ["s.yaml:13: limits.power.row.pools: found unknown pool 'h10'; allowed: a100, h100; did you mean 'h100'?"]),
        ("pools:\n", "limits: {quotas: [{id: q, gpus: 3}, {id: q, gpus: 4}]}\npools:\n",
         ["s.yaml:13: limits.quotas[1]: found quota 'q' again; allowed: each once; line 13 has it"]),
        ("pools:\n", "limits: {quotas: [{gpus: 3, cluster: west}]}\npools:\n",
         ["s.yaml:13: limits.quotas[0].cluster: found unknown cluster 'west'; allowed: there is no cluster"]),
        ("pools:\n", "current: {chat/smal@h100: 1}\npools:\n",
         ["s.yaml:13: current.chat/smal@h100: found unknown variant of chat 'smal'; allowed: small; did you mean 'small'?"]),
        ("pools:\n", "current: {chat/small@h10: 1}\npools:\n",
         ["s.yaml:13: current.chat/small@h10: found unknown pool 'h10'; allowed: a100, h100; did you mean 'h100'?"]),
        ("pools:\n", "current: {chta/small@h100: 1}\npools:\n",
         ["s.yaml:13: current.chta/small@h100: found unknown service 'chta'; allowed: chat, nightly; did you mean 'chat'?"]),
        ("pools:\n", "current: {chat/small@a100: 1}\npools:\n",
         ["s.yaml:13: current.chat/small@a100: found pool 'a100' of A100-80GB; allowed: a pool of H100"]),
        ("pools:\n", "current: {chat/small@h100: {replicas: 1, details: [{nodes: h101}]}}\npools:\n",
         ["s.yaml:13: current.chat/small@h100.details[0].nodes: found unknown node of pool h100 'h101'; "
          "allowed: h100; did you mean 'h100'?"]),
        ("pools:\n", "current: {chat/small@h100: {replicas: 1, details: {nodes: h100}}}\npools:\n",
         ["s.yaml:13: current.chat/small@h100.details: found a mapping; allowed: a list, one replica each"]),
        ("pools:\n", "current: {chat: 1}\npools:\n",
         ["s.yaml:13: current.chat: found key 'chat'; allowed: service/variant@pool"]),
        ("pools:\n", "objective: [cost, costs]\npools:\n",
         ["s.yaml:13: objective[1]: found 'costs'; allowed: unserved, cost, power, changes; did you mean 'cost'?"]),
        ("pools:\n", "objective: [cost, cost]\npools:\n",
         ["s.yaml:13: objective: found 'cost' twice; allowed: each level once"]),
        ("pools:\n", "objective: []\npools:\n", ["s.yaml:13: objective: found no level; allowed: at least one"]),
        ("pools:\n", "profiles: [a/../nowhere.csv, 3]\npools:\n",
         ["s.yaml:13: profiles[0]: found 'a/../nowhere.csv': no such file",
          "s.yaml:13: profiles[1]: found 3; allowed: a text; what YAML reads as something else needs quotes"]),
        ("pools:\n", "defaults: {servce: {}, service: {priorty: 3}}\npools:\n",
         ["s.yaml:13: defaults.service.priorty: found unknown key 'priorty'; allowed: id, llm, namespace, team, kind, traffic, "
          "arrival_cv, routing, slo, priority, best_effort, thresholds, headroom, min, max, max_variants, places, survive, ratio, shares_replicas_of, "
          "variants; did you mean 'priority'?",
          "s.yaml:13: defaults.servce: found unknown key 'servce'; allowed: service, variant, pool; did you mean 'service'?"]),
        ("pools:\n", "include: other.yaml\npools:\n",
         ["s.yaml:13: include: found 'other.yaml'; allowed: an absolute path; this text is from no file"]),
        ("pools:\n  h100: {accelerator: H100, nodes: 8}\n  a100: {accelerator: A100, nodes: 8}\n", "pools: [3]\n",
         ["s.yaml:13: pools[0]: found 3; allowed: a mapping: id, accelerator, nodes, growth, offering, region, cluster, "
          "residency, failure_domain, power_domain, node_overhead"]),
        ("pools:\n  h100: {accelerator: H100, nodes: 8}\n  a100: {accelerator: A100, nodes: 8}\n", "pools: {}\n",
         ["s.yaml:13: pools: found an empty list; allowed: at least one"]),
        ("pools:\n  h100: {accelerator: H100, nodes: 8}\n  a100: {accelerator: A100, nodes: 8}\n", "pools: 3\n",
         ["s.yaml:13: pools: found 3; allowed: a mapping from the id of each pool to what it is"]),
    ],
)  # fmt: skip
def test_a_broken_file_says_where_what_and_what_else(old: str, new: str, found: list[str]) -> None:
    assert said(changed(old, new)) == found


@pytest.mark.parametrize(
    ("nodes", "replicas", "refused"),
    [
        ("{gpus: 8, foreign: 3}", 5, False),
        ("{gpus: 8, foreign: 3}", 6, True),
        ("{gpus: 8, count: 2}", 16, False),
        ("{gpus: 8, count: 2}", 17, True),
        ("{a: {gpus: 8}, b: {gpus: 8, cordoned: true}}", 17, False),
        ("{a: {gpus: 8}, b: {gpus: 8, ready: false}}", 17, False),
        ("{a: {gpus: 8}, b: {gpus: 8, tainted: true}}", 17, False),
    ],
)
def test_what_runs_fits_into_a_pool_that_is_whole(nodes: str, replicas: int, *, refused: bool) -> None:
    text = changed("  h100: {accelerator: H100, nodes: 8}", f"  h100: {{accelerator: H100, nodes: {nodes}}}")
    text += f"current: {{chat/small@h100: {replicas}}}\n"
    if refused:
        (finding,) = findings(text)
        assert finding.found == f"replicas that hold {replicas} GPUs in pool h100"
    else:
        assert parse_scenario(text).fleet.running[0].replicas == replicas
    assert len(parse_scenario(f"mode: unconstrained\n{text}").services) == 2


def test_all_variants_in_a_pool_count_together() -> None:
    text = changed(
        "small: {accelerator: H100,", "large: {accelerator: H100, tp: 4}\n      small: {accelerator: H100,"
    )
    text += "current: {chat/small@h100: 3, chat/large@h100: {replicas: 1, pending: 9}}\n"
    assert len(parse_scenario(text).services) == 2
    (finding,) = findings(text.replace("small@h100: 3", "small@h100: 5"))
    assert (finding.path, finding.found) == (
        "current.chat/large@h100",
        "replicas that hold 9 GPUs in pool h100",
    )


@pytest.mark.parametrize(
    ("old", "new", "start", "suggestion"),
    [
        ("llm: Llama-3.1-8B", "llm: lama-3.1-8b", "unknown LLM 'lama-3.1-8b'", "Llama-3.1-8B"),
        ("accelerator: H100, cost", "accelerator: H10, cost", "unknown accelerator 'H10'", "H100"),
        ("pools:\n", "limits: {quotas: {q: {gpus: 3, accelerator: A101}}}\npools:\n", "unknown accelerator 'A101'", None),
    ],
)  # fmt: skip
def test_an_unknown_catalog_entry_names_the_nearest(
    old: str, new: str, start: str, suggestion: str | None
) -> None:
    (finding,) = findings(changed(old, new))
    assert finding.found == start
    assert finding.suggestion == suggestion or suggestion is None
    assert "H100" in finding.allowed or "DeepSeek-R1" in finding.allowed


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["s.yaml:1: found an empty document; allowed: a mapping with services and pools"]),
        ("# nothing\n", ["s.yaml:1: found an empty document; allowed: a mapping with services and pools"]),
        ("- a\n", ["s.yaml:1: found a list; allowed: a mapping with services and pools"]),
        ("just text", ["s.yaml:1: found 'just text'; allowed: a mapping with services and pools"]),
        ("a: 1\n---\nb: 2\n", ["s.yaml:2: found a second document; allowed: one document in a file"]),
        ("a:\n\tb: 1\n", ["s.yaml:2: found a tab; allowed: blanks; YAML does not indent with tabs"]),
        ("a: 1\nb: \0\n", ["s.yaml:2: found character U+0000; allowed: printable text in UTF-8"]),
        ("a: \ud800\n", ["s.yaml:1: found character U+D800; allowed: printable text in UTF-8"]),
        ("a: !!python/object:os.system x\n",
         ["s.yaml:1: found tag !!python/object:os.system; allowed: no tags; a word in quotes is a text"]),
        ("a: !!int 3\n", ["s.yaml:1: found tag !!int; allowed: no tags; a word in quotes is a text"]),
        ("a: !mine {b: c}\n", ["s.yaml:1: found tag !mine; allowed: no tags; a word in quotes is a text"]),
        ("a: *nothing\n", ["s.yaml:1: found alias *nothing; allowed: an anchor that is complete above it"]),
        ("a: &a [*a]\n", ["s.yaml:1: found alias *a; allowed: an anchor that is complete above it"]),
        ("a:\n  " + "[" * 60 + "]" * 60, ["s.yaml:2: found more than 50 levels; allowed: at most 50 levels"]),
        ("".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(9)).replace("*a0", "x"),
         ["s.yaml:6: found more than 300000 values, aliases expanded; allowed: at most 300000"]),
        ("a0: &a0 x\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}]\n" for i in range(60)),
         ["s.yaml:51: found more than 50 levels; allowed: at most 50 levels"]),
        ("a: [1, 2\nb: 3\n", ["s.yaml:2: found no YAML: did not find expected ',' or ']' (column 2)"]),
    ],
)  # fmt: skip
def test_what_is_no_document_is_refused_as_a_whole(text: str, found: list[str]) -> None:
    assert said(text) == found


def test_all_problems_are_in_one_error_in_the_order_of_the_file() -> None:
    text = (
        GOOD.replace("12 req/s", "-1")
        .replace("ttft", "tft")
        .replace("accelerator: A100, nodes: 8", "nodes: -8")
    )
    found = findings(text)
    assert [(finding.line, finding.path) for finding in found] == [
        (4, "services.chat.traffic.rate"),
        (5, "services.chat.slo.tft"),
        (15, "pools.a100.accelerator"),
        (15, "pools.a100.nodes"),
    ]


@pytest.mark.parametrize(
    ("content", "line", "found"),
    [
        (b"a: 1\nb: \xff\xfe\n", 2, "byte 0xff"),
        (b"\x00\x01\x02", 1, "character U+0000"),
        (b"a: " + b"x" * 20_000_001, None, "20.0 MB"),
    ],
)
def test_a_file_that_is_no_text_is_refused(
    tmp_path: Path, content: bytes, line: int | None, found: str
) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        load_scenario(path)
    (finding,) = caught.value.findings
    assert (finding.file, finding.line, finding.found) == (str(path), line, found)


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(ConfigurationError) as caught:
            load_scenario(path)
        assert [finding.found for finding in caught.value.findings] == ["no regular file"]


def test_a_folder_and_a_missing_file_are_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "friday.yaml").write_text(GOOD)
    for path, found in ((tmp_path, "a folder"), (tmp_path / "fridy.yaml", "no such file")):
        with pytest.raises(ConfigurationError) as caught:
            load_scenario(path)
        assert [finding.found for finding in caught.value.findings] == [found]
    assert caught.value.findings[0].suggestion == "friday.yaml"


def test_names_of_sources_and_tables_are_checked_with_all_else() -> None:
    text = f"{GOOD}performance: {{sources: [measurd], profiles: [nope], rows: all, pessimism: 3}}\n"
    found = [(finding.line, finding.path, finding.found) for finding in findings(text)]
    assert found == [
        (16, "performance.sources[0]", "unknown source 'measurd'"),
        (16, "performance.profiles[0]", "unknown profile 'nope'"),
        (16, "performance.rows", "'all'"),
        (16, "performance.pessimism", "3"),
    ]


def test_a_table_beside_the_scenario_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("", encoding="utf-8")
    (tmp_path / "s.yaml").write_text(
        f"{GOOD}profiles: mine.csv\nperformance: {{profiles: [mine, control-loop]}}\n", encoding="utf-8"
    )
    assert load_scenario(tmp_path / "s.yaml").performance.profiles == ("mine", "control-loop")


def test_a_pool_may_have_no_node_now() -> None:
    scenario = parse_scenario(GOOD.replace("nodes: 8}", "nodes: {gpus: 8, count: 0}}", 1))
    assert {pool.id: len(pool.nodes) for pool in sized(scenario).pools} == {"a100": 1, "h100": 0}

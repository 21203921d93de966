"""Readers of traces: every layout, what is wrong with rows, order, packing."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.errors import ConfigurationError
from planner.traces import HowRead, OnBadRow, RequestChunk, open_trace, open_traces
from planner.traces.chunks import joined

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""
AZURE_2024 = """TIMESTAMP,ContextTokens,GeneratedTokens
2024-05-10 00:00:00.009930+00:00,374,44
2024-05-10 02:00:04.324509+02:00,396,109
"""
BURST_GPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,374,44,418,Conversation log
9.314579,GPT-4,396,109,505,API log
"""
MOONCAKE = """{"timestamp": 0, "input_length": 700, "output_length": 44, "hash_ids": [7, 8]}
{"timestamp": 4314.579, "input_length": 396, "output_length": 109, "hash_ids": [7]}
"""
OURS = """arrival_s;input_tokens;output_tokens;service;priority
0;374;44;chat;1
4.314579;396;109;search;-2
"""
MILLISECONDS = """arrival_ms\tprompt_len\tcompletion_tokens
0\t374\t44
4314.579\t396\t109
"""
EPOCH = """timestamp,input_tokens,output_tokens
1700158546.680590,374,44
1700158550.995169,396,109
"""


def written(folder: Path, text: str, name: str = "trace", *, pack: bool = False) -> str:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if pack else text.encode())
    return str(path)


def read(name: str, **how: Any) -> RequestChunk:
    return joined(list(open_trace(name, HowRead(**how))))


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize(
    ("text", "start_s"),
    [(AZURE, 0.0), (AZURE_2024, 0.0), (BURST_GPT, 5.0), (MOONCAKE, 0.0), (OURS, 0.0), (MILLISECONDS, 0.0), (EPOCH, 0.0)],
    ids=["azure", "azure-2024", "burst-gpt", "mooncake", "ours", "milliseconds", "epoch"],
)  # fmt: skip
def test_a_layout_is_told_by_what_is_in_the_file(
    tmp_path: Path, text: str, start_s: float, *, pack: bool
) -> None:
    chunk = read(written(tmp_path, text, pack=pack), services=("chat", "search"))
    assert chunk.arrival_s - start_s == pytest.approx([0.0, 4.314579], abs=2e-6)
    assert chunk.output_tokens.tolist() == [44, 109]
    assert chunk.input_tokens[1] == 396


def test_prefixes_services_and_priorities_are_read_where_a_trace_has_them(tmp_path: Path) -> None:
    mooncake = read(written(tmp_path, MOONCAKE))
    assert mooncake.prefix_offsets is not None
    assert mooncake.prefix_hashes is not None
    assert (mooncake.prefix_offsets.tolist(), mooncake.prefix_hashes.tolist()) == ([0, 2, 3], [7, 8, 7])
    ours = read(written(tmp_path, OURS), services=("search", "chat"))
    assert ours.service is not None
    assert ours.priority is not None
    assert (ours.service.tolist(), ours.priority.tolist()) == ([1, 0], [1, -2])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("noon,1,1", "trace:3: TIMESTAMP: found 'noon'"),
        ("2023-11-16 18:15:47,0,1", "trace:3: ContextTokens: found '0'; allowed: a whole number from 1"),
        ("2023-11-16 18:15:47,1,1.5", "trace:3: GeneratedTokens: found '1.5'"),
        ("2023-11-16 18:15:47,1", "trace:3: GeneratedTokens: found nothing"),
        (
            "2023-11-16 18:15:47,1,1,7",
            "trace:3: found no row of this table; allowed: a JSON object per line, or at",
        ),
        ("2023-11-16 18:15:47,1,1e12", "trace:3: GeneratedTokens: found '1e12'"),
        ("2023-02-30 18:15:47,1,1", "trace:3: TIMESTAMP: found '2023-02-30"),
        ("2023-11-16 18:14:00,1,1", "trace:3: found an arrival 106.681 s before one of an earlier line"),
    ],
)
def test_a_bad_row_is_named_by_its_line_or_left_out_and_counted(tmp_path: Path, row: str, said: str) -> None:
    first, second = AZURE.splitlines()[1:]
    name = written(tmp_path, "\n".join([AZURE.splitlines()[0], first, row, second]))
    with pytest.raises(ConfigurationError) as error:
        read(name)
    assert f"{tmp_path}/{said}" in str(error.value)
    assert "--on-bad-row skip, which leaves it out" in str(error.value)
    trace = open_trace(name, HowRead(policy=OnBadRow.SKIP))
    assert joined(list(trace)).input_tokens.tolist() == [374, 396]
    assert (trace.bad.rows, trace.bad.skipped) == (3, 1)
    assert said.partition(": ")[0] in trace.bad.told()


def test_all_bad_rows_of_a_batch_are_in_one_message(tmp_path: Path) -> None:
    rows = [f"2023-11-16 18:15:{10 + k},{'x' if k % 2 else 5},3" for k in range(40)]
    with pytest.raises(ConfigurationError) as error:
        read(written(tmp_path, "\n".join([AZURE.splitlines()[0], *rows])))
    assert [finding.line for finding in error.value.findings] == list(range(3, 42, 2))


def test_rows_that_are_out_of_order_by_less_than_the_window_are_put_in_order(tmp_path: Path) -> None:
    text = "arrival_s,input_tokens,output_tokens\n3,1,1\n1,2,1\n2,3,1\n9,4,1\n5,5,1\n"
    trace = open_trace(written(tmp_path, text), HowRead(window_s=4.0))
    chunk = joined(list(trace))
    assert chunk.input_tokens.tolist() == [2, 3, 1, 5, 4]
    assert trace.bad.moved == 3
    with pytest.raises(ConfigurationError, match=r"trace:6: found an arrival 4 s before"):
        read(written(tmp_path, text), window_s=3.0)
    with pytest.raises(ConfigurationError, match=r"trace:3: found an arrival 2 s before"):
        read(written(tmp_path, text), window_s=0.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty file"),
        ("arrival_s,input_tokens,output_tokens\n", "no request"),
        ("arrival_s,tokens\n1,2\n", "no column with the input tokens"),
        ("a,b,c\n1,2,3\n", "no column with the arrival"),
        ("PAR1,x\n", "a Parquet file"),
        ("a\0b\n", "bytes that are no text"),
        ('{"timestamp": 1}\n', "no column with the output tokens"),
        ("some words\n", "a file that begins with 'some words'"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_by_what_is_in_it(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read(written(tmp_path, text))


def test_packed_data_that_ends_early_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(AZURE.encode() * 50)[:-15])
    with pytest.raises(ConfigurationError, match="packed data that ends or breaks too early"):
        read(str(path))


def test_a_line_that_is_no_json_is_a_bad_row(tmp_path: Path) -> None:
    name = written(tmp_path, MOONCAKE + "{oops\n" + MOONCAKE.splitlines()[1])
    with pytest.raises(ConfigurationError, match="trace:3: found no row of this table"):
        read(name)
    assert len(read(name, policy=OnBadRow.SKIP)) == 3


def test_services_of_a_trace_are_those_of_the_scenario(tmp_path: Path) -> None:
    name = written(tmp_path, OURS)
    with pytest.raises(
        ConfigurationError, match=r"trace:3: service: found 'search'.*did you mean 'searches'"
    ):
        read(name, services=("chat", "searches"))
    _, (trace,) = open_traces([f"searches={name}"], HowRead(services=("chat", "searches")))
    chunk = joined(list(trace))
    assert chunk.service is not None
    assert chunk.service.tolist() == [1, 1]
    with pytest.raises(ConfigurationError, match=r"the service 'serches'.*did you mean 'searches'"):
        open_traces([f"serches={name}"], HowRead(services=("chat", "searches")))


def test_lengths_of_a_table_without_arrivals_can_be_drawn(tmp_path: Path) -> None:
    pairs = written(tmp_path, "num_prefill_tokens,num_decode_tokens\n7,70\n8,80\n", "pairs.csv")
    chunk = read(f"poisson:rate=5,requests=200,lengths={pairs}")
    assert len(chunk) == 200
    assert {(i, o) for i, o in zip(chunk.input_tokens.tolist(), chunk.output_tokens.tolist(), strict=True)} == {
        (7, 70), (8, 80),
    }  # fmt: skip


CLIENTS = """client_id,window_start_s,rate_rps,iat_cv,pattern,p1,p2
0,0,4,2,Gamma,0.25,1
1,0,2,1,Weibull,0.8,0.4
0,600,1,1,Gamma,1,1
"""
TOKENS = """client_id,window_start_s,requests,input_tokens_mean,input_tokens_p50,input_tokens_p90,input_tokens_p99,output_tokens_mean,output_tokens_p50,output_tokens_p90,output_tokens_p99
0,0,100,120,100,200,400,60,50,100,150
1,0,300,1200,1000,2000,4000,6,5,10,15
"""
RATES = "window_start_s,total_rps,active_clients,top_client_share\n0,6,2,0.7\n600,1,1,1\n"


@pytest.mark.parametrize(("name", "text"), [("m_clients.csv", CLIENTS), ("m_rate_10min.csv", RATES)])
def test_servegen_keeps_rates_and_quantiles_window_by_window(tmp_path: Path, name: str, text: str) -> None:
    written(tmp_path, TOKENS, "m_tokens_6h.csv")
    chunk = read(written(tmp_path, text, name), seed=3)
    first = chunk.arrival_s < 600
    assert np.sum(first) == pytest.approx(3600, rel=0.1)
    assert np.sum(~first) == pytest.approx(600, rel=0.15)
    assert bool(np.all(np.diff(chunk.arrival_s) >= 0))
    if name == "m_clients.csv":
        own = chunk.input_tokens[~first]
        assert np.percentile(own, [50, 90]) == pytest.approx([100, 200], rel=0.12)


def test_a_piece_of_servegen_is_the_same_whether_or_not_what_is_before_it_is_made(tmp_path: Path) -> None:
    from planner.traces import Change

    written(tmp_path, TOKENS, "m_tokens_6h.csv")
    name = written(tmp_path, CLIENTS, "m_clients.csv")
    whole, piece = read(name), read(name, change=Change(start_s=600.0))
    later = whole.arrival_s >= 600
    assert piece.arrival_s + 600 == pytest.approx(whole.arrival_s[later])
    assert np.array_equal(piece.input_tokens, whole.input_tokens[later])


def test_servegen_without_lengths_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="tokens=FILE, or input and output"):
        read(written(tmp_path, RATES, "m_rate_10min.csv"))


def problems(names: Sequence[str]) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        open_traces(names, HowRead())
    return [str(finding) for finding in error.value.findings]


def test_everything_wrong_with_several_traces_is_in_one_message(tmp_path: Path) -> None:
    said = problems(
        [str(tmp_path / "none.csv"), "poisson:rate=0,duration=1m,input=1,output=1", "poison:rate=1"]
    )
    assert len(said) == 3
    assert "no such file" in said[0]
    assert "more than 0" in said[1]
    assert "did you mean 'poisson'?" in said[2]

"""AIConfigurator's table -> points: what is taken, what is left out and why, and files that cannot be right."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from models.performance import MeasuredPoint
from models.variant import Parallelism, Role
from planner.catalog import Catalog, catalog_root, load_catalog
from planner.errors import CatalogError
from planner.importers import Skip, for_planning, import_aiconfigurator
from planner.performance import read_profile, write_profile

LAYOUT = ("batch_size", "tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
COLUMNS = (
    "id", "silicon_data_source", "backend", "backend_version", "model_path", "system", "precision", "mode", "isl",
    "osl", *LAYOUT, "prefill_num_workers", *(f"prefill_{name}" for name in LAYOUT), "decode_num_workers",
    *(f"decode_{name}" for name in LAYOUT), "silicon_ttft_ms", "silicon_tpot_ms",
)  # fmt: skip

# 10 requests for 1 s + 100 x 90 ms: 1 req/s.
DENSE = {
    "id": "qwen_tp2_epnone_1", "silicon_data_source": "x; silicon_concurrency=10; y", "backend": "vllm",
    "backend_version": "0.1", "model_path": "Qwen/Qwen3-32B", "system": "h100_sxm", "precision": "fp8", "mode": "agg",
    "isl": "1000", "osl": "101", "tp_size": "2", "pp_size": "1", "silicon_ttft_ms": "1000.04", "silicon_tpot_ms": "90",
}  # fmt: skip
EXPERTS = DENSE | {
    "id": "big", "model_path": "Qwen/Qwen3-235B-A22B-FP8", "tp_size": "8", "moe_tp_size": "1", "moe_ep_size": "8",
}  # fmt: skip
SPLIT = EXPERTS | {
    "id": "split", "mode": "disagg", "tp_size": "", "pp_size": "", "moe_tp_size": "", "moe_ep_size": "",
    "prefill_num_workers": "2", "prefill_tp_size": "4", "prefill_pp_size": "1", "prefill_moe_tp_size": "4",
    "prefill_moe_ep_size": "1", "decode_num_workers": "1", "decode_tp_size": "1", "decode_pp_size": "1",
    "decode_attention_dp_size": "8", "decode_moe_tp_size": "1", "decode_moe_ep_size": "8",
}  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def a_table(folder: Path, *rows: Mapping[str, str], columns: Sequence[str] = COLUMNS) -> Path:
    path = folder / "silicon.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_an_aggregated_row_is_one_replica(tmp_path: Path, catalog: Catalog) -> None:
    (point,) = import_aiconfigurator(a_table(tmp_path, DENSE), catalog).points
    assert (point.llm, point.accelerator, point.precision) == ("Qwen3-32B", "H100", "fp8")
    assert point.parallelism == Parallelism(tp=2)
    assert (point.input_tokens, point.output_tokens, point.concurrency) == (1000, 101, 10)
    # Three significant digits.
    assert (point.ttft_s, point.itl_s, point.rps) == (1.0, 0.09, 1.0)
    assert (point.role, point.at, point.source, point.row) == (Role.BOTH, None, "P1", "qwen_tp2_epnone_1")


def test_experts_are_stated(tmp_path: Path, catalog: Catalog) -> None:
    (point,) = import_aiconfigurator(a_table(tmp_path, EXPERTS), catalog).points
    assert point.parallelism == Parallelism(tp=8, ep=8)


def test_a_disaggregated_row_is_shared_by_its_workers(tmp_path: Path, catalog: Catalog) -> None:
    prefill, decode = import_aiconfigurator(a_table(tmp_path, SPLIT), catalog).points
    assert (prefill.role, prefill.parallelism, prefill.rps) == (Role.PREFILL, Parallelism(tp=4), 0.5)
    assert (decode.role, decode.parallelism, decode.rps) == (Role.DECODE, Parallelism(dp=8, ep=8), 1.0)
    # Little, rounded up: half a request per second for 1 s, one per second for 9 s (a hair less than 1 req/s).
    assert (prefill.concurrency, decode.concurrency) == (1, 9)


@pytest.mark.parametrize(
    ("row", "change", "reason"),
    [
        (DENSE, {"model_path": "nobody/nothing"}, Skip.UNKNOWN_LLM),
        (DENSE, {"system": "abacus"}, Skip.UNKNOWN_ACCELERATOR),
        (DENSE, {"precision": ""}, Skip.NO_PRECISION),
        (DENSE, {"silicon_data_source": "concurrency unknown"}, Skip.NO_CONCURRENCY),
        (DENSE, {"tp_size": ""}, Skip.NO_LAYOUT),
        (DENSE, {"tp_size": "4"}, Skip.LAYOUT_IN_DOUBT),
        (DENSE, {"tp_size": "36", "id": "wide"}, Skip.LAYOUT_IN_DOUBT),
        (EXPERTS, {"moe_ep_size": ""}, Skip.NO_LAYOUT),
        (EXPERTS, {"moe_ep_size": "4"}, Skip.LAYOUT_IN_DOUBT),
        (EXPERTS, {"tp_size": "1", "moe_ep_size": "1"}, Skip.WEIGHTS_DO_NOT_FIT),
        (SPLIT, {"prefill_num_workers": ""}, Skip.NO_WORKERS),
        (SPLIT, {"decode_num_workers": ""}, Skip.NO_WORKERS),
        (SPLIT, {"decode_moe_tp_size": "8"}, Skip.LAYOUT_IN_DOUBT),
        (DENSE, {"isl": "40000", "silicon_data_source": "silicon_concurrency=64"}, Skip.KV_DOES_NOT_FIT),
        (DENSE, {"silicon_ttft_ms": "1", "silicon_tpot_ms": ".1"}, Skip.BEYOND_PEAK),
    ],
)
def test_rows_that_say_too_little_are_counted_by_reason(
    tmp_path: Path, catalog: Catalog, row: dict[str, str], change: dict[str, str], reason: Skip
) -> None:
    imported = import_aiconfigurator(a_table(tmp_path, row | change), catalog)
    assert imported.points == ()
    assert imported.skipped == {reason: 1}


def test_more_requests_in_flight_must_carry_more(tmp_path: Path, catalog: Catalog) -> None:
    ladder = [
        DENSE
        | {"id": f"c{count}", "silicon_data_source": f"silicon_concurrency={count}", "silicon_tpot_ms": tpot}
        for count, tpot in (("10", "90"), ("20", "90"), ("40", "195"), ("80", "200"))
    ]
    imported = import_aiconfigurator(a_table(tmp_path, *reversed(ladder)), catalog)
    # 1.00, 2.00, 1.95 and 3.81 req/s: the third is saturated, the fourth is above all before it.
    assert [point.row for point in imported.points] == ["c80", "c20", "c10"]
    assert imported.skipped == {Skip.SATURATED: 1}


def problems(path: Path, catalog: Catalog) -> list[str]:
    with pytest.raises(CatalogError) as caught:
        import_aiconfigurator(path, catalog)
    return [str(finding) for finding in caught.value.findings]


def test_every_bad_cell_is_listed_with_its_line(tmp_path: Path, catalog: Catalog) -> None:
    rows = [
        DENSE,
        DENSE | {"id": "b", "silicon_ttft_ms": "nan", "isl": "-5"},
        DENSE | {"id": "c", "silicon_tpot_ms": "20 ms", "mode": "solo"},
        DENSE | {"id": "d", "osl": "1.5", "tp_size": "two"},
        DENSE | {"id": "", "backend": ""},
        DENSE,
    ]
    path = a_table(tmp_path, *rows)
    found = problems(path, catalog)
    expected = [
        (3, "isl", "'-5'"),
        (3, "silicon_ttft_ms", "'nan'"),
        (4, "mode", "'solo'"),
        (4, "silicon_tpot_ms", "'20 ms'"),
        (5, "osl", "'1.5'"),
        (5, "tp_size", "'two'"),
        (6, "id", "nothing"),
        (6, "backend", "nothing"),
        (7, "id", "'qwen_tp2_epnone_1', as in line 2"),
    ]
    assert [line.partition("; allowed")[0] for line in found] == [
        f"{path}:{line}: {column}: found {what}" for line, column, what in expected
    ]


def test_columns_in_another_unit_are_no_columns_of_ours(tmp_path: Path, catalog: Catalog) -> None:
    renamed = [name.replace("silicon_ttft_ms", "silicon_ttft_s") for name in COLUMNS]
    found = problems(a_table(tmp_path, columns=renamed), catalog)
    assert len(found) == 2
    assert "silicon_ttft_s: found an unknown column" in found[0]
    assert "did you mean 'silicon_ttft_ms'" in found[0]
    assert "silicon_ttft_ms: found no such column" in found[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"\n\n", "an empty file"),
        (b"id,\xe9\n", "found byte 0xe9, which is not UTF-8"),
        ((",".join(COLUMNS) + "\na,b\n").encode(), "found 2 cells; allowed: 32"),
        ((",".join([*COLUMNS, "id"]) + "\n").encode(), "found the column 2 times"),
    ],
)
def test_files_that_are_no_table(tmp_path: Path, catalog: Catalog, content: bytes, said: str) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    assert said in "\n".join(problems(path, catalog))


def test_a_byte_order_mark_is_no_problem(tmp_path: Path, catalog: Catalog) -> None:
    path = a_table(tmp_path, DENSE)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(import_aiconfigurator(path, catalog).points) == 1


def a_point(**fields: object) -> MeasuredPoint:
    base = {
        "llm": "one", "accelerator": "acc", "engine": "vllm", "precision": "bf16", "input_tokens": 1000,
        "output_tokens": 101, "concurrency": 10, "ttft_s": 1.0, "itl_s": 0.09, "rps": 1.0, "source": "P1",
    }  # fmt: skip
    return MeasuredPoint.model_validate(base | fields)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        # (ttft_s, itl_s, rps) of each point, and which are kept
        ([(1.0, 0.05, 1.0), (2.0, 0.06, 2.0)], [0, 1]),
        ([(0.2, 0.01, 1.0), (0.5, 0.02, 2.0)], [1]),
        ([(0.2, 0.01, 1.0), (0.5, 0.021, 2.0)], [0, 1]),
        ([(1.0, 0.05, 2.0), (1.0, 0.05, 2.0)], [0]),
        ([(1.0, 0.06, 2.0), (1.0, 0.05, 2.0)], [1]),
        ([(10.1, 0.05, 2.0), (1.0, 0.101, 2.0)], []),
    ],
)
def test_thinning_keeps_what_decides_a_plan(
    fields: list[tuple[float, float, float]], kept: list[int]
) -> None:
    points = [
        a_point(ttft_s=ttft, itl_s=itl, rps=rps, concurrency=1000, row=str(index))
        for index, (ttft, itl, rps) in enumerate(fields)
    ]
    assert [int(point.row or "") for point in for_planning(points)] == kept


def test_thinning_compares_like_with_like() -> None:
    points = (
        a_point(ttft_s=0.1, itl_s=0.01),
        a_point(ttft_s=0.1, itl_s=0.01, rps=2.0, parallelism={"tp": 2}),
    )
    assert for_planning(points) == points


# Profile tables


def test_a_profile_comes_back_as_it_was_written(tmp_path: Path) -> None:
    points = (
        a_point(),
        a_point(
            engine_version="1.0", kv_precision="fp8", parallelism={"tp": 2, "pp": 3, "dp": 4, "ep": 5}, role="decode",
            power_w=512.5, at=95, row="r,1",
        ),
        a_point(at="mean", ttft_s=0.000123),
    )  # fmt: skip
    path = tmp_path / "mine.csv"
    write_profile(points, path)
    assert read_profile(path) == points
    assert load_catalog(extra=[path]).profile("mine") == points


HEADER = "llm,accelerator,engine,precision,input_tokens,output_tokens,concurrency,ttft_s,itl_s,rps,source"
ROW = "one,acc,vllm,bf16,1000,101,10,1.0,0.09,1.0,P1"


def profile_problems(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    with pytest.raises(CatalogError) as caught:
        read_profile(path)
    return [str(finding) for finding in caught.value.findings]


def test_units_may_be_written_and_columns_left_out(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        f"{HEADER}\n{ROW.replace('1.0,0.09,1.0', '1000 ms,90 ms,60 req/min')}\n\n", encoding="utf-8-sig"
    )
    assert read_profile(path) == (a_point(),)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1.0,0.09", "nan,0.09", ":2: ttft_s: found 'nan'"),
        ("1.0,0.09", "inf,0.09", ":2: ttft_s: found 'inf'"),
        ("1.0,0.09", "-1,0.09", ":2: ttft_s: found '-1'"),
        ("1.0,0.09", "12 W,0.09", "found unit 'W'"),
        ("1.0,0.09", ",0.09", ":2: ttft_s: found no value"),
        ("1000,101", "1000.5,101", ":2: input_tokens: found 1000.5"),
        ("bf16", "fp12", ":2: precision: found 'fp12'"),
        (
            "1.0,0.09",
            "1000,90",
            "rps: found 1 req/s x 10000 s = 1e+04 requests in flight; allowed: at most the concurrency, 10",
        ),
        (",P1", ",P1,x", "found 12 cells; allowed: 11"),
    ],
)
def test_bad_cells_of_a_profile(tmp_path: Path, old: str, new: str, said: str) -> None:
    found = profile_problems(tmp_path / "mine.csv", f"{HEADER}\n{ROW.replace(old, new, 1)}\n".encode())
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (HEADER.encode() + b"\n\xff\n", ":2: found byte 0xff, which is not UTF-8"),
        (HEADER.replace("ttft_s", "ttft_ms").encode(), ":1: ttft_ms: found an unknown column"),
        (HEADER.replace("ttft_s", "ttft_ms").encode(), ":1: ttft_s: found no such column"),
        (f"{HEADER},rps\n".encode(), ":1: rps: found the column 2 times"),
        (f"{HEADER}\n{ROW}\n{ROW}\n".encode(), ":3: found the same point as line 2"),
        (f'{HEADER}\n"one\n'.encode(), "allowed: comma-separated values"),
    ],
)
def test_files_that_are_no_profile(tmp_path: Path, content: bytes, said: str) -> None:
    found = profile_problems(tmp_path / "mine.csv", content)
    assert any(said in line for line in found), found


def test_all_problems_of_a_profile_at_once(tmp_path: Path) -> None:
    rows = [ROW.replace("1.0", "nan", 1), ROW.replace("bf16", "x"), ROW, ROW]
    found = profile_problems(tmp_path / "mine.csv", "\n".join([HEADER, *rows]).encode())
    assert [line.split(":")[1] for line in found] == ["2", "3", "5"]


# The published table


@pytest.fixture(scope="module")
def published() -> Path:
    folder = os.environ.get("FLEETPLAN_TEST_DATA")
    if not folder:
        pytest.skip(
            "FLEETPLAN_TEST_DATA is not set: it names the folder with perf/aiconfigurator_measured_*.csv"
        )
    return Path(folder) / "perf" / "aiconfigurator_measured_h100_h200_gb200.csv"


def test_the_shipped_profile_is_what_the_importer_makes(
    tmp_path: Path, catalog: Catalog, published: Path
) -> None:
    points = import_aiconfigurator(published, catalog).points
    again = tmp_path / "again.csv"
    write_profile(for_planning(points), again)
    assert again.read_bytes() == (catalog_root() / "profiles" / "aiconfigurator.csv").read_bytes()


def test_every_published_row_is_taken_or_counted(catalog: Catalog, published: Path) -> None:
    imported = import_aiconfigurator(published, catalog)
    taken = {point.row for point in imported.points}
    assert len(taken) + sum(imported.skipped.values()) == 1939
    assert imported.skipped[Skip.NO_PRECISION] == 366
    assert imported.skipped[Skip.NO_CONCURRENCY] == 19

"""Scenarios in several files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from planner.errors import ConfigurationError
from planner.scenario import load_scenario, parse_scenario

BASE: Final = """\
services:
  chat:
    llm: Llama-3.1-8B
    traffic: {rate: 12 req/s, input: 4096, output: 1024}
    slo: {ttft: 3 s, itl: 50 ms}
    headroom: 20 %
    variants: {v: {accelerator: H100}}
pools:
  h100: {accelerator: H100, nodes: {count: 4, gpus: 8}}
"""


def write(folder: Path, **files: str) -> Path:
    """Files by stem; the path of the first."""
    for stem, text in files.items():
        (folder / f"{stem}.yaml").write_text(text, encoding="utf-8")
    return folder / f"{next(iter(files))}.yaml"


def findings(path: Path) -> list[tuple[str, int | None, str, str]]:
    with pytest.raises(ConfigurationError) as caught:
        load_scenario(path)
    return [(Path(f.file).name, f.line, f.path, f.found) for f in caught.value.findings]


def test_the_including_file_wins_field_by_field(tmp_path: Path) -> None:
    top = """\
include: base.yaml
services:
  chat: {slo: {ttft_s: 1}, headroom: {burst: 3}, variants: {w: {accelerator: H100, tp: 2}}}
pools:
  h100: {nodes: {count: 2}}
"""
    scenario = load_scenario(write(tmp_path, top=top, base=BASE))
    (service,), (pool,) = scenario.services, scenario.pools
    assert (service.slo.ttft_s, service.slo.itl_s) == (1, 0.05)
    assert (service.headroom.burst_rps, service.headroom.relative) == (3, None)
    assert [variant.id for variant in service.variants] == ["v", "w"]
    assert scenario.name == "top"
    assert [(node.count, node.gpus) for node in pool.nodes] == [(2, 8)]


def test_later_files_win_and_folders_work(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(
        tmp_path / "sub",
        one="include: ../base.yaml\nservices: {chat: {priority: 2}}",
        two="services: {chat: {priority: 3}}",
    )
    path = write(tmp_path, top="include: [sub/one.yaml, sub/two.yaml]", base=BASE)
    assert load_scenario(path).services[0].priority == 3


def test_an_absolute_path_may_lie_anywhere(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    base = write(tmp_path / "there", base=BASE)
    assert load_scenario(write(tmp_path / "here", top=f"include: {base}")).services[0].id == "chat"


def test_a_text_with_a_folder_includes_from_it(tmp_path: Path) -> None:
    write(tmp_path, base=BASE)
    assert parse_scenario("include: base.yaml", name="x", base_folder=tmp_path).name == "x"


def test_a_problem_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    path = write(tmp_path, top="include: base.yaml\nmode: bounded\n", base=BASE.replace("ttft", "tft"))
    assert findings(path) == [
        ("base.yaml", 5, "services.chat.slo.tft", "unknown key 'tft'"),
        ("top.yaml", 2, "mode", "'bounded'"),
    ]


@pytest.mark.parametrize(
    ("include", "found"),
    [
        ("../other.yaml", "'../other.yaml', outside of the scenario's folder"),
        ("bse.yaml", "'bse.yaml': no such file"),
        (".", "'.': a folder"),
        ("/dev/zero", "'/dev/zero': no regular file"),
        ("3", "3"),
        ("top.yaml", "a circle: top.yaml -> top.yaml"),
    ],
)
def test_an_include_that_cannot_be_read_says_why(tmp_path: Path, include: str, found: str) -> None:
    path = write(tmp_path, top=f"mode: constrained\ninclude: {include}\n{BASE}", base="")
    assert findings(path) == [("top.yaml", 2, "include", found)]


def test_a_missing_include_names_the_nearest_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean 'base.yaml'"):
        load_scenario(write(tmp_path, top="include: bse.yaml", base=BASE))


def test_a_circle_over_two_files_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, top=f"include: mid.yaml\n{BASE}", mid="include: top.yaml")
    assert findings(path) == [("mid.yaml", 1, "include", "a circle: top.yaml -> mid.yaml -> top.yaml")]


def test_depth_and_number_of_files_are_limited(tmp_path: Path) -> None:
    chain = {f"f{i}": f"include: f{i + 1}.yaml" for i in range(12)}
    assert ("f9.yaml", 1, "include", "too many includes") in findings(write(tmp_path, **chain))
    many = write(
        tmp_path, top=f"include: [{', '.join(['empty.yaml'] * 51)}]\n{BASE}", empty="mode: constrained"
    )
    assert findings(many) == [("top.yaml", 1, "include[50]", "too many includes")]


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    outside = write(tmp_path, base=BASE)
    (tmp_path / "here/link.yaml").symlink_to(outside)
    path = write(tmp_path / "here", top=f"include: link.yaml\n{BASE}")
    assert findings(path) == [("top.yaml", 1, "include", "'link.yaml', outside of the scenario's folder")]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("root:x:0:0:root:/root:/bin/bash", "a text"),
        ("- hunter2\n- s3cret", "a list"),
        ("31337", "a single value"),
        (f"a: *{'s3cret' * 20}", f"alias *{'s3cret' * 4}s3cre..."),
        (f"a: !{'s3cret' * 20} 1", f"tag !{'s3cret' * 4}s3cr..."),
    ],
)
def test_what_is_included_and_no_scenario_is_not_quoted(tmp_path: Path, content: str, found: str) -> None:
    path = write(tmp_path, top=f"include: base.yaml\n{BASE}", base=content)
    assert findings(path) == [("base.yaml", 1, "", found)]


def test_an_included_file_is_no_larger_than_a_scenario(tmp_path: Path) -> None:
    path = write(tmp_path, top=f"include: base.yaml\n{BASE}", base=f"# {'x' * 20_000_000}\n")
    assert findings(path) == [("top.yaml", 1, "include", "'base.yaml': 20.0 MB")]

"""The static inventory, and how discoveries are chosen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.clock import FakeClock
from planner.control.discovery import CAPACITY_DISCOVERIES, open_discovery
from planner.control.discovery.file import FileDiscovery
from planner.errors import ConfigurationError
from tests.kube_objects import CATALOG

GOOD = """
pools:
- {id: west, accelerator: nvidia-h100-80gb, nodes: [{id: n, gpus: 8, count: 3, foreign_gpus: 2}]}
- {id: east, accelerator: L4, nodes: [{id: m, gpus: 4}]}
quotas:
- {namespace: prod, resource: requests.nvidia.com/gpu, hard: 16, used: 4}
"""


def a_file(folder: Path, text: str = GOOD) -> Path:
    path = folder / "inventory.yaml"
    path.write_text(text)
    return path


def refused(path: Path) -> str:
    with pytest.raises(ConfigurationError) as raised:
        FileDiscovery(path, CATALOG)
    return str(raised.value)


def test_a_file_tells_pools_and_quotas(tmp_path: Path) -> None:
    seen = open_discovery("file", {"path": a_file(tmp_path)}, FakeClock()).discover(0.0)
    assert {pool.id: pool.accelerator for pool in seen.pools} == {"west": "H100", "east": "L4"}
    assert seen.quotas[0].hard == 16
    assert seen.complete


def test_an_edit_is_read_and_a_bad_one_leaves_the_last_good(tmp_path: Path) -> None:
    path = a_file(tmp_path)
    discovery = open_discovery("file", {"path": path}, FakeClock())
    path.write_text("pools: [{id: w")
    os.utime(path, ns=(1, 1))
    spoiled = discovery.discover(0.0)
    assert len(spoiled.pools) == 2
    assert "no YAML" in spoiled.findings[0].problem
    path.unlink()
    assert len(discovery.discover(0.0).pools) == 2
    path.write_text("pools: []")
    assert discovery.discover(0.0).pools == ()
    assert not discovery.discover(0.0).findings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no mapping"),
        ("- 1", "no mapping"),
        ("pools: 7", "pools"),
        ("pools: [{id: a}]", "accelerator"),
        ("pools: []\nmore: 1", "more"),
        ("pools: [{id: a, accelerator: L4}, {id: a, accelerator: L4}]", "more than once"),
        ("pools: &a [*a]", ""),
        ("pools: !!python/object:os.system {}", "no YAML"),
        ("a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)), "unfold"),
        ("pools: \x00", "no YAML"),
        ("[" * 5000, "no YAML"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(a_file(tmp_path, text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "nothing.yaml")


def test_every_wrong_option_is_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_discovery(
            "kubernetes",
            {"namespace": ["a"], "clusters": [{"contxt": "x", "timeout_s": -1}], "controller_instance": ""},
            FakeClock(),
        )
    assert {each.path for each in raised.value.findings} == {
        "kubernetes.namespace",
        "kubernetes.clusters.0.contxt",
        "kubernetes.clusters.0.timeout_s",
        "kubernetes.controller_instance",
    }
    assert "did you mean 'namespaces'?" in str(raised.value)


def test_discoveries_are_a_plug_in_group() -> None:
    assert CAPACITY_DISCOVERIES.group == "fleetplan.capacity-discovery"
    assert CAPACITY_DISCOVERIES.names() == ("file", "kubernetes")
    with pytest.raises(ConfigurationError, match="did you mean 'kubernetes'"):
        open_discovery("kubernetis", {}, FakeClock())


def test_a_kubeconfig_that_is_none_is_told_without_what_it_holds(tmp_path: Path) -> None:
    for number, text in enumerate(
        ("", "token: hunter2", "[hunter2", "users: hunter2\ncontexts: 7", "\x00hunter2")
    ):
        path = tmp_path / f"config-{number}"
        path.write_text(text)
        with pytest.raises(ConfigurationError) as raised:
            open_discovery("kubernetes", {"clusters": [{"kubeconfig": path, "context": "a"}]}, FakeClock())
        assert "hunter2" not in str(raised.value)
        assert str(path) in str(raised.value)

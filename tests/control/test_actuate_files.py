"""Files for GitOps: whole or not at all, only on change, and nowhere but in their folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.observation import Observation
from planner.control.actuators.files import FilesActuator, actuator
from planner.control.cluster import MemoryCluster
from planner.control.protocols import OutcomeCode
from tests.control.actuator_builders import a_variant, connected, decided
from tests.kube_objects import a_deployment, an_hpa, notes, reading


def writing(folder: Path, **options: Any) -> FilesActuator:
    return actuator({"folder": folder, **options}, connected(MemoryCluster()))


def documents(folder: Path) -> dict[str, Any]:
    return {
        path.name: yaml.safe_load(path.read_text())
        for path in sorted(folder.glob("*.yaml")) if path.name != "kustomization.yaml"
    }  # fmt: skip


def times(folder: Path) -> Mapping[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_a_fleet_is_a_component_and_a_script(tmp_path: Path) -> None:
    decisions = [
        decided(a_variant("hpa", min_replicas=1, max_replicas=8), 5),
        decided(a_variant("keda", target="other"), 0),
        decided(a_variant("scale", name="plain", target="plain", kind="StatefulSet"), 3),
    ]
    found = writing(tmp_path).act(decisions, dry_run=False)
    assert [each.code for each in found] == [OutcomeCode.DONE] * 3
    folder = tmp_path / "fleet"
    patches = yaml.safe_load((folder / "kustomization.yaml").read_text())["patches"]
    assert sorted(each["path"] for each in patches) == sorted(documents(folder))
    bodies = documents(folder)
    hpa = bodies["prod.horizontalpodautoscaler.llama-hpa.yaml"]
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (5, 5)
    keda = bodies["prod.scaledobject.llama-so.yaml"]
    assert keda["metadata"]["annotations"]["autoscaling.keda.sh/paused-replicas"] == "0"
    assert bodies["prod.statefulset.plain.yaml"]["spec"] == {"replicas": 3}
    assert "hold_hpa 5" in (folder / "commands.sh").read_text()


def test_what_is_held_by_a_file_is_read_with_the_bounds_of_people(tmp_path: Path) -> None:
    writing(tmp_path).act([decided(a_variant("hpa", min_replicas=1, max_replicas=8), 5)], dry_run=False)
    body = documents(tmp_path / "fleet")["prod.horizontalpodautoscaler.llama-hpa.yaml"]
    applied = an_hpa(least=5, most=5, annotations=notes() | body["metadata"]["annotations"])
    found = reading(a_deployment(), applied).variants[0]
    assert (found.min_replicas, found.max_replicas) == (1, 8)


def test_a_dry_run_tells_and_writes_nothing(tmp_path: Path) -> None:
    found = writing(tmp_path / "out").act([decided(a_variant(), 5)], dry_run=True)[0]
    assert found.code is OutcomeCode.WOULD
    assert str(found.differences[0]).endswith("fleet prod/llama-hpa: replicas: nothing → 5")
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_only_when_a_count_changes(tmp_path: Path) -> None:
    acting = writing(tmp_path)
    acting.act([decided(a_variant(wanted=2), 5)], dry_run=False)
    before = times(tmp_path / "fleet")
    assert acting.act([decided(a_variant(wanted=5), 5)], dry_run=False)[0].code is OutcomeCode.SAME
    assert writing(tmp_path).act([decided(a_variant(wanted=3), 5)], dry_run=False)[0].code is OutcomeCode.SAME
    assert times(tmp_path / "fleet") == before
    found = acting.act([decided(a_variant(wanted=5), 6)], dry_run=False)[0]
    assert (found.differences[0].before, found.differences[0].after) == ("5", "6")


def test_each_cluster_has_a_folder_and_none_leads_out_of_it(tmp_path: Path) -> None:
    decisions = [decided(a_variant(cluster=name), 5) for name in ("east", "a/../../b")]
    writing(tmp_path).act(decisions, dry_run=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a%2f..%2f..%2fb", "east"]


@pytest.mark.parametrize("name", ["../up", "a/b", "A", "x" * 300, "a\nb", "-a", ".hidden"])
def test_a_name_that_is_none_has_no_file(tmp_path: Path, name: str) -> None:
    good = a_variant()
    target = good.target.model_copy(update={"name": name})
    bad = a_variant("keda").model_copy(update={"target": target})
    found = writing(tmp_path).act([decided(good, 5), decided(bad, 5)], dry_run=False)
    assert [each.code for each in found] == [OutcomeCode.DONE, OutcomeCode.FAILED]
    assert list(documents(tmp_path / "fleet")) == ["prod.horizontalpodautoscaler.llama-hpa.yaml"]


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "thesis.txt").write_text("years of work")
    found = writing(tmp_path).act([decided(a_variant(), 5)], dry_run=False)[0]
    assert found.code is OutcomeCode.FAILED
    assert "holds files that are not ours" in found.message
    assert (tmp_path / "fleet" / "thesis.txt").read_text() == "years of work"


def test_a_folder_that_cannot_be_made_is_an_outcome(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = writing(tmp_path / "file" / "below").act([decided(a_variant(), 5)], dry_run=False)[0]
    assert found.code is OutcomeCode.FAILED
    assert "cannot be written" in found.message


def test_nothing_is_left_of_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting = writing(tmp_path)
    acting.act([decided(a_variant(), 5)], dry_run=False)
    before = documents(tmp_path / "fleet")
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        found = acting.act([decided(a_variant(), 6)], dry_run=False)[0]
    assert "No space left on device" in found.message
    assert documents(tmp_path / "fleet") == before
    assert [path.name for path in tmp_path.iterdir()] == ["fleet"]
    assert acting.act([decided(a_variant(), 6)], dry_run=False)[0].code is OutcomeCode.DONE


def test_an_end_in_the_middle_is_made_good(tmp_path: Path) -> None:
    writing(tmp_path).act([decided(a_variant(), 5)], dry_run=False)
    (tmp_path / "fleet").rename(tmp_path / "fleet.fleetplan-old")
    assert writing(tmp_path).act([decided(a_variant(), 5)], dry_run=False)[0].code is OutcomeCode.SAME
    assert [path.name for path in tmp_path.iterdir()] == ["fleet"]


@pytest.mark.parametrize(
    "spoiled", ["", "{", "[]", "7", '{"counts": 3}', '{"counts": {"a": -1}}', "[" * 10**5]
)
def test_a_spoiled_state_is_written_anew(tmp_path: Path, spoiled: str) -> None:
    writing(tmp_path).act([decided(a_variant(), 5)], dry_run=False)
    (tmp_path / "fleet" / ".fleetplan.json").write_text(spoiled)
    assert writing(tmp_path).act([decided(a_variant(), 5)], dry_run=False)[0].code is OutcomeCode.DONE


def test_a_file_that_somebody_removed_is_written_again(tmp_path: Path) -> None:
    writing(tmp_path).act([decided(a_variant(), 5)], dry_run=False)
    (tmp_path / "fleet" / "prod.horizontalpodautoscaler.llama-hpa.yaml").unlink()
    writing(tmp_path).act([decided(a_variant(), 5)], dry_run=False)
    assert documents(tmp_path / "fleet")


class TestPartsOfAFleet:
    def seen(self, *variants: Any, complete: bool = True) -> Observation:
        return Observation(at_s=1e9, variants=variants, complete=complete)

    def test_what_is_decided_between_two_cycles_changes_that_part_alone(self, tmp_path: Path) -> None:
        acting, both = writing(tmp_path), [a_variant("hpa"), a_variant("keda", target="other")]
        acting.saw(self.seen(*both))
        acting.act([decided(each, 5) for each in both], dry_run=False)
        acting.act([decided(both[1], 6)], dry_run=False)
        assert len(documents(tmp_path / "fleet")) == 2

    def test_a_part_alone_is_not_written_as_if_it_were_all(self, tmp_path: Path) -> None:
        acting, both = writing(tmp_path), [a_variant("hpa"), a_variant("keda", target="other")]
        acting.saw(self.seen(*both))
        found = acting.act([decided(both[0], 5)], dry_run=False)[0]
        assert found.code is OutcomeCode.WAITING
        assert list(tmp_path.iterdir()) == []

    def test_what_is_gone_leaves_the_files_and_what_was_not_seen_stays(self, tmp_path: Path) -> None:
        acting, both = writing(tmp_path), [a_variant("hpa"), a_variant("keda", target="other")]
        acting.act([decided(each, 5) for each in both], dry_run=False)
        acting.saw(self.seen(both[0], complete=False))
        acting.act([decided(both[0], 6)], dry_run=False)
        assert len(documents(tmp_path / "fleet")) == 2
        acting.saw(self.seen(both[0]))
        acting.act([decided(both[0], 7)], dry_run=False)
        assert len(documents(tmp_path / "fleet")) == 1

    def test_what_people_paused_stays_as_it_was_written(self, tmp_path: Path) -> None:
        acting = writing(tmp_path)
        acting.act([decided(a_variant(), 5)], dry_run=False)
        acting.act([decided(a_variant(paused=True), 2)], dry_run=False)
        body = documents(tmp_path / "fleet")["prod.horizontalpodautoscaler.llama-hpa.yaml"]
        assert body["spec"]["maxReplicas"] == 5


def test_one_format_alone(tmp_path: Path) -> None:
    writing(tmp_path, formats=["kubectl"]).act([decided(a_variant(), 5)], dry_run=False)
    assert sorted(path.name for path in (tmp_path / "fleet").iterdir()) == [".fleetplan.json", "commands.sh"]

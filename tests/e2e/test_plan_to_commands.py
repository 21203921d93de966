"""Twelve services from their scenario to a script that a shell runs, with a kubectl that keeps counts; and back.

While the script runs, every state is judged from outside: replicas that start hold GPUs at once and serve when the script
has waited for them; replicas that go serve no more at once and hold GPUs until the script has seen that they are gone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.testing import CliRunner

from models.problem import Problem
from models.report import Report
from planner.cli import app
from planner.cli.files import read_report
from tests.rollout_states import Rules

SCENARIO: Final = Path(__file__).parents[2] / "data" / "scenarios" / "02-contention.yaml"
SHELL: Final = shutil.which("sh") or "/bin/sh"

# Counts are files named after their object. A count that is not the expected one fails, as the real one does. Pods
# that go are still there at the first look after the count fell.
KUBECTL: Final = """#!/bin/sh
set -eu
[ "$1" = -n ] || exit 64
namespace=$2 verb=$3
case $verb in
  scale) object=$4 old=${5#--current-replicas=} new=${6#--replicas=} ;;
  rollout) object=$5 ;;
  wait) object=$4 ;;
  get)
    object=$4
    if [ "$4" = pods ]; then labels=$6; object=any/${labels##*=}; fi ;;
  *) exit 64 ;;
esac
name=${object#*/}
kind=${object%%/*}
if [ "$kind" = any ]; then
  for count in "$COUNTS/$namespace".*".$name"; do :; done
else
  count="$COUNTS/$namespace.${kind%%.*}.$name"
fi
[ -f "$count" ] || { echo "no such object: $count" >&2; exit 1; }
if [ "$verb" = scale ]; then
  [ "$(cat "$count")" = "$old" ] || { echo "expected $old replicas of $name" >&2; exit 1; }
  [ "$new" -ge "$old" ] || echo $((old * 2)) > "$COUNTS.ending.$name"
  printf %s "$new" > "$count"
  echo "scaled $name $new"
elif [ "$verb" = get ]; then
  case "$*" in
    *"get pods"*)
      left=0
      if [ -f "$COUNTS.ending.$name" ]; then
        left=$(cat "$COUNTS.ending.$name")
        rm "$COUNTS.ending.$name"
      else
        echo "gone $name" >&2
      fi
      while [ "$left" -gt 0 ]; do echo "pod/$name-$left"; left=$((left - 1)); done ;;
    *subresource=scale*) echo "app=$name" ;;
    *terminationGracePeriodSeconds*) echo 30 ;;
    *) cat "$count" ;;
  esac
else
  echo "ready $name"
fi
"""


@dataclass(frozen=True)
class Fleet:
    """A saved answer, and the counts of a cluster as files."""

    folder: Path
    report: Report

    @property
    def problem(self) -> Problem:
        return self.report.problem

    @property
    def answer(self) -> Path:
        return self.folder / "plan.json"

    def names(self) -> dict[str, str]:
        """Candidates by the name of their object."""
        return {c.object.name: c.id for c in self.problem.candidates if c.object is not None}

    def set_up(self, counts: Mapping[str, int]) -> None:
        """Put a kubectl and these counts, by candidate, into the folder."""
        (self.folder / "bin").mkdir(exist_ok=True)
        (self.folder / "counts").mkdir(exist_ok=True)
        kubectl = self.folder / "bin" / "kubectl"
        kubectl.write_text(KUBECTL, encoding="utf-8")
        kubectl.chmod(0o755)
        for candidate in self.problem.candidates:
            assert candidate.object is not None
            name = f"{candidate.object.namespace}.{candidate.object.kind.lower()}.{candidate.object.name}"
            (self.folder / "counts" / name).write_text(str(counts.get(candidate.id, 0)), encoding="utf-8")

    def counts(self) -> dict[str, int]:
        """What the cluster has now, by candidate, zeros left out."""
        found = {
            self.names()[path.name.split(".", 2)[2]]: int(path.read_text(encoding="utf-8"))
            for path in (self.folder / "counts").iterdir()
        }
        return {name: count for name, count in found.items() if count}

    def commands(self, *arguments: str) -> str:
        done = CliRunner().invoke(app, ["commands", str(self.answer), *arguments])
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def carry_out(self, *arguments: str) -> list[str]:
        """Run the script; lines that it and its kubectl wrote, in order."""
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "COUNTS": str(self.folder / "counts"),
            "POLL_S": "0",
        }  # fmt: skip
        done = subprocess.run(
            [SHELL], input=self.commands(*arguments), env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    folder = tmp_path_factory.mktemp("fleet")
    done = CliRunner().invoke(app, ["plan", str(SCENARIO), "-o", str(folder / "plan.json")])
    assert done.exit_code == 0, done.stderr
    return Fleet(folder, read_report(folder / "plan.json"))


def running(fleet: Fleet) -> dict[str, int]:
    return {c.id: c.current for c in fleet.problem.candidates if c.current}


def planned(fleet: Fleet) -> dict[str, int]:
    return {name: count for name, count in fleet.report.answer.solution.counts.items() if count}


def states(
    fleet: Fleet, start: Mapping[str, int], lines: list[str]
) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Held and serving replicas after each line."""
    names = fleet.names()
    wanted, serving, held = Counter(start), Counter(start), Counter(start)
    yield dict(held), dict(serving)
    for line in lines:
        match line.split():
            case ["wave", *_]:
                assert held == wanted, "a wave began while pods of the one before held GPUs"
            case ["gone", name]:
                held[names[name]] = wanted[names[name]]
            case ["scaled", name, count]:
                candidate = names[name]
                wanted[candidate] = int(count)
                held[candidate] = max(held[candidate], wanted[candidate])
                serving[candidate] = min(serving[candidate], wanted[candidate])
            case ["ready", name]:
                serving[names[name]] = wanted[names[name]]
            case _:
                pytest.fail(f"an unexpected line: {line}")
        yield dict(held), dict(serving)


def worse_than_both_ends(fleet: Fleet, start: Mapping[str, int], lines: list[str]) -> list[list[str]]:
    rules = Rules(fleet.problem, fleet.report.answer.solution)
    found = [rules.broken(held, serving, {}, {}) for held, serving in states(fleet, start, lines)]
    return [broken for broken in found if broken]


def test_the_script_brings_the_fleet_to_the_plan_and_undo_brings_it_back(fleet: Fleet) -> None:
    fleet.set_up(running(fleet))
    assert fleet.counts() == running(fleet) != planned(fleet)
    there = fleet.carry_out()
    assert fleet.counts() == planned(fleet)
    assert worse_than_both_ends(fleet, running(fleet), there) == []
    back = fleet.carry_out("--undo")
    assert fleet.counts() == running(fleet)
    assert worse_than_both_ends(fleet, planned(fleet), back) == []


def test_the_waves_of_the_script_are_those_that_were_shown(fleet: Fleet) -> None:
    fleet.set_up(running(fleet))
    waves = [line for line in fleet.carry_out() if line.startswith("wave ")]
    assert fleet.report.rollout is not None
    number = len(fleet.report.rollout.waves)
    assert number > 1
    assert waves == [f"wave {n} of {number}" for n in range(1, number + 1)]


def test_all_at_once_would_be_worse(fleet: Fleet) -> None:
    """The judgement above can fail: without waves the GPUs of coding and minutes are not there yet."""
    fleet.set_up(running(fleet))
    lines = [line for line in fleet.carry_out() if not line.startswith(("wave ", "gone "))]
    assert worse_than_both_ends(fleet, running(fleet), lines) != []


def test_a_count_that_somebody_changed_stops_the_script(fleet: Fleet) -> None:
    fleet.set_up(running(fleet) | {"search/tp2@h100": 6})
    with pytest.raises(AssertionError, match="expected 5 replicas of search-tp2"):
        fleet.carry_out()


@pytest.mark.parametrize("form", ["yaml", "kustomize"])
def test_manifests_have_the_planned_counts(fleet: Fleet, form: str, tmp_path: Path) -> None:
    documents: list[dict[str, Any]] = []
    if form == "yaml":
        documents = [
            document for document in yaml.safe_load_all(fleet.commands("--format", "yaml")) if document
        ]
    else:
        fleet.commands("--format", "kustomize", "-o", str(tmp_path / "plan"))
        paths = [path for path in (tmp_path / "plan").iterdir() if path.name != "kustomization.yaml"]
        documents = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths]
    names = fleet.names()
    found = {names[each["metadata"]["name"]]: each["spec"]["replicas"] for each in documents}
    assert {name: count for name, count in found.items() if count} == {
        name: count for name, count in planned(fleet).items() if name in found
    }
    assert {each["metadata"]["namespace"] for each in documents} == {"serving"}
    moved = {
        name
        for name in {*running(fleet), *planned(fleet)}
        if running(fleet).get(name) != planned(fleet).get(name)
    }
    assert moved <= found.keys()


def test_other_limits_on_waves_give_other_waves_to_the_same_end(fleet: Fleet) -> None:
    fleet.set_up(running(fleet))
    assert fleet.report.rollout is not None
    there = fleet.carry_out("--max-step-gpus", "8", "--max-surge-gpus", "0", "--drain", "30")
    assert sum(line.startswith("wave ") for line in there) > len(fleet.report.rollout.waves)
    assert fleet.counts() == planned(fleet)
    assert worse_than_both_ends(fleet, running(fleet), there) == []


def test_the_saved_answer_is_one_document(fleet: Fleet) -> None:
    document = json.loads(fleet.answer.read_text(encoding="utf-8"))
    assert document["report"]["rollout"]["derived_from"] == fleet.report.answer.solution.fingerprint

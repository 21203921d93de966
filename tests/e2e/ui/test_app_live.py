"""The app beside a controller and a cluster: what was decided, a live fleet as a draft, a plan that is compared; as a browser shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from models.hardware import Pool
from models.observation import Observation
from tests.browsing import App, by_command, running
from tests.e2e.ui.test_app_accessible import AXE_THERE, violations
from tests.live_app import SCENARIO, a_fleet, live_variables
from tests.live_objects import LiveCluster
from tests.loopback import free_port
from tests.observed_fleets import a_variant, engines_of, some_traffic
from tests.visiting import Visitor

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("kube")]

Visits = Callable[..., Visitor]


@pytest.fixture(scope="module")
def fleet() -> LiveCluster:
    """The cluster that the app is led to."""
    return a_fleet()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, fleet: LiveCluster) -> Iterator[App]:
    """The app as somebody starts it who has a controller, and allows to apply."""
    folder, port = tmp_path_factory.mktemp("live"), free_port()
    with live_variables(fleet, folder) as more:
        command = by_command(port)
        with running(command, folder=folder / "cache", port=port, scenario=SCENARIO, more=more) as found:
            yield found


def looked_at(person: Visitor, name: str, shots: Path) -> dict[str, Any]:
    """What keeps people out of a page, and what reaches beyond its edge; pictures are kept."""
    found: dict[str, Any] = {}
    for scheme in ("light", "dark"):
        person.page.emulate_media(color_scheme=scheme)
        if AXE_THERE:
            found[scheme] = violations(person.drawn())
        for width, called in ((1400, "wide"), (400, "narrow")):
            person.widened(width).picture(shots / f"{name}-{scheme}-{called}.png")
            found[called] = person.wider_than_the_window()
    person.widened(1400)
    return {name: each for name, each in found.items() if each}


def test_the_last_decisions_are_there_with_reasons_history_and_freshness(
    visitor: Visits, live: App, shots: Path
) -> None:
    person = visitor(at=live).open().solved().visit("fleet_now").sees("Decisions").sees("History").drawn()
    assert person.metric("Variants") == "1"
    assert "one leads" in person.text()
    assert looked_at(person, "fleet-now-live", shots) == {}


def test_a_plan_is_compared_carried_out_after_the_right_words_and_undone(
    visitor: Visits, live: App, fleet: LiveCluster, shots: Path
) -> None:
    person = visitor(at=live).open().solved().visit("apply").sees("On the cluster")
    before = counts(fleet)
    person.press("Compare (dry run)").sees("that differ from the cluster")
    assert person.button("Apply").is_disabled()
    assert looked_at(person, "apply-compared", shots) == {}
    carry_out(person, "Apply")
    assert counts(fleet) != before
    assert looked_at(person, "apply-done", shots) == {}
    person.fold_out("The way back")
    carry_out(person, "Lead back")
    assert counts(fleet) == before
    assert "hunter2" not in person.page.content()


def carry_out(person: Visitor, label: str) -> None:
    """Type what is asked for, press, and wait for the end."""
    code = person.page.locator("code", has_text=re.compile(r"^(apply|undo) [0-9a-f]{6}$")).first.inner_text()
    person.does(lambda: person.fill("Confirmation", code)).can(label).press(label)
    person.sees(re.compile("the clusters have what the plan says"))
    person.sees(re.compile(f"{'back' if label == 'Lead back' else 'there'}-.*jsonl")).settled()


def counts(fleet: LiveCluster) -> tuple[int, int]:
    return fleet.wanted("llama-a100", "serving"), fleet.wanted("llama-h100", "serving")


def test_a_recorded_observation_opens_as_a_draft_with_what_is_assumed(
    visitor: Visits, live: App, tmp_path: Path
) -> None:
    fast = a_variant("fast", ready=3, model="meta-llama/Llama-3.1-8B-Instruct", min_replicas=1)
    seen = Observation(
        at_s=1.8e9,
        variants=(fast,),
        engines=engines_of(fast, (0.6, 0), model="meta-llama/Llama-3.1-8B-Instruct"),
        traffic=(some_traffic(model="meta-llama/Llama-3.1-8B-Instruct"),),
        pools=(Pool.model_validate({"id": "h", "accelerator": "H100", "nodes": [{"id": "n0", "gpus": 8}]}),),
    )
    path = tmp_path / "seen.json"
    path.write_text(seen.canonical_json(), encoding="utf-8")
    person = visitor(at=live).open().solved().fold_out("Open or keep")
    chooser = person.page.locator('input[type="file"]').first
    person.does(lambda: chooser.set_input_files(path))
    person.page.get_by_text("seen.json").first.wait_for()
    person.press("Open files")
    person.page.get_by_role("heading", level=1, name="observed").wait_for()
    person.fold_out("Assumed").sees("no promises on latency are known")
    person.press("Solve").solved()

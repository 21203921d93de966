"""`fleetplan controller run` as a user starts it: a process of its own, told by a file, scraped by the Prometheus of the stage."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from tests.e2e.controller.world import World
from tests.e2e.kube.control_plane import wait_until
from tests.loopback import free_port

__all__ = ["ControllerProcess", "settings_of"]

_SAMPLE: Final = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


def settings_of(
    world: World, namespace: str, *, kubeconfig: Path | None = None, **more: Any
) -> dict[str, Any]:
    """Settings for one fleet, with short times; ``more`` in place of what is here, rules field by field."""
    way = {"kubeconfig": str(kubeconfig or world.plane.kubeconfig()), "timeout_s": 2, "within_s": 4}
    rules = {"policy": "wva-v2", "stabilize_down_s": 3} | more.pop("rules", {})
    drain = {"settle_s": 1, "limit_s": 60, "gates": True}
    source = {"url": world.prometheus.url, "timeout_s": 2, "within_s": 4, "power": False}
    return {
        "act": True,
        "cycle_s": 1,
        "trigger_s": 1,
        "timeout_s": 20,
        "namespaces": [namespace],
        "clusters": [way],
        "sources": [{"name": "prometheus", "options": source}],
        "actuators": [{"name": "draining", "options": drain}, {"name": "gauge"}],
        "rules": rules,
        "lease": {"namespace": namespace, "lease_s": 6, "renew_s": 4.5, "retry_s": 0.5},
    } | more


class ControllerProcess:
    """A controller, as long as the block lasts.

    Args:
        world: in which it runs.
        folder: for settings, records and log.
        settings: as its file holds them.
        name: of its pod, so to say.
    """

    def __init__(
        self, world: World, folder: Path, settings: Mapping[str, Any], *, name: str = "controller"
    ) -> None:
        self.name = name
        self.folder = folder / name
        self.port = free_port()
        self._world = world
        self._settings = dict(settings)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.folder.mkdir()
        server, records = {"port": self.port}, {"folder": str(self.folder / "records"), "heartbeat_s": 1}
        told = self._settings | {"server": server, "records": records}
        (self.folder / "controller.yaml").write_text(json.dumps(told, indent=1))
        labels = {"namespace": "fleetplan", "pod": self.name, "job": "controller"}
        target = {"targets": [f"127.0.0.1:{self.port}"], "labels": labels}
        self._world.prometheus.tell(self.name, [target])
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._world.prometheus.tell(self.name, [])
        if self._process is not None:
            ended = self.stop()
            assert ended == 0, f"it ended with {ended}: {self.log[-2000:]}"
        assert "Traceback" not in self.log, self.log[-4000:]

    @property
    def log(self) -> str:
        """What it said."""
        return (self.folder / "log").read_text()

    def start(self) -> None:
        """Start it, also again, and wait until it answers."""
        command = [str(Path(sys.executable).with_name("fleetplan")), "controller", "run"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--config", str(self.folder / "controller.yaml")],
                stdout=log,
                stderr=log,
                env=os.environ | {"PYTHONFAULTHANDLER": "1"},
            )
        try:
            wait_until(self._answers, within_s=120, what="the controller")
        except BaseException:
            self.kill()
            raise

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"it ended: {self.log[-2000:]}"
        return self._get("/metrics") is not None

    def stop(self) -> int:
        """End it as a kubelet would; its exit code."""
        process, self._process = self._process, None
        assert process is not None
        process.terminate()
        try:
            return process.wait(90)
        except subprocess.TimeoutExpired:
            # Python tells where each thread is.
            process.send_signal(signal.SIGABRT)
            process.wait(10)
            raise AssertionError(f"it did not end within 90 s of SIGTERM: {self.log[-4000:]}") from None

    def kill(self) -> None:
        """End it as a machine that is switched off would."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        process.wait(10)

    def desired(self) -> dict[str, int]:
        """What its gauge says, by variant; nothing where it does not lead."""
        page = self._get("/metrics") or ""
        found: dict[str, int] = {}
        for name, inside, value in _SAMPLE.findall(page):
            if name == "wva_desired_replicas":
                variant = re.findall(r'variant_name="([^"]*)"', inside)[0]
                assert variant not in found, f"{variant} has two series"
                found[variant] = round(float(value))
        return found

    def leads(self) -> bool:
        """Whether it leads."""
        page = self._get("/metrics") or ""
        return ("fleetplan_controller_leader", "", "1") in _SAMPLE.findall(page)

    def cycles(self) -> int:
        """How many it has made since its start."""
        page = self._get("/metrics") or ""
        found = (
            value for name, _, value in _SAMPLE.findall(page) if name == "fleetplan_controller_cycles_total"
        )
        return round(sum(map(float, found)))

    def wait_cycles(self, count: int, *, within_s: float = 60.0) -> None:
        """Until it has made so many more."""
        seen = self.cycles()
        wait_until(lambda: self.cycles() >= seen + count, within_s=within_s, what=f"{count} cycles")

    def status(self) -> dict[str, Any]:
        """What it says of itself."""
        return json.loads(self._get("/status") or "{}")  # type: ignore[no-any-return]

    def records(self) -> list[dict[str, Any]]:
        """What it wrote down, the first first."""
        files = sorted((self.folder / "records").glob("*.jsonl*"))
        return [json.loads(each) for file in files for each in file.read_text().splitlines()]

    def _get(self, path: str) -> str | None:
        """A page; None: nobody answers, or not well."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=3) as answer:
                return str(answer.read().decode())
        except (OSError, urllib.error.HTTPError):
            return None

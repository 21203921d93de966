"""A real Prometheus that a test starts, stops and starts again, and the adapter that the HPA controller asks through it."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

import yaml

from tests.e2e.kube.control_plane import wait_until
from tests.loopback import free_port

__all__ = ["PROMETHEUS", "PrometheusServer"]

PROMETHEUS: Final = shutil.which("prometheus")
"""The binary; None: it is not installed."""
_KIT: Final = Path(__file__).parents[3] / "deploy" / "monitoring" / "prometheus-adapter.yaml"
_RULE: Final = yaml.safe_load(_KIT.read_text())["rules"]["external"][0]["metricsQuery"]


class PrometheusServer:
    """Looks every second at targets that it is told of, as long as the block lasts.

    Args:
        folder: for settings, data and log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._targets: dict[str, list[dict[str, Any]]] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        found = {"files": [str(self.folder / "targets.json")], "refresh_interval": "1s"}
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "900ms"},
            "scrape_configs": [{"job_name": "found", "file_sd_configs": [found]}],
        }
        (self.folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        self.tell("nobody", [])
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def tell(self, who: str, targets: Sequence[dict[str, Any]]) -> None:
        """These are the targets that somebody knows, in place of those that he told before."""
        self._targets[who] = list(targets)
        part = self.folder / "targets.part"
        part.write_text(json.dumps([each for known in list(self._targets.values()) for each in known]))
        part.replace(self.folder / "targets.json")

    def start(self) -> None:
        """Start it, also again, if it does not run; it remembers."""
        if self._process is not None:
            return
        command = [
            str(PROMETHEUS), f"--config.file={self.folder / 'prometheus.yml'}", f"--storage.tsdb.path={self.folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn",
            # Hidden, and 5 s without; what the discovery takes comes on top, 5 s at most.
            "--scrape.discovery-reload-interval=200ms",
        ]  # fmt: skip
        with (self.folder / "prometheus.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self._is_ready, what="Prometheus")

    def stop(self) -> None:
        """End it; nobody answers at its address."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def query(self, text: str) -> list[tuple[Mapping[str, str], float]]:
        """Labels and values of an instant vector.

        Raises:
            OSError: it did not answer.
        """
        url = f"{self.url}/api/v1/query?query={quote(text)}"
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - loopback
            found = json.load(answer)["data"]["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def read(self, namespace: str, name: str, labels: Mapping[str, str]) -> float | None:
        """What prometheus-adapter says of an external metric by the rule of our deploy kit; None: nothing.

        Series of the controller carry the namespace of a variant as ``exported_namespace``, since ``namespace`` is its own.
        """
        matchers = {"exported_namespace": namespace} | dict(labels)
        inside = ",".join(f'{key}="{value}"' for key, value in matchers.items())
        asked = _RULE.replace("<<.Series>>", name).replace("<<.LabelMatchers>>", inside)
        try:
            found = self.query(asked)
        except OSError:
            return None
        assert len(found) <= 1, f"the HPA would add up {found}"
        return found[0][1] if found else None

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"it ended: see {self.folder / 'prometheus.log'}"
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1):  # noqa: S310 - loopback
                return True
        except OSError:
            return False

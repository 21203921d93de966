"""``controller run|config|status`` as people type them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planner.cli import app
from planner.clock import FakeClock, SystemClock
from tests.control.controller_builders import START, Served, Told, a_controller, led
from tests.loopback import free_port


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("FLEETPLAN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))


def run(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["controller", *map(str, arguments)])


def offline(folder: Path) -> list[str]:
    """Options of a controller without cluster: accelerators and pages of engines are files."""
    inventory = folder / "inventory.yaml"
    inventory.write_text("pools: [{id: H100, accelerator: H100, nodes: [{id: n1, gpus: 8}]}]")
    page = folder / "llama.1777142838.prom"
    page.write_text('vllm:num_requests_running{model_name="llama"} 3\n')
    discovery = f"discovery={{name: file, options: {{path: {inventory}}}}}"
    return ["--set", discovery, "--set", f"sources=[{{name: files, options: {{paths: [{page}]}}}}]"]


class TestConfig:
    def test_every_value_has_an_origin(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("FLEETPLAN_CONTROLLER_RULES__TAU_KV", "0.7")
        file = tmp_path / "c.yaml"
        file.write_text("cycle_s: 20\nrules: {policy: wva}\n")
        done = run("config", "--config", file, "-n", "prod", "--json")
        assert done.exit_code == 0
        found = {
            each["path"]: (each["value"], each["origin"]) for each in json.loads(done.stdout)["settings"]
        }
        assert found["rules.tau_kv"] == (0.7, "FLEETPLAN_CONTROLLER_RULES__TAU_KV")
        assert found["cycle_s"] == (20.0, f"{file}:1")
        assert found["namespaces"] == (["prod"], "--namespace")
        assert found["rules.tau_queue"] == (5.0, "default")

    def test_only_what_is_set_where_asked_for(self) -> None:
        done = run("config", "--set-only", "--policy", "planner")
        assert done.exit_code == 0
        assert "rules.policy" in done.stdout
        assert "tau_queue" not in done.stdout

    def test_a_later_file_goes_before_an_earlier(self, tmp_path: Path) -> None:
        for name, value in (("a.yaml", 20), ("b.yaml", 30)):
            (tmp_path / name).write_text(f"cycle_s: {value}")
        done = run("config", "--config", tmp_path / "a.yaml", "--config", tmp_path / "b.yaml", "--json")
        assert '"value": 30.0' in done.stdout

    def test_everything_wrong_is_said_at_once(self, tmp_path: Path) -> None:
        (tmp_path / "c.yaml").write_text("cycles: 3")
        done = run(
            "config",
            "--config",
            tmp_path / "c.yaml",
            "--set",
            "rules.tau_kv=7",
            "--listen",
            "here",
            "--cycle",
            "0",
        )
        assert done.exit_code == 2
        for said in ("did you mean 'cycle_s'?", "rules.tau_kv: found 7", "HOST:PORT", "--cycle: cycle_s"):
            assert said in done.stderr

    def test_secrets_are_hidden(self) -> None:
        done = run("config", "--set", "sources=[{name: prometheus, options: {bearer_token: hunter2}}]")
        assert done.exit_code == 0
        assert "hunter2" not in done.stdout


class TestRun:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--once", "--yes", "--dry-run"], "--yes and --dry-run"),
            (
                ["--once", "--set", "discovery={name: file, options: {path: /nowhere}}"],
                "no source of metrics",
            ),
            (["--once", "--prometheus", "http://10.0.0.1:9090"], "allow_http"),
            (["--once", "--prometheus", "http://127.0.0.1:1", "--context", "nope"], "context 'nope'"),
            (
                ["--once", "--set", "actuators=[{name: gauges}]", "--prometheus", "http://127.0.0.1:1"],
                "did you mean 'gauge'?",
            ),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_what_cannot_work_is_refused(self, arguments: list[str], said: str) -> None:
        done = run("run", *arguments)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr

    def test_one_cycle_without_a_cluster(self, tmp_path: Path) -> None:
        done = run("run", "--once", "--json", "--records", tmp_path / "records", *offline(tmp_path))
        assert done.exit_code in {0, 4}, done.output
        record = json.loads(done.stdout.splitlines()[-1])
        assert (record["number"], record["dry_run"]) == (1, True)
        assert list((tmp_path / "records").glob("cycles-*.jsonl"))

    def test_sigterm_ends_a_process_well(self, tmp_path: Path) -> None:
        port = free_port()
        command = [
            sys.executable, "-m", "planner.cli", "controller", "run", "--cycle", "1", "--listen", f"127.0.0.1:{port}",
            *offline(tmp_path),
        ]  # fmt: skip
        if not (Path(__file__).parents[2] / "planner" / "cli" / "__main__.py").exists():
            command[1:3] = ["-c", "from planner.cli import main; main()"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            assert _answers(f"http://127.0.0.1:{port}/healthz")
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
            process.wait(10)
        assert process.returncode == 0, said
        assert b"event=controller_ended" in said
        assert b"Traceback" not in said


def _answers(url: str) -> bool:
    clock = SystemClock()
    # Far longer than it takes: the machine may have much else to do.
    for _ in range(1500):
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            clock.sleep(0.1)
    return False


class TestStatus:
    def test_nobody_there_is_try_again(self) -> None:
        done = run("status", "--url", f"http://127.0.0.1:{free_port()}", "--timeout", "2")
        assert done.exit_code == 4
        assert "is a controller running there?" in done.stderr

    def test_records_tell(self, tmp_path: Path) -> None:
        controller: Any = led(a_controller(Served(), Told(kv=0.78), clock=FakeClock(START), records=tmp_path))
        controller.cycle(("timer",))
        done = run("status", "--records", tmp_path)
        assert done.exit_code == 0
        assert "prod/llama-hpa" in done.stdout
        assert "ScaledUp" in done.stdout
        found = json.loads(run("status", "--records", tmp_path, "--json").stdout)
        assert found["decisions"][0]["desired"] == 3

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--records", "nowhere"], "no controller has written anything"),
            (["--records", ".", "--url", "http://127.0.0.1:1"], "--url beside it"),
            (["--url", "nonsense"], "no address"),
            (["--url", "http://10.0.0.1:9470"], "http to another machine"),
        ],
        ids=str,
    )
    def test_what_cannot_be_asked_is_refused(self, arguments: list[str], said: str) -> None:
        done = run("status", *arguments)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr

"""The built wheel, in a clean virtual environment, away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SCENARIO: Final = "scenarios/01-two-variants.yaml"

# One worker builds for all tests of this file.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]


@dataclass(frozen=True)
class Installation:
    """A virtual environment that holds the wheel."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return self.folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"

    @property
    def data(self) -> Path:
        return self.site_packages / "planner" / "_data"

    def run(self, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the installed command in ``folder`` with nothing of the checkout in its environment."""
        strange = ("PYTHON", "FLEETPLAN_", "VIRTUAL_ENV")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        command = [str(self.folder / "bin" / "fleetplan"), *arguments]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )


def run(*command: object) -> None:
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def build(out: Path, *kinds: str) -> Path:
    """Build with the tools that are installed: an isolated build would fetch them from the network."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, *kinds)
    return next(out.glob("*.whl"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"), "--wheel")


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = Installation(tmp_path_factory.mktemp("clean") / "venv")
    run(sys.executable, "-m", "venv", "--without-pip", made.folder)
    run(sys.executable, "-m", "pip", "--python", made.python, "install", "--no-deps", "--no-index", wheel)
    # Dependencies are lent from this environment, so that the test needs no network. A folder that
    # a .pth file names is searched, but its own .pth files are not read: the editable install of the
    # checkout stays out of sight.
    lenders = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    (made.site_packages / "lent.pth").write_text("\n".join(lenders) + "\n", encoding="utf-8")
    return made


def test_the_wheel_holds_our_two_packages_and_nothing_else(wheel: Path) -> None:
    names = contents(wheel)
    version = wheel.name.split("-")[1]
    assert {name.partition("/")[0] for name in names} == {
        "models",
        "planner",
        f"fleetplan-{version}.dist-info",
    }
    assert {"models/py.typed", "planner/py.typed"} <= set(names)


def test_data_travels_inside_planner(wheel: Path) -> None:
    prefix = "planner/_data/"
    travelled = {name.removeprefix(prefix) for name in contents(wheel) if name.startswith(prefix)}
    data = ROOT / "data"
    assert travelled == {path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file()}
    assert SCENARIO in travelled


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    assert contents(build(tmp_path)) == contents(wheel)


def test_the_installed_packages_are_those_of_the_wheel(installation: Installation, tmp_path: Path) -> None:
    code = "import models, planner; print(models.__file__); print(planner.__file__)"
    done = subprocess.run(
        [installation.python, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    expected = [str(installation.site_packages / name / "__init__.py") for name in ("models", "planner")]
    assert done.stdout.split() == expected


@pytest.mark.e2e
def test_the_installed_command_plans_the_first_scenario(installation: Installation, tmp_path: Path) -> None:
    done = installation.run("plan", str(installation.data / SCENARIO), "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] == "OPTIMAL"
    assert answer["violations"] == []
    assert sum(allocation["replicas"] for allocation in answer["allocations"]) > 0

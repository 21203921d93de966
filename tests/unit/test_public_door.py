"""``import planner`` is light, lazy, and refuses a stranger called ``models``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import planner

ROOT: Final = Path(__file__).parents[2]
HEAVY: Final = (
    "highspy", "kubernetes", "numpy", "ortools", "pandas", "pulp", "ray", "rich", "streamlit", "typer", "yaml",
)  # fmt: skip


def run_python(code: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that finds packages in ``paths`` first."""
    program = f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}\n{code}"
    return subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)


def test_importing_the_door_loads_nothing_heavy() -> None:
    done = run_python(f"import planner; print(sorted(set({HEAVY!r}) & set(sys.modules)))", ROOT)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


def test_the_door_lists_what_it_offers() -> None:
    assert set(planner.__all__) <= set(dir(planner))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'paln'"):
        planner.paln  # noqa: B018 - reading it is the test


@pytest.mark.parametrize("marker", ["", "SCHEMA = 'theirs/1'\n"])
def test_a_foreign_models_package_is_named_by_its_path(tmp_path: Path, marker: str) -> None:
    intruder = tmp_path / "models" / "__init__.py"
    intruder.parent.mkdir()
    intruder.write_text(marker, encoding="utf-8")
    done = run_python("import planner", tmp_path, ROOT)
    last_line = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last_line.startswith(f"ImportError: the package 'models' at {intruder} hides fleetplan's own")

"""The benchmark of the twin still runs and writes its table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]


@pytest.mark.benchmark
def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    trace, document = tmp_path / "t.csv", tmp_path / "doc.md"
    trace.write_text("arrival_s,input_tokens,output_tokens\n" + "".join(f"{k},100,10\n" for k in range(50)))
    document.write_text("before\n<!-- twin speed: begin -->\nold\n<!-- twin speed: end -->\nafter\n")
    command = [sys.executable, str(ROOT / "tests/benchmarks/twin_speed.py"), "--azure", str(trace)]
    subprocess.run(
        [*command, "--sizes", "200,400", "--write", str(document)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    lines = document.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "old" not in lines
    assert [line.split(" | ")[1] for line in lines if line.startswith("| ")][1:] == [
        "50",
        "200",
        "400",
        "400",
    ]

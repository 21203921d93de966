"""The benchmark of reading a large fleet runs, on a small one."""

from __future__ import annotations

import pytest

from tests.benchmarks.control_speed import pages, prometheus

pytestmark = pytest.mark.benchmark


def test_the_benchmark_reads_every_engine_and_misses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    prometheus(60, services=6)
    pages(2)
    shown = capsys.readouterr().out
    assert "60 engines, 6 services" in shown
    assert "findings: []" in shown
    assert "every question" in shown
    assert "pages/s" in shown

"""Charts become pictures whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import ConfigurationError

alt = pytest.importorskip("altair", reason="the extra 'plots' is not installed")
pytest.importorskip("vl_convert", reason="the extra 'plots' is not installed")


def _chart() -> object:
    from planner.charts import styled

    data = alt.Data(values=[{"x": 1, "y": 2}, {"x": 2, "y": 3}])
    return styled(alt.Chart(data).mark_line().encode(x="x:Q", y="y:Q"))


@pytest.mark.parametrize(
    ("name", "opening"),
    [("a.png", b"\x89PNG"), ("a.svg", b"<svg"), ("a.json", b"{"), ("a.html", b"<!DOCTYPE")],
)
def test_a_chart_is_written_in_the_format_of_its_suffix(tmp_path: Path, name: str, opening: bytes) -> None:
    from planner.charts import save_chart

    save_chart(_chart(), tmp_path / name)
    assert (tmp_path / name).read_bytes().lstrip().startswith(opening)
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.exe", "a", "missing/a.svg"])
def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    from planner.charts import save_chart

    with pytest.raises(ConfigurationError):
        save_chart(_chart(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []

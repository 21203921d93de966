"""A chart as a picture on disk, made without a browser and without the network."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from planner.errors import ConfigurationError, Finding

__all__ = ["save_chart"]

_SUFFIXES: Final = (".png", ".svg", ".html", ".json")


def save_chart(chart: Any, path: Path, *, scale: float = 2.0) -> None:  # noqa: ANN401 - any kind of Altair chart
    """Write a chart; the suffix of the path says how.

    Args:
        chart: any Altair chart.
        path: ends in .png, .svg, .html or .json; replaced at once or not at all.
        scale: pixels per point of a PNG.

    Raises:
        ConfigurationError: another suffix, or the file cannot be written.
    """
    if path.suffix not in _SUFFIXES:
        allowed = f"a name that ends in {', '.join(_SUFFIXES)}"
        raise ConfigurationError.from_findings(
            [Finding(str(path), None, "", f"suffix {path.suffix!r}", allowed)]
        )
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".chart-") as folder:
            draft = Path(folder) / f"chart{path.suffix}"
            more = {"scale_factor": scale} if path.suffix == ".png" else {}
            inline = {"inline": True} if path.suffix == ".html" else {}
            chart.save(str(draft), **more, **inline)
            draft.replace(path)
    except OSError as cause:
        found = f"a file that cannot be written: {cause.strerror or cause}"
        raise ConfigurationError.from_findings([Finding(str(path), None, "", found)]) from cause

"""Write the versions that pip resolved as a constraints file: names and versions, no address.

Usage: lock.py REPORT OUT, where REPORT is the file that ``pip install --report`` wrote.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

OWN_NAME: Final = "fleetplan"
HEADING: Final = "# Made by `make lock`; the versions that continuous integration installs.\n"


def pins(report: dict[str, Any]) -> list[str]:
    """``name==version`` of every resolved distribution but our own, sorted."""
    resolved = (item["metadata"] for item in report["install"])
    named = {entry["name"].lower().replace("_", "-"): entry["version"] for entry in resolved}
    return sorted(f"{name}=={version}" for name, version in named.items() if name != OWN_NAME)


def main() -> None:
    """Read the report named first, write the constraints file named second."""
    report, out = (Path(argument) for argument in sys.argv[1:])
    lines = pins(json.loads(report.read_text(encoding="utf-8")))
    out.write_text(HEADING + "".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()

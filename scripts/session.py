"""Write the session of the README anew: every command between the marks is run and its real output put in.

Usage: session.py FLEETPLAN, with FLEETPLAN the command to run, e.g. .venv/bin/fleetplan. Times are left as they were
measured; run it from the root of a checkout.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

README: Final = Path("README.md")
BEGIN: Final = "<!-- session: begin -->"
END: Final = "<!-- session: end -->"

ANSWER: Final = "/tmp/two-variants.json"  # noqa: S108 - as a reader would type it
STEPS: Final = (
    ("", f"fleetplan plan data/scenarios/01-two-variants.yaml -o {ANSWER}"),
    (
        "The answer is a file; what would carry it out, step by step and with the way back, comes from it:",
        f"fleetplan commands {ANSWER} --format kubectl | sed -n '/^# Wave/,$p'",
    ),
    (
        "Twelve services that contend for three pools, every rate measured: the optimum beside the published heuristics",
        "fleetplan plan data/scenarios/02-contention.yaml | sed -n '/unserved  *worst/,/^now/p'",
    ),
    (
        "A wish that cannot be fulfilled is an answer too. Scenario 03 is scenario 02 under a power cap (exit code 3):",
        "fleetplan plan data/scenarios/03-power-cap.yaml | head -12",
    ),
    (
        "A mistake is named where it stands, and all of them at once (exit code 2):",
        "fleetplan plan data/scenarios/01-two-variants.yaml --set pools.a100.acelerator=A100"
        " --set services.chat.slo.ttft='3 sonds'",
    ),
)


def output_of(fleetplan: str, command: str) -> str:
    """What a command prints, both streams, 80 columns, no color."""
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1"}
    line = re.sub(r"^fleetplan\b", fleetplan, command)
    done = subprocess.run(  # noqa: S602 - the lines above, with a pipe in one of them
        line,
        shell=True,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return "\n".join(text.rstrip() for text in done.stdout.rstrip().splitlines())


def session(fleetplan: str) -> str:
    """All steps with their output."""
    parts = []
    for words, command in STEPS:
        shown = f"```\n$ {command}\n{output_of(fleetplan, command)}\n```"
        parts.append(f"{words}\n\n{shown}" if words else shown)
    return "\n\n".join(parts)


def main() -> None:
    """Replace what stands between the marks."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(f"{before}{BEGIN}\n\n{session(sys.argv[1])}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Draw the screen of a command as an SVG: picture.py OUT.svg COMMAND [ARGUMENT...].

The command runs as in a terminal of 80 columns with colors; what it prints is drawn as it stands.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

COLUMNS: Final = 80


def screen_of(command: list[str]) -> str:
    """What a command prints on a color terminal."""
    environment = os.environ | {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    done = subprocess.run(  # noqa: S603 - the command is the point
        [*command, "--color"],
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return done.stdout


def main() -> None:
    """Run and draw."""
    out, *command = sys.argv[1:]
    shown = Path(command[0]).name
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {' '.join([shown, *command[1:]])}", style="bold"))
    console.print(Text.from_ansi(screen_of(command)))
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    # The fonts that rich names lie on the network; any monospaced one of the reader does.
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title=shown, code_format=template)
    Path(out).write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

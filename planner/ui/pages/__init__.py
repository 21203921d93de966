"""The pages of the app, one file each: inputs, one call, a drawing. A new page is a file and a line here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["PAGES", "PageFile"]


@dataclass(frozen=True, slots=True)
class PageFile:
    """One page.

    Attributes:
        name: of its file here, and its place in the address bar.
        title: in the navigation.
        icon: a Material symbol.
    """

    name: str
    title: str
    icon: str

    @property
    def path(self) -> Path:
        """The file that Streamlit runs."""
        return Path(__file__).parent / f"{self.name}.py"


PAGES: Final = (
    PageFile("plan", "Plan", ":material/account_tree:"),
    PageFile("what_if", "What-if", ":material/compare_arrows:"),
    PageFile("trade_offs", "Trade-offs", ":material/balance:"),
    PageFile("candidate", "Candidate", ":material/memory:"),
    PageFile("moves", "Moves", ":material/route:"),
    PageFile("elastic_ep", "Elastic EP", ":material/open_in_full:"),
    PageFile("replay", "Replay", ":material/replay:"),
    PageFile("apply", "Apply", ":material/rocket_launch:"),
    PageFile("fleet_now", "Fleet now", ":material/monitor_heart:"),
)

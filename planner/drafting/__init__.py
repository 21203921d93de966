"""An observation as the draft of a scenario: what was seen, and every assumption about what was not."""

from planner.drafting.drafting import Draft, draft_scenario

__all__ = ["Draft", "draft_scenario"]

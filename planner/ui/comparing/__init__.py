"""Drafts side by side: what is changed in each, what came of it, and why. Nothing but panels knows of a screen."""

__all__: list[str] = []

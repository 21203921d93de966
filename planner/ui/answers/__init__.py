"""Answers on the screen: each module draws one part of a report."""

__all__: list[str] = []

"""Compiled arrays: the event loop and the engines that it steps."""

__all__: list[str] = []

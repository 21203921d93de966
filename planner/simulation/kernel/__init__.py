"""Compiled arrays: the event loop and the engines that it steps."""

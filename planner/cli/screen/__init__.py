"""Screens: values in, tables and sentences out; readable on 80 columns and complete in a pipe."""

__all__: list[str] = []

"""Engines: adapters that answer one integer program with one goal. Each solver library is named in one file only."""

__all__: list[str] = []

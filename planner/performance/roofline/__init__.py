"""Latencies of what nobody measured, from the peak figures of the hardware and fitted shares of them."""

__all__: list[str] = []

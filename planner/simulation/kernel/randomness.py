"""Chance with a state of its own: SplitMix64 (Steele, Lea, Flood 2014) and normal draws by Box and Muller."""

from __future__ import annotations

import math

import numpy as np

from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.state import Words

__all__ = ["normal", "uniform"]


@compiled
def uniform(random: Words) -> float:
    """A draw from [0, 1)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def normal(random: Words) -> float:
    """A standard normal draw."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(random)))
    return radius * math.cos(2.0 * math.pi * uniform(random))

"""Every covering below a limit is listed, none above it, and none from which an item can be left out is missing more."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from planner.optimization.backends.column_generation.enumeration import Coverable, coverings_within


def a_block(seed: int) -> Coverable:
    rng = np.random.default_rng(seed)
    n, rows, limits = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(0, 3))
    filled = bool(rng.integers(2))
    return Coverable(
        w=rng.integers(1, 20, n).astype(float),
        a=rng.integers(0, 6, (rows, n)),
        b=rng.integers(0, 12, rows),
        u=rng.integers(0, 4, n),
        uses=rng.integers(0, 3, (limits, n)),
        most=rng.integers(0, 8, limits),
        wf=float(rng.integers(1, 5)),
        af=rng.integers(0, 3, rows) if filled else np.zeros(rows, np.int64),
        uf=int(rng.integers(1, 6)) if filled else 0,
    )


def _fillers(block: Coverable, x: np.ndarray) -> int | None:
    need = block.b - block.a @ x
    for steps in range(block.uf + 1):
        if (need - block.af * steps <= 0).all():
            return steps
    return None


def _is_listed(block: Coverable, x: np.ndarray, limit: float) -> bool:
    """Whether x must be listed: it covers, fits, costs at most the limit, and every item of it helps some need."""
    steps = _fillers(block, x)
    if steps is None or (block.uses @ x > block.most).any() or block.w @ x + steps * block.wf > limit:
        return False
    for item in np.flatnonzero(x):
        less = x.copy()
        less[item] -= 1
        if _fillers(block, less) == steps:
            return False
    return True


@pytest.mark.parametrize("seed", range(300))
def test_what_must_be_listed_is_listed_and_what_is_listed_covers(seed: int) -> None:
    block = a_block(seed)
    limit = float(np.random.default_rng(seed + 1000).integers(0, 60))
    listed = coverings_within(block, limit, most=5_000, nodes=200_000)
    assert listed.complete
    found = {tuple(counts) for counts in listed.counts.tolist()}
    assert len(found) == len(listed.counts)
    for x in product(*(range(most + 1) for most in block.u.tolist())):
        if _is_listed(block, np.array(x), limit):
            assert x in found
    for counts, steps in zip(listed.counts, listed.fillers, strict=True):
        assert (block.a @ counts + block.af * steps >= block.b).all()
        assert (block.uses @ counts <= block.most).all()
        assert (counts <= block.u).all()
        assert block.w @ counts + steps * block.wf <= limit * (1 + 1e-9)


@pytest.mark.parametrize(("most", "nodes"), [(1, 10**6), (10**4, 5)])
def test_what_has_no_room_is_said(most: int, nodes: int) -> None:
    block = a_block(7)._replace(b=np.array([9]), a=np.array([[1, 2, 3]]), u=np.full(3, 9), w=np.ones(3), uses=np.zeros((0, 3), np.int64), most=np.zeros(0, np.int64), af=np.zeros(1, np.int64), uf=0)  # fmt: skip
    assert not coverings_within(block, 9.0, most=most, nodes=nodes).complete

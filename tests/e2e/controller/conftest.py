"""One world for all tests of the controller; each test has a fleet of its own in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.controller.world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Everything runs; modules say ``pytestmark = controller_test()``."""
    with World(tmp_path_factory.mktemp("world"), Path(os.environ["KUBEBUILDER_ASSETS"])) as found:
        yield found

"""One control plane for all tests against a real API; each test has a namespace of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.control.cluster.kinds import NAMESPACES
from tests.e2e.kube.control_plane import ControlPlane

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with scheduler that no test stops; modules say ``pytestmark = kube_test()``."""
    binaries = Path(os.environ["KUBEBUILDER_ASSETS"])
    with ControlPlane(tmp_path_factory.mktemp("kube"), binaries, scheduler=True) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace that nobody else uses; its end is begun, and not waited for."""
    name = f"test-{next(_NUMBERS)}"
    control_plane.admin.create(NAMESPACES, "", {"metadata": {"name": name}})
    yield name
    control_plane.admin.delete(NAMESPACES, "", name)

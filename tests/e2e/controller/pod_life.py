"""Plays the kubelets of engine pods: an engine for each, ready after a start, drained and ended as their spec says.

A pod gets an address of the loopback network of its own. When it is deleted, its preStop hook runs; then comes SIGTERM, at
which vLLM ends; at the end of the grace period comes SIGKILL.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from planner.clock import SystemClock
from planner.control.cluster import Api
from planner.control.cluster.reading import (
    Object,
    at,
    count_at,
    is_ending,
    is_ready,
    items_of,
    labels_of,
    name_of,
    namespace_of,
    text_at,
)
from tests.e2e.controller.background import Background
from tests.e2e.controller.engine_server import Engine, EngineSize
from tests.e2e.controller.traffic import Endpoint
from tests.e2e.kube.kubelet import Kubelets, running_status
from tests.loopback import free_port

__all__ = ["EngineKubelets", "Living"]

_CLOCK: Final = SystemClock()
_GRACE_S: Final = 30


@dataclass
class Living:
    """An engine pod that has a node."""

    pod: Object
    address: str
    engine: Engine | None = None
    since_s: float = field(default_factory=_CLOCK.monotonic_s)
    ending_s: float | None = None
    hook: subprocess.Popen[bytes] | None = None
    lost: bool = False
    told: tuple[str, bool] | None = None


class EngineKubelets(Kubelets):
    """Kubelets that run engines.

    Args:
        api: as administrator.
        background: where engines live.
        size_of: what the engine of a pod can do; None: the pod is no engine.
        found: is told of targets for Prometheus, whenever they change.
    """

    def __init__(
        self,
        api: Api,
        background: Background,
        size_of: Callable[[Object], EngineSize | None],
        found: Callable[[list[dict[str, Any]]], None],
    ) -> None:
        super().__init__(api)
        self.port = free_port()
        self.start_s: dict[str, float] = {}
        """How long pods of a namespace take to start, s, where it is not ``ready_after_s``."""
        self.living: dict[str, Living] = {}
        self.busy_at_end: dict[tuple[str, str], int] = {}
        """Requests that pods held when their end began, by namespace and pod."""
        self._background = background
        self._size_of = size_of
        self._found = found
        self._numbers = itertools.count(1)
        self._network = f"127.{16 + os.getpid() % 200}"
        self._told: list[dict[str, Any]] = []
        self._seen: set[str] = set()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for each in list(self.living.values()):
            self._kill(each)

    def endpoints(self, namespace: str, app: Mapping[str, str]) -> list[Endpoint]:
        """Pods that a picker may send requests to: Ready, not ending, and with these labels."""
        return [
            Endpoint(namespace, name_of(each.pod), each.address, self.port)
            for each in list(self.living.values())
            if namespace_of(each.pod) == namespace
            and each.engine is not None
            and is_ready(each.pod)
            and not is_ending(each.pod)
            and app.items() <= labels_of(each.pod).items()
        ]

    def living_in(self, namespace: str) -> list[Living]:
        """Pods of a namespace that have a node, also those that start."""
        return [each for each in list(self.living.values()) if namespace_of(each.pod) == namespace]

    def engines(self, namespace: str) -> dict[str, Engine]:
        """Engines by pod, those that end among them."""
        return {
            name_of(each.pod): each.engine
            for each in list(self.living.values())
            if namespace_of(each.pod) == namespace and each.engine is not None
        }

    def end_now(self, namespace: str) -> None:
        """End engines of a namespace, as a machine that is switched off would."""
        for each in list(self.living.values()):
            if namespace_of(each.pod) == namespace:
                each.lost = True
                self._kill(each)

    def _round(self) -> None:
        super()._round()
        for uid in self.living.keys() - self._seen:
            # Deleted by force, or with the namespace.
            self._kill(self.living.pop(uid))
        self._seen = set()
        targets = [_target(each, self.port) for each in self.living.values()]
        if targets != self._told:
            self._told = targets
            self._found(targets)

    def _tend(self, pod: Object, number: int) -> None:
        size = self._size_of(pod)
        uid = text_at(pod, "metadata", "uid")
        self._seen.add(uid)
        if size is None or not text_at(pod, "spec", "nodeName"):
            return super()._tend(pod, number)
        living = self.living.get(uid) or self._begun(uid, pod, number)
        living.pod = pod
        if is_ending(pod):
            self._end(uid, living)
        elif (
            living.engine is None
            and not living.lost
            and _CLOCK.monotonic_s() - living.since_s >= self._start_s(pod)
        ):
            living.engine = self._background.run(self._opened(size, living.address))
        if living.engine is not None:
            self._tell(living)
        return None

    def _start_s(self, pod: Object) -> float:
        return self.start_s.get(namespace_of(pod), self.ready_after_s)

    def _begun(self, uid: str, pod: Object, number: int) -> Living:
        """The container starts, and nobody listens yet."""
        count = next(self._numbers)
        self.living[uid] = Living(pod, f"{self._network}.{count // 250}.{count % 250 + 1}")
        self._tell(self.living[uid])
        return self.living[uid]

    def _tell(self, living: Living) -> None:
        """Write what has changed: the engine answers, or a readiness gate holds or does no more."""
        status = running_status(living.pod, living.address, ready=living.engine is not None)
        ready = is_ready({"status": status})
        if living.told != (status["podIP"], ready) or ready != is_ready(living.pod):
            version = {"resourceVersion": text_at(living.pod, "metadata", "resourceVersion")}
            self._write(living.pod, {"metadata": version, "status": status})
            living.told = (living.address, ready)

    async def _opened(self, size: EngineSize, address: str) -> Engine:
        engine = Engine(size)
        await engine.open(address, self.port)
        return engine

    def _end(self, uid: str, living: Living) -> None:
        """One look at a pod that ends: its hook, then SIGTERM, and SIGKILL when the time is over."""
        now_s = _CLOCK.monotonic_s()
        if living.ending_s is None:
            living.ending_s = now_s
            whose = namespace_of(living.pod), name_of(living.pod)
            self.busy_at_end[whose] = 0 if living.engine is None else living.engine.busy
            living.hook = self._hook(living)
        grace_s = count_at(living.pod, "metadata", "deletionGracePeriodSeconds")
        late = now_s - living.ending_s >= (_GRACE_S if grace_s is None else grace_s)
        if living.hook is not None and living.hook.poll() is None and not late:
            return
        self._kill(living)
        del self.living[uid]
        self._remove(living.pod)

    def _hook(self, living: Living) -> subprocess.Popen[bytes] | None:
        """Run the preStop command; where its engine is stands in its environment, as there is no network of its own."""
        container = next(items_of(at(living.pod, "spec", "containers")))
        command = at(container, "lifecycle", "preStop", "exec", "command")
        if not command or living.engine is None:
            return None
        where = {"METRICS_URL": f"http://{living.address}:{self.port}/metrics", "ROUTERS_NOTICE_S": "0.5"}
        return subprocess.Popen(
            command, env=os.environ | where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _kill(self, living: Living) -> None:
        if living.hook is not None and living.hook.poll() is None:
            living.hook.kill()
        if living.hook is not None:
            living.hook.wait()
        if living.engine is not None:
            self._background.run(living.engine.kill())
            living.engine = None


def _target(living: Living, port: int) -> dict[str, Any]:
    """As the discovery of Prometheus and the usual relabelling tell of a pod."""
    labels = {"namespace": namespace_of(living.pod), "pod": name_of(living.pod), "job": "engines"}
    return {"targets": [f"{living.address}:{port}"], "labels": labels}

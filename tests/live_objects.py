"""A cluster in memory whose workloads move: replicas start and end as its clock goes on, HPAs and KEDA hold counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from planner.clock import Clock
from planner.control.cluster import Api, MemoryCluster
from planner.control.cluster.kinds import HORIZONTAL_POD_AUTOSCALERS, PODS, SCALED_OBJECTS, WORKLOADS
from planner.control.cluster.transport import Answer, Call
from planner.manifests import Route
from planner.manifests.orders import PAUSED
from tests.kube_objects import a_deployment, a_node, a_pod, a_template

__all__ = ["LiveCluster", "a_workload", "objects_of", "served_cluster"]

Thing = dict[str, Any]


def a_workload(name: str, replicas: int, *, namespace: str = "llm", gpus: int = 1, **more: Any) -> Thing:
    """A Deployment whose pods carry its name as a label."""
    thing = a_deployment(name, replicas, template=a_template(gpus, labels={"app": name}))
    thing["metadata"] = {"name": name, "namespace": namespace, **more}
    thing["spec"]["selector"] = {"matchLabels": {"app": name}}
    return thing


def objects_of(route: Route) -> list[Thing]:
    """A workload for every object of a route, with its count at the start, and nodes enough."""
    return [
        a_node("n1", 64),
        *(
            a_workload(change.target.object.name, change.old, namespace=change.target.namespace)
            for change in route.ends
        ),
    ]


@dataclass
class LiveCluster:
    """Workloads in memory that move as time goes on.

    Args:
        objects: at first; everything that is asked for is ready.
        clock: moves it.
        start_s: until a new replica is ready, s.
        end_s: until a replica that goes is gone, s.
        meddle: is called before each call with this cluster, to change something behind the caller's back.
    """

    objects: list[Thing]
    clock: Clock
    start_s: float = 30.0
    end_s: float = 10.0
    meddle: Callable[[LiveCluster, Call], Answer | None] = field(default=lambda *_: None)
    denied: set[tuple[str, str]] = field(default_factory=set)
    _moments: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.memory = MemoryCluster(self.objects, denied=self.denied, before=self._before)
        self._quiet = False
        self.calls: list[tuple[str, str]] = []
        self._move(first=True)

    @property
    def api(self) -> Api:
        return Api(self.memory, self.clock)

    def wanted(self, name: str, namespace: str = "llm", kind: str = "Deployment") -> int:
        return int(self.thing(kind, name, namespace)["spec"]["replicas"])

    def thing(self, kind: str, name: str, namespace: str = "llm") -> Thing:
        found = next(
            k for k in (*WORKLOADS.values(), HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS) if k.name == kind
        )
        return self._quietly(lambda: dict(self.api.get(found, namespace, name)))

    def set(self, kind: str, name: str, change: Mapping[str, Any], namespace: str = "llm") -> None:
        found = next(
            k for k in (*WORKLOADS.values(), HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS) if k.name == kind
        )
        self._quietly(lambda: self.api.patch(found, namespace, name, dict(change)))

    def _quietly(self, run: Callable[[], Any]) -> Any:
        before, self._quiet = self._quiet, True
        denied, self.memory.denied = self.memory.denied, set()
        try:
            return run()
        finally:
            self._quiet, self.memory.denied = before, denied

    def _before(self, call: Call) -> Answer | None:
        if self._quiet:
            return None
        self.calls.append((call.method, call.path))
        answer = self.meddle(self, call)
        self._quietly(self._move)
        return answer

    def _move(self, *, first: bool = False) -> None:
        if first:
            self._quietly(self._move_all_at_once)
            return
        now_s = self.clock.monotonic_s()
        self._scale()
        for kind in WORKLOADS.values():
            for thing in self.api.list(kind).items:
                name, namespace = thing["metadata"]["name"], thing["metadata"]["namespace"]
                wanted = int(thing["spec"]["replicas"])
                pods = self._moments.setdefault(f"{namespace}/{name}", [])
                pods[:] = [pod for pod in pods if pod[1] > now_s]
                staying = [pod for pod in pods if pod[1] == float("inf")]
                for _ in range(wanted - len(staying)):
                    pods.append((now_s + self.start_s, float("inf")))
                for pod in staying[wanted:]:
                    pods[pods.index(pod)] = (float("inf"), now_s + self.end_s)
                self._show(kind, thing, pods)

    def _move_all_at_once(self) -> None:
        start_s, self.start_s = self.start_s, 0.0
        self._move()
        self.start_s = start_s

    def _show(self, kind: Any, thing: Mapping[str, Any], pods: list[tuple[float, float]]) -> None:
        name, namespace, now_s = (
            thing["metadata"]["name"],
            thing["metadata"]["namespace"],
            self.clock.monotonic_s(),
        )
        staying = [pod for pod in pods if pod[1] == float("inf")]
        ready = sum(ready_s <= now_s for ready_s, _ in staying)
        status = {"replicas": len(staying), "readyReplicas": ready}
        if thing.get("status") != status:
            self.api.patch(kind, namespace, name, {"status": status})
        there = {
            each["metadata"]["name"] for each in self.api.list(PODS, namespace, labels=f"app={name}").items
        }
        wanted = {f"{name}-{number}" for number in range(len(pods))}
        for one in there - wanted:
            self.api.delete(PODS, namespace, one)
        for one in wanted - there:
            self.api.create(PODS, namespace, a_pod(one, namespace=namespace, labels={"app": name}))

    def _scale(self) -> None:
        """What HPAs with equal bounds, and KEDA at an annotation, do with counts."""
        for thing in self.api.list(HORIZONTAL_POD_AUTOSCALERS).items:
            spec, namespace = thing["spec"], thing["metadata"]["namespace"]
            bounds = (spec.get("minReplicas", 1), spec["maxReplicas"])
            self._hold(spec["scaleTargetRef"], namespace, bounds, rests=True)
        for thing in self.api.list(SCALED_OBJECTS).items:
            count = (thing["metadata"].get("annotations") or {}).get(PAUSED)
            if count is not None:
                reference, namespace = thing["spec"]["scaleTargetRef"], thing["metadata"]["namespace"]
                self._hold(reference, namespace, (int(count), int(count)), rests=False)

    def _hold(
        self, reference: Mapping[str, str], namespace: str, bounds: tuple[int, int], *, rests: bool
    ) -> None:
        """Bring a count between bounds; an HPA rests while its target has none."""
        kind = WORKLOADS[reference.get("kind", "Deployment")]
        found = self.api.find(kind, namespace, reference["name"])
        now = 0 if found is None else int(found["spec"]["replicas"])
        held = min(max(now, bounds[0]), bounds[1])
        if found is not None and now != held and (now or not rests):
            self.api.patch(kind, namespace, reference["name"], {"spec": {"replicas": held}})


@contextmanager
def served_cluster(cluster: LiveCluster, folder: Path) -> Iterator[Path]:
    """Serve a cluster on the loopback address; the kubeconfig that leads to it.

    Args:
        cluster: whose calls are answered one after the other.
        folder: where the kubeconfig is written.
    """
    lock = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            call = Call(
                method=self.command,
                path=parts.path,
                query=dict(parse_qsl(parts.query)),
                body=self.rfile.read(length) if length else None,
                content_type=self.headers.get("Content-Type") or "application/json",
            )
            with lock:
                answer = cluster.memory.call(call)
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - as http.server calls them

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    path = folder / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {"token": "hunter2"}}],
        "contexts": [{"name": "live", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "live",
    }
    path.write_text(json.dumps(config), encoding="utf-8")
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)

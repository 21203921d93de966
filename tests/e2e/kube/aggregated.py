"""Further APIs behind the API server: autoscaling/v2 where only v2beta2 is served, and external metrics of the test."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from planner.clock import SystemClock
from planner.control.cluster import ClusterFault, Kind
from planner.control.cluster.kinds import CUSTOM_RESOURCE_DEFINITIONS
from planner.control.cluster.transport import Call
from tests.e2e.kube.control_plane import ControlPlane, openssl, wait_until

__all__ = ["ReadMetric", "external_metrics", "hpa_v2", "install_crd"]

ReadMetric = Callable[[str, str, Mapping[str, str]], float | None]
"""Value of a metric by namespace, name and labels; None: there is no such series."""

_SERVICES: Final = Kind("Service", "services")
_API_SERVICES: Final = Kind("APIService", "apiservices", "apiregistration.k8s.io", namespaced=False)
_OURS, _THEIRS = "autoscaling/v2", "autoscaling/v2beta2"


class _Handler(BaseHTTPRequestHandler):
    """Answers in JSON and writes no log."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def _served(
    plane: ControlPlane, group: str, version: str, handler: type[_Handler], probe: str
) -> Iterator[None]:
    """Serve a group and version by a handler, as long as the block lasts."""
    name = f"{version}.{group}"
    folder = plane.folder / name
    folder.mkdir(exist_ok=True)
    subject = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=localhost")
    openssl("req", *subject, "-keyout", folder / "key", "-out", folder / "crt")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    port, service = server.server_address[1], name.replace(".", "-")
    outside = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    reference = {"name": service, "namespace": "default", "port": port}
    spec = {
        "group": group, "version": version, "service": reference, "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 17_000, "versionPriority": 100,
    }  # fmt: skip
    try:
        plane.admin.create(_SERVICES, "default", {"metadata": {"name": service}, "spec": outside})
        plane.admin.create(_API_SERVICES, "", {"metadata": {"name": name}, "spec": spec})
        wait_until(lambda: _answers(plane, probe), what=f"the API {group}/{version}")
        yield
    finally:
        try:
            plane.admin.delete(_API_SERVICES, "", name)
            plane.admin.delete(_SERVICES, "default", service)
        except ClusterFault:
            pass  # the API server may be stopped already
        server.shutdown()
        server.server_close()


def _answers(plane: ControlPlane, path: str) -> bool:
    return plane.admin.transport.call(Call(method="GET", path=path)).status == http.client.OK


@contextmanager
def hpa_v2(plane: ControlPlane) -> Iterator[None]:
    """Serve autoscaling/v2 in the words of v2beta2, which has the same shape; rights and validation are those of the asker."""
    path = f"/apis/{_OURS}/namespaces/default/horizontalpodautoscalers"
    with _served(plane, "autoscaling", "v2", type("Translator", (_Translator,), {"plane": plane}), path):
        yield


class _Translator(_Handler):
    """Hands calls on, and answers back, with the one version in place of the other."""

    plane: ControlPlane

    def do_GET(self) -> None:
        if urlsplit(self.path).path.startswith("/openapi"):
            return self.reply(404, b"{}")
        answer = self._handed_on()
        watches = parse_qs(urlsplit(self.path).query).get("watch", [""])[0] in {"1", "true"}
        if watches and answer.status == http.client.OK:
            return self._stream(answer)
        text = answer.read().replace(_THEIRS.encode(), _OURS.encode())
        return self.reply(answer.status, text, answer.headers.get("Content-Type", "application/json"))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - as the base class looks for them

    def _handed_on(self) -> http.client.HTTPResponse:
        length = int(self.headers.get("Content-Length") or 0)
        body = (
            self.rfile.read(length).replace(f'{_OURS}"'.encode(), f'{_THEIRS}"'.encode()) if length else None
        )
        host, port = self.plane.url.removeprefix("https://").split(":")
        context = _trusting(self.plane.folder)
        connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=120)
        path = self.path.replace(f"/apis/{_OURS}", f"/apis/{_THEIRS}", 1)
        connection.putrequest(self.command, path, skip_accept_encoding=True)
        for name, value in self._as_the_asker(body):
            connection.putheader(name, value)
        connection.endheaders(body)
        return connection.getresponse()

    def _as_the_asker(self, body: bytes | None) -> Iterator[tuple[str, str]]:
        """As the administrator, in the name of whoever asks; the connection ends with the answer."""
        yield "Authorization", "Bearer token-of-admin"
        yield "Accept", "application/json"
        yield "Connection", "close"
        if body is not None:
            yield "Content-Type", self.headers.get("Content-Type", "application/json")
            yield "Content-Length", str(len(body))
        user = self.headers.get("X-Remote-User", "")
        if user and not user.startswith("system:"):
            yield "Impersonate-User", user
            for group in self.headers.get_all("X-Remote-Group") or ():
                yield "Impersonate-Group", group

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while line := answer.readline():
                text = line.replace(_THEIRS.encode(), _OURS.encode())
                self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True


def _trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "pki" / "apiserver.crt"))


@contextmanager
def external_metrics(plane: ControlPlane, read: ReadMetric) -> Iterator[None]:
    """Serve external.metrics.k8s.io: the real HPA controller asks it for what ``read`` says."""
    group = "external.metrics.k8s.io/v1beta1"

    class Metrics(_Handler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            parts = url.path.strip("/").split("/")
            if parts[:3] != ["apis", *group.split("/")]:
                return self.reply(404, b"{}")
            if len(parts) < 6:
                resource = {
                    "name": "*", "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList",
                    "verbs": ["get"],
                }  # fmt: skip
                return self._json(
                    {
                        "kind": "APIResourceList",
                        "apiVersion": "v1",
                        "groupVersion": group,
                        "resources": [resource],
                    }
                )
            selector = parse_qs(url.query).get("labelSelector", [""])[0]
            labels = dict(pair.split("=", 1) for pair in selector.split(",") if "=" in pair)
            value = read(parts[4], parts[5], labels)
            now = datetime.fromtimestamp(SystemClock().unix_s(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            items = [] if value is None else [
                {"metricName": parts[5], "metricLabels": labels, "timestamp": now, "value": f"{round(value * 1000)}m"}
            ]  # fmt: skip
            return self._json(
                {"kind": "ExternalMetricValueList", "apiVersion": group, "metadata": {}, "items": items}
            )

        def _json(self, thing: Any) -> None:
            self.reply(200, json.dumps(thing).encode())

    with _served(plane, *group.split("/"), Metrics, f"/apis/{group}"):
        yield


def install_crd(plane: ControlPlane, kind: Kind) -> None:
    """Serve a custom kind whose fields nobody checks, with status and the scale subresource, unless it is served."""
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    found = {"status": {}, "scale": paths}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": kind.versions[0], "served": True, "storage": True, "subresources": found,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}},
    }  # fmt: skip
    names = {
        "plural": kind.plural,
        "singular": kind.name.lower(),
        "kind": kind.name,
        "listKind": f"{kind.name}List",
    }
    spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    # Groups of Kubernetes itself ask for it.
    notes = {"api-approved.kubernetes.io": "unapproved, for tests"}
    thing = {"metadata": {"name": kind.resource, "annotations": notes}, "spec": spec}
    if plane.admin.find(CUSTOM_RESOURCE_DEFINITIONS, "", kind.resource) is None:
        plane.admin.create(CUSTOM_RESOURCE_DEFINITIONS, "", thing)
    wait_until(lambda: plane.admin.list(kind) is not None, what=f"the kind {kind.name}")

"""A real Kubernetes control plane on the loopback address, from the binaries that KUBEBUILDER_ASSETS names.

    with ControlPlane(folder, binaries) as plane:
        plane.admin                      the API, as somebody who may everything
        plane.connect("planner")         the API as somebody who may nothing until a role is bound to him
        plane.stop("apiserver")          to see what its loss does; plane.start("apiserver") brings it back

There is no kubelet: tests.e2e.kube.kubelet makes pods ready. tests.e2e.kube.aggregated serves further APIs.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self

import pytest

from planner.clock import SystemClock
from planner.control.cluster import Api, ClusterFault, ClusterOptions, connect
from planner.control.cluster import kinds as known_kinds
from planner.control.cluster.kinds import NAMESPACES, NODES, Kind
from planner.control.cluster.transport import Call
from tests.loopback import free_ports

__all__ = ["BINARIES", "KINDS", "ControlPlane", "kube_test", "wait_until", "why_not"]

BINARIES: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
PARTS: Final = ("etcd", "apiserver", "controller-manager", "scheduler")
_USERS: Final = {"admin": "system:masters", "planner": "planners", "viewer": "viewers"}
_CLOCK: Final = SystemClock()
_RBAC: Final = "rbac.authorization.k8s.io"
KINDS: Final = {each.name: each for each in vars(known_kinds).values() if isinstance(each, Kind)} | {
    "ServiceAccount": Kind("ServiceAccount", "serviceaccounts"),
    "Role": Kind("Role", "roles", _RBAC),
    "RoleBinding": Kind("RoleBinding", "rolebindings", _RBAC),
    "ClusterRole": Kind("ClusterRole", "clusterroles", _RBAC, namespaced=False),
    "ClusterRoleBinding": Kind("ClusterRoleBinding", "clusterrolebindings", _RBAC, namespaced=False),
    "NetworkPolicy": Kind("NetworkPolicy", "networkpolicies", "networking.k8s.io"),
}
"""Kinds by name: those that we meet, and those of manifests."""


def why_not() -> str | None:
    """Why no control plane can be started here; None: it can."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        return "KUBEBUILDER_ASSETS is unset: it names a folder with " + ", ".join(BINARIES)
    missing = [name for name in BINARIES if not os.access(Path(folder) / name, os.X_OK)]
    return f"KUBEBUILDER_ASSETS={folder} lacks {', '.join(missing)}" if missing else None


def kube_test() -> list[pytest.MarkDecorator]:
    """Marks of a module whose tests need a control plane; one worker runs them all, on one control plane."""
    reason = why_not()
    return [
        pytest.mark.e2e,
        pytest.mark.slow,
        pytest.mark.xdist_group("kube"),
        pytest.mark.skipif(reason is not None, reason=reason or "a control plane can be started"),
    ]


def wait_until(
    good: Callable[[], Any], *, within_s: float = 30.0, what: str = "what the test waits for"
) -> Any:
    """The first value of ``good`` that counts as true; faults of a cluster count as false."""
    end_s = _CLOCK.monotonic_s() + within_s
    last: object = None
    while _CLOCK.monotonic_s() < end_s:
        try:
            found = good()
        except ClusterFault as fault:
            last = fault
        else:
            if found:
                return found
        _CLOCK.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {within_s:g} s ({last})")


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)  # noqa: S607 - found by PATH on purpose


class ControlPlane:
    """etcd, API server, controller manager and, where asked for, the scheduler, all children of this process.

    Args:
        folder: for data, certificates and logs; empty.
        binaries: folder with them.
        scheduler: start it too; without it pods have no node unless they name one.
        more: further arguments by part.
    """

    def __init__(
        self,
        folder: Path,
        binaries: Path,
        *,
        scheduler: bool = False,
        more: dict[str, list[str]] | None = None,
    ) -> None:
        self.folder = folder
        self.binaries = binaries
        self._parts = PARTS if scheduler else PARTS[:3]
        self._more = more or {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = dict(zip((*PARTS, "peer"), free_ports(5), strict=True))
        self.url = f"https://127.0.0.1:{self._ports['apiserver']}"
        self.admin: Api

    def __enter__(self) -> Self:
        try:
            self._write_certificates()
            self.start("etcd")
            self.start("apiserver")
            wait_until(
                (self.folder / "pki" / "apiserver.crt").exists, what="the certificate of the API server"
            )
            self.admin = self.connect("admin")
            self.wait_ready()
            for part in self._parts[2:]:
                self.start(part)
            # Its controller manager makes it; one that has not begun yet ends when the API server is stopped.
            account = KINDS["ServiceAccount"]
            wait_until(lambda: self.admin.find(account, "default", "default"), what="the first controller")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for part in reversed(list(self._running)):
            self.stop(part)

    def start(self, part: str) -> None:
        """Start a part, also again."""
        with (self.folder / f"{part}.log").open("ab") as log:
            self._running[part] = subprocess.Popen(
                self._command(part), stdout=log, stderr=log, cwd=self.folder
            )

    def stop(self, part: str) -> None:
        """Stop a part as a machine that is switched off would, if it does not end by itself."""
        process = self._running.pop(part)
        process.terminate()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait_ready(self) -> None:
        """Until the API answers for the administrator, and says that its own start is over."""

        def is_up() -> bool:
            ended = [part for part, process in self._running.items() if process.poll() is not None]
            assert not ended, f"{', '.join(ended)} ended: see {self.folder / ended[0]}.log"
            # A controller manager waits ten seconds for this, and then gives up.
            healthy = self.admin.transport.call(Call(method="GET", path="/healthz")).status == HTTPStatus.OK
            return healthy and bool(self.admin.list(NAMESPACES).items)

        wait_until(is_up, within_s=90, what="the API server")

    def kubeconfig(self, user: str = "admin") -> Path:
        """A kubeconfig of a user, with the context ``e2e``."""
        return self._kubeconfig(user, f"token-of-{user}")

    def account(self, namespace: str, name: str) -> Path:
        """A kubeconfig of a service account, by a token that the API server makes for it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        call = Call(method="POST", path=path, body=json.dumps(wanted).encode())
        answer = self.admin.transport.call(call)
        return self._kubeconfig(name, json.loads(answer.body)["status"]["token"])

    def _kubeconfig(self, user: str, token: str) -> Path:
        path = self.folder / f"kubeconfig-{user}"
        ca = str(self.folder / "pki" / "apiserver.crt")
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": {"server": self.url, "certificate-authority": ca}}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
            "current-context": "e2e",
        }
        path.write_text(json.dumps(config))
        return path

    def connect(self, user: str = "admin", **more: Any) -> Api:
        """The API as a user; ``more`` are fields of :class:`ClusterOptions`."""
        return connect(ClusterOptions(kubeconfig=self.kubeconfig(user), **more), _CLOCK)

    def install(self, things: Iterable[Mapping[str, Any]], *, home: str) -> None:
        """Apply what manifests hold; ``home`` gets what lives in a namespace."""
        for each in things:
            kind = KINDS[each["kind"]]
            self.admin.apply(kind, home if kind.namespaced else "", each)

    def allow(self, user: str, name: str, rules: Sequence[dict[str, Any]], *, namespace: str = "") -> None:
        """Bind a role with these rules to a user: in a namespace, or in the whole cluster."""
        role, binding = ("Role", "RoleBinding") if namespace else ("ClusterRole", "ClusterRoleBinding")
        self.admin.create(KINDS[role], namespace, {"metadata": {"name": name}, "rules": list(rules)})
        subject = {"kind": "User", "name": user, "apiGroup": _RBAC}
        reference = {"apiGroup": _RBAC, "kind": role, "name": name}
        body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        self.admin.create(KINDS[binding], namespace, body)

    def add_node(
        self,
        name: str,
        *,
        labels: dict[str, str] | None = None,
        spec: dict[str, Any] | None = None,
        **amounts: Any,
    ) -> None:
        """A node that is ready; ``amounts`` by resource, e.g. ``{"nvidia.com/gpu": 8}``."""
        held = {"cpu": "192", "memory": "2Ti", "pods": "110"} | {
            key: str(each) for key, each in amounts.items()
        }
        self.admin.create(NODES, "", {"metadata": {"name": name, "labels": labels or {}}, "spec": spec or {}})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "as the test says"}
        status = {"capacity": held, "allocatable": held, "conditions": [ready]}
        self.admin.patch(NODES, "", name, {"status": status}, subresource="status")
        # The controller manager takes a node that it never heard of for lost until its first condition.
        wait_until(lambda: not self._taints(name) or self._untaint(name, spec), what=f"node {name}")

    def _taints(self, name: str) -> list[Any]:
        taints = self.admin.get(NODES, "", name)["spec"].get("taints") or []
        return [each for each in taints if each["key"] == "node.kubernetes.io/not-ready"]

    def _untaint(self, name: str, spec: dict[str, Any] | None) -> bool:
        self.admin.patch(NODES, "", name, {"spec": {"taints": (spec or {}).get("taints")}})
        return not self._taints(name)

    def _write_certificates(self) -> None:
        pki = self.folder / "pki"
        pki.mkdir(parents=True)
        openssl("genrsa", "-out", pki / "accounts.key", "2048")
        authority = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=front-proxy")
        openssl("req", *authority, "-keyout", pki / "proxy-ca.key", "-out", pki / "proxy-ca.crt")
        asked = ("-newkey", "rsa:2048", "-nodes", "-subj", "/CN=aggregator")
        openssl("req", *asked, "-keyout", pki / "proxy.key", "-out", pki / "proxy.csr")
        signed = (
            "-CA",
            pki / "proxy-ca.crt",
            "-CAkey",
            pki / "proxy-ca.key",
            "-CAcreateserial",
            "-days",
            "3",
        )
        openssl("x509", "-req", "-in", pki / "proxy.csr", *signed, "-out", pki / "proxy.crt")
        tokens = "".join(f'token-of-{user},{user},{user},"{group}"\n' for user, group in _USERS.items())
        (self.folder / "tokens.csv").write_text(tokens)

    def _command(self, part: str) -> list[str]:
        written = {
            "etcd": self._etcd, "apiserver": self._apiserver,
            "controller-manager": self._controller_manager, "scheduler": self._scheduler,
        }  # fmt: skip
        return [*written[part](), *self._more.get(part, [])]

    def _etcd(self) -> list[str]:
        client, peer = (f"http://127.0.0.1:{self._ports[name]}" for name in ("etcd", "peer"))
        return [
            str(self.binaries / "etcd"), "--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync",
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        ]  # fmt: skip

    def _apiserver(self) -> list[str]:
        pki = self.folder / "pki"
        settings = {
            "etcd-servers": f"http://127.0.0.1:{self._ports['etcd']}",
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": self._ports["apiserver"],
            "cert-dir": pki,
            "token-auth-file": self.folder / "tokens.csv",
            "authorization-mode": "RBAC",
            "service-cluster-ip-range": "10.96.0.0/16",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-signing-key-file": pki / "accounts.key",
            "service-account-key-file": pki / "accounts.key",
            "disable-admission-plugins": "ServiceAccount",
            "endpoint-reconciler-type": "none",
            # Aggregated APIs: who asks is told to them by the API server, which shows this certificate.
            "requestheader-client-ca-file": pki / "proxy-ca.crt",
            "requestheader-allowed-names": "aggregator",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": pki / "proxy.crt",
            "proxy-client-key-file": pki / "proxy.key",
        }
        return self._with_flags("kube-apiserver", settings)

    def _controller_manager(self) -> list[str]:
        settings = {
            "service-account-private-key-file": self.folder / "pki" / "accounts.key",
            # Nobody renews the leases of these nodes, and they are not to be lost for it.
            "controllers": "*,-nodelifecycle",
            "horizontal-pod-autoscaler-sync-period": "1s",
            "horizontal-pod-autoscaler-downscale-stabilization": "5s",
            "horizontal-pod-autoscaler-initial-readiness-delay": "1s",
        }
        return self._with_flags("kube-controller-manager", self._alone("controller-manager") | settings)

    def _scheduler(self) -> list[str]:
        return self._with_flags("kube-scheduler", self._alone("scheduler"))

    def _alone(self, part: str) -> dict[str, object]:
        """Settings of a part of which there is one, and which nobody has to reach."""
        return {
            "kubeconfig": self.kubeconfig(),
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": self._ports[part],
            "port": 0,
            "cert-dir": self.folder / f"pki-{part}",
        }

    def _with_flags(self, binary: str, settings: Mapping[str, object]) -> list[str]:
        return [str(self.binaries / binary), *(f"--{name}={value}" for name, value in settings.items())]

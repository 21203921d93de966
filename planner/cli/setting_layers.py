"""Options of commands that are settings of a controller, and the layers that flags, variables and files make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.edge import Common

if TYPE_CHECKING:
    from planner.control.running.layering import Layer
    from planner.scenario.tree import Complaints, Entry

__all__ = ["SettingOptions", "layers_of"]


@dataclass(frozen=True, kw_only=True)
class SettingOptions(Common):
    """Options that are settings: they go before variables, files and ConfigMaps."""

    config: Annotated[
        list[Path] | None,
        typer.Option("--config", metavar="FILE", show_default=False, help="Settings as YAML; repeatable, the later goes before the earlier."),
    ] = None  # fmt: skip
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", show_default=False, help="One setting, e.g. rules.tau_kv=0.7; repeatable."),
    ] = None  # fmt: skip
    prometheus: Annotated[
        str | None, typer.Option("--prometheus", metavar="URL", show_default=False, help="Read metrics of this Prometheus (sources).")
    ] = None  # fmt: skip
    context: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="NAME", show_default=False, help="This context of the kubeconfig; repeatable, one cluster each (clusters)."),
    ] = None  # fmt: skip
    kubeconfig: Annotated[Path | None, typer.Option("--kubeconfig", metavar="FILE", show_default=False, help="In place of KUBECONFIG (clusters).")] = None  # fmt: skip
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", metavar="NAME", show_default=False, help="Variants of this namespace alone; repeatable (namespaces)."),
    ] = None  # fmt: skip
    policy: Annotated[str | None, typer.Option("--policy", metavar="NAME", show_default=False, help="Who decides: wva, wva-v2, planner, or a plug-in (rules.policy).")] = None  # fmt: skip
    cycle_s: Annotated[float | None, typer.Option("--cycle", metavar="S", show_default=False, help="Seconds between two cycles (cycle_s; 15).")] = None  # fmt: skip
    records: Annotated[Path | None, typer.Option("--records", metavar="DIR", show_default=False, help="Write records of cycles there (records.folder).")] = None  # fmt: skip
    listen: Annotated[str | None, typer.Option("--listen", metavar="HOST:PORT", show_default=False, help="Serve /metrics, /healthz, /readyz and /status there (server; 127.0.0.1:9470).")] = None  # fmt: skip


def layers_of(options: SettingOptions, *, act: bool | None = None) -> tuple[Layer, ...]:
    """The layers of settings of a command, the least important first.

    Args:
        options: of the command.
        act: what flags say of acting; None: nothing.

    Raises:
        ConfigurationError: a file, a variable or a flag cannot be read; lists everything.
    """
    from planner.control.running.configuring import configured
    from planner.control.running.layering import environment_layer, file_layer, flags_layer
    from planner.scenario.tree import Complaints

    complaints = Complaints()
    files = [file_layer(path, complaints) for path in options.config or ()]
    layers = (
        *(each for each in files if each is not None),
        environment_layer(complaints),
        flags_layer(options.settings or (), complaints, _named(options, act, complaints)),
    )
    # Everything that is wrong is said at once: what cannot be read, and what was read and does not fit.
    configured(layers, complaints)
    return layers


def _named(options: SettingOptions, act: bool | None, complaints: Complaints) -> list[tuple[str, Entry]]:
    """Flags that are settings, as entries; each is named as the origin of its value."""
    said = [*_plain(options, act), *_clusters(options), *_server(options, complaints)]
    return [(path, _entry(value, flag, path)) for path, flag, value in said]


def _plain(options: SettingOptions, act: bool | None) -> Iterator[tuple[str, str, object]]:
    url = options.prometheus
    given = (
        ("sources", "--prometheus", url and [{"name": "prometheus", "options": {"url": url}}]),
        ("namespaces", "--namespace", list(options.namespace or ()) or None),
        ("rules.policy", "--policy", options.policy),
        ("cycle_s", "--cycle", options.cycle_s),
        ("records.folder", "--records", None if options.records is None else str(options.records)),
        ("act", "--yes" if act else "--dry-run", act),
    )
    return (each for each in given if each[2] is not None)


def _clusters(options: SettingOptions) -> Iterator[tuple[str, str, object]]:
    kubeconfig = {} if options.kubeconfig is None else {"kubeconfig": str(options.kubeconfig)}
    clusters = [{"context": name} | kubeconfig for name in options.context or ()]
    if clusters or kubeconfig:
        yield "clusters", "--context" if clusters else "--kubeconfig", clusters or [kubeconfig]


def _server(options: SettingOptions, complaints: Complaints) -> Iterator[tuple[str, str, object]]:
    if options.listen is None:
        return
    host, colon, port = options.listen.rpartition(":")
    if colon and port.isascii() and port.isdigit():
        yield "server.host", "--listen", host.strip("[]") or "127.0.0.1"
        yield "server.port", "--listen", int(port)
        return
    from planner.errors import Finding

    complaints.add(Finding("", None, "--listen", repr(options.listen), "HOST:PORT, e.g. 127.0.0.1:9470"))


def _entry(value: Any, flag: str, path: str) -> Entry:  # noqa: ANN401 - any plain value
    from planner.scenario.tree import Entry

    if isinstance(value, dict):
        return Entry(
            {key: _entry(each, flag, f"{path}.{key}") for key, each in value.items()}, flag, None, path
        )
    if isinstance(value, list):
        return Entry(tuple(_entry(each, flag, path) for each in value), flag, None, path)
    return Entry(value, flag, None, path, str(value))

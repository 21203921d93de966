"""Commands and manifests that carry the moves out: to read, copy or download. Nothing is applied from here."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Final

import streamlit as st

from planner.errors import ConfigurationError
from planner.manifests import (
    KUSTOMIZATION,
    Route,
    gauges_of,
    left_to_do,
    one_stream,
    render_kustomize,
    render_manifests,
    render_script,
    route_of,
)
from planner.ui.answers.moving import Way
from planner.ui.faults import show_fault
from planner.ui.words import said
from planner.wording import number

__all__ = ["FORMATS", "rendered", "show_commands", "zipped"]

FORMATS: Final = {
    "kubectl": "kubectl script, wave by wave",
    "yaml": "YAML, the objects at the end",
    "kustomize": "kustomize, a folder of patches",
}
"""Formats of ``fleetplan commands``, and what they are."""

_EVERYWHERE: Final = "all clusters"
_LINES_SHOWN: Final = 400
_NOTES_SHOWN: Final = 15
_FILES: Final = {"kubectl": "moves.sh", "yaml": "moves.yaml", "kustomize": "moves.zip"}
_MIMES: Final = {"kubectl": "text/x-shellscript", "yaml": "application/yaml", "kustomize": "application/zip"}


def show_commands(way: Way, key: str) -> None:
    """The text in the format that is wanted, its download, and what no command does.

    Args:
        way: whose waves are rendered.
        key: of these waves.
    """
    st.header("Commands")
    st.caption("To read, copy or download: nothing is run, and no cluster is asked.")
    if all(candidate.object is None for candidate in way.problem.candidates):
        st.markdown(
            "No variant of this draft says which Kubernetes object runs it, so there is nothing to scale. Give variants "
            "an object, e.g. `object: chat-small`, under *Text* on the page Plan: then commands stand here."
        )
        return
    left, right = st.columns([3, 2])
    wanted = left.radio(
        "Format", [*FORMATS], format_func=lambda name: FORMATS[name], horizontal=True, key="moves-format"
    )
    try:
        route = _route(key, way)
        with right:
            route = _in_cluster(route)
        files = _files(f"{key}-{','.join(route.clusters)}-{wanted}", route, wanted)
    except ConfigurationError as fault:
        show_fault(fault, "There is nothing to render.")
        return
    _show_notes(route)
    _show_files(files, wanted)


def _in_cluster(route: Route) -> Route:
    """The part for one cluster, where there are several."""
    named = [name for name in route.clusters if name]
    if len(route.clusters) < 2:  # noqa: PLR2004 - one cluster is no choice
        return route
    cluster = st.selectbox(
        "Cluster",
        [_EVERYWHERE, *named],
        key="moves-cluster",
        help="Each cluster has a context of its own; kustomize wants one.",
    )
    return route if cluster == _EVERYWHERE else route.in_cluster(cluster)


@st.cache_resource(show_spinner=False, max_entries=10)
def _route(key: str, _way: Way) -> Route:
    return route_of(_way.problem, _way.plan, undone=_way.undone)


@st.cache_resource(show_spinner=False, max_entries=10)
def _files(key: str, _route: Route, wanted: str) -> Mapping[str, str]:
    return rendered(_route, wanted)


def rendered(route: Route, wanted: str) -> dict[str, str]:
    """Texts by file name, as ``fleetplan commands`` writes them.

    Args:
        route: what is rendered.
        wanted: a key of :data:`FORMATS`.

    Raises:
        ConfigurationError: the format cannot say it, e.g. kustomize several clusters.
    """
    if wanted == "kustomize":
        return render_kustomize(route)
    return {_FILES[wanted]: render_script(route) if wanted == "kubectl" else render_manifests(route)}


def zipped(files: Mapping[str, str]) -> bytes:
    """Files as an archive whose bytes depend on nothing else."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _show_notes(route: Route) -> None:
    """What no object and no command carries out."""
    notes = [f"Left out: {name} has no object in the scenario." for name in route.left_out]
    notes += [f"The control plane has to emit {series}" for series in gauges_of(route)]
    notes += [*left_to_do(route)]
    if not notes:
        return
    more = len(notes) - _NOTES_SHOWN
    listed = "\n".join(f"- {said(note)}" for note in notes[:_NOTES_SHOWN])
    rest = f"\n- and {number(more)} more, which the text tells too" if more > 0 else ""
    st.markdown(f"**What these commands leave to you**\n{listed}{rest}")


def _show_files(files: Mapping[str, str], wanted: str) -> None:
    whole = one_stream(files) if wanted == "kustomize" else next(iter(files.values()))
    lines = whole.splitlines()
    st.download_button(
        f"Download {_FILES[wanted]}",
        zipped(files) if wanted == "kustomize" else whole,
        file_name=_FILES[wanted],
        on_click="ignore",
        mime=_MIMES[wanted],
        icon=":material/download:",
        key=f"moves-download-{wanted}",
        help=f"{KUSTOMIZATION} and its patches." if wanted == "kustomize" else "The whole text.",
    )
    # Without colors: those of comments are too faint to be read by everybody (WCAG 2.2, 1.4.3).
    st.code("\n".join(lines[:_LINES_SHOWN]), language=None, wrap_lines=True)
    if len(lines) > _LINES_SHOWN:
        st.caption(
            said(f"The first {number(_LINES_SHOWN)} of {number(len(lines), 9)} lines; the download has all.")
        )

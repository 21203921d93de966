"""How scrapes call what series are from."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from models.ids import Name
from models.value import Value

__all__ = ["LABEL_PATTERN", "LabelName", "LabelNames"]

LABEL_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
LabelName = Annotated[str, StringConstraints(pattern=LABEL_PATTERN)]


class LabelNames(Value):
    """How the scrape calls what series are from; operators that relabel say so here."""

    namespace: LabelName = Field("namespace", description="label with the namespace of the pod")
    pod: LabelName = Field("pod", description="label with the name of the pod")
    instance: LabelName = Field("instance", description="label with the address that is scraped")
    variant: LabelName = Field("llm_d_ai_variant", description="label with the name of the variant")
    cluster: LabelName | None = Field(
        None, description="label with the name of the cluster; None: there is only one"
    )
    cluster_name: Name | None = Field(None, description="name of the cluster that is read; None: not named")

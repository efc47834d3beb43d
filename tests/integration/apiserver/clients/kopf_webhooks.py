"""An operator whose admission webhooks kopf serves, and which has a timer."""

from __future__ import annotations

import os
from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    folder = os.environ["CERTIFICATES"]
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        host="127.0.0.1",
        cafile=f"{folder}/webhooks.crt",
        certfile=f"{folder}/127.0.0.1.crt",
        pkeyfile=f"{folder}/127.0.0.1.key",
    )
    settings.admission.managed = "auto.kopf.dev"


@kopf.on.mutate("", "v1", "configmaps", labels={"team": kopf.PRESENT})
def default_owner(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
    if "owner" not in (body.get("data") or {}):
        patch.setdefault("data", {})["owner"] = body["metadata"]["labels"]["team"]


@kopf.on.validate("", "v1", "configmaps", labels={"team": kopf.PRESENT})
def check_owner(body: kopf.Body, warnings: list[str], **_: Any) -> None:
    owner = body["data"]["owner"]
    if owner == "nobody":
        raise kopf.AdmissionError("somebody must own it", code=422)
    if owner != body["metadata"]["labels"]["team"]:
        warnings.append(f"{owner} is of another team")


@kopf.timer("", "v1", "configmaps", labels={"team": kopf.PRESENT}, interval=0.2)
def count(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
    seen = int((body.metadata.annotations or {}).get("example.com/count", "0"))
    patch.metadata.annotations["example.com/count"] = str(seen + 1)

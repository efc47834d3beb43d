"""Plays the kubelets: pods run at once, those of Jobs end well, and pods that are deleted go."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tests.real.client import Api, Json

SINCE = "2026-01-01T00:00:00Z"


def play_kubelets(api: Api) -> None:
    """Does what kubelets would do now."""
    for number, pod in enumerate(api.list("/api/v1/pods")):
        meta = pod["metadata"]
        if not meta["namespace"].startswith("t-"):
            continue
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        with suppress(AssertionError):  # the pod changed or went meanwhile
            if "deletionTimestamp" in meta:
                if not meta.get("finalizers"):
                    api.delete(path, grace=0)
            elif pod["status"].get("phase") == "Pending" and not _is_left_alone(pod):
                api.patch(f"{path}/status", {"status": _status(pod, f"10.9.0.{number % 250 + 1}")})


def _is_left_alone(pod: Json) -> bool:
    return "pending" in pod["metadata"].get("labels", {})


def _status(pod: Json, address: str) -> dict[str, Any]:
    ends = pod["spec"].get("restartPolicy") == "Never"
    state = (
        {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": SINCE}}
        if ends
        else {"running": {"startedAt": SINCE}}
    )
    container = {"name": "c", "image": "i", "imageID": "i", "ready": not ends, "restartCount": 0}
    return {
        "phase": "Succeeded" if ends else "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": str(not ends), "lastTransitionTime": SINCE}],
        "containerStatuses": [{**container, "state": state}],
    }

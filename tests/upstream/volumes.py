"""Cases of the persistent volume binder: one sync each, among the objects that there are."""

from __future__ import annotations

from typing import Any

from tests.upstream import adapter, cases
from tests.upstream.accepted import Differences
from tests.upstream.cases import Case

_SYNCS = ("testSyncClaim", "testSyncClaimError", "testSyncVolume")
_KINDS = {
    "PersistentVolume": ("v1", "iv", "ev"),
    "PersistentVolumeClaim": ("v1", "ic", "ec"),
    "StorageClass": ("storage.k8s.io/v1", "classes", ""),
    "Pod": ("v1", "pods", ""),
}


def compare_binder() -> Differences:
    """Returns where a sync leaves other objects, Events or errors.

    As by upstream's tests, Events beyond those that a case wants are not compared.
    Cases that call functions of their own or of plugins in the tree are left out, as are those
    whose volume is missing in the cache.
    """
    differing: dict[int, str] = {}
    for number, case in cases.read("volume_binder"):
        function = case["fn"].rpartition(".")[2]
        if case["mode"] != "sync" or function not in _SYNCS or case["errors"]:
            continue
        if "pv-testing-skip-local-store" in str(case):
            continue
        if texts := _differences(case, function):
            differing[number] = f"{case['t']}: " + "; ".join(texts)
    return {"volume binder": differing}


def _differences(case: Case, function: str) -> list[str]:
    objects = [
        _complete(obj, version, kind)
        for kind, (version, field, _) in _KINDS.items()
        for obj in case[field] or ()
    ]
    first = (case["ic"] if function != "testSyncVolume" else case["iv"])[0]["metadata"]
    key = f"{first['namespace']}/{first['name']}" if first.get("namespace") else first["name"]
    got = adapter.bind_volumes(key, objects)
    texts: list[str] = []
    for kind, left in got.objects.items():
        version, _, field = _KINDS[kind]
        wanted = [_complete(obj, version, kind) for obj in case[field] or ()]
        texts += cases.compare(_by_name(wanted), _by_name(left), kind)
    wanted_events = [" ".join(event.split()[:2]) for event in case["events"] or ()]
    events = [" ".join(event.split()[:2]) for event in got.events][: len(wanted_events)]
    if events != wanted_events:
        texts.append(f"Events are {events}, wanted {wanted_events}")
    if (function == "testSyncClaimError") != bool(got.error):
        texts.append(f"the error is {got.error!r} in {function}")
    return texts


def _complete(obj: Any, version: str, kind: str) -> Any:
    """Returns an object of the cases with what the store's validation asks for."""
    given = {name: part for name, part in obj["metadata"].items() if name != "creationTimestamp"}
    meta = {"uid": kind + given["name"], **given, "resourceVersion": "1"}
    spec = dict(obj.get("spec") or {})
    if spec.get("gcePersistentDisk"):
        spec["gcePersistentDisk"] = {**spec["gcePersistentDisk"], "pdName": "pd"}
    completed = {**obj, "apiVersion": version, "kind": kind, "metadata": meta}
    return {**completed, "spec": spec} if spec else completed


def _by_name(objects: list[Any]) -> Any:
    return {obj["metadata"]["name"]: cases.without_empty(_summarize(obj)) for obj in objects}


def _summarize(obj: Any) -> Any:
    """Returns what a sync may change of a volume or claim."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    bound = spec.get("claimRef") or {}
    return {
        "annotations": obj["metadata"].get("annotations"),
        "claimRef": {name: bound.get(name) for name in ("name", "namespace", "uid")},
        **{name: spec.get(name) for name in ("volumeName", "storageClassName")},
        **{name: status.get(name) for name in ("phase", "capacity", "accessModes")},
    }

"""Cases of whole objects: the API server's verdicts, its defaults, and what it stores."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from kcm import errors
from tests.upstream import adapter, cases
from tests.upstream.accepted import Differences
from tests.upstream.adapter import NotExpressible, Verdict
from tests.upstream.cases import Case

_SET_BY_STRATEGIES = {"Namespace": ("spec", "finalizers")}
_SWITCHED_OFF = {
    "clusterTrustBundle",
    "podCertificate",
    "preventPodSchedulingIfMissing",
    "schedulingGroup",
    "stopSignal",
}  # fields of features that 1.36 has off, which kcm drops with the defaults
_SYSTEM_FIELDS = ("creationTimestamp", "uid", "resourceVersion", "managedFields")


def compare_verdicts() -> Differences:
    """Returns where the verdict on an object differs, and where only the fields of the faults do.

    The wanted verdict is of the strategies of 1.36.
    """
    verdicts: dict[int, str] = {}
    fields: dict[int, str] = {}
    for number, case in cases.read("validation"):
        want = case["want136"]
        try:
            got = adapter.judge(case)
        except NotExpressible as reason:
            verdicts[number] = f"not expressible: {reason}"
            continue
        wanted = {re.sub(r"\s", "", cause["f"] or "") for cause in want.get("causes") or ()}
        if want["ok"] != got.accepted:
            verdicts[number] = f"{_label(case)}: {_words(want)}; kcm: {got.words or 'accepted'}"
        elif wanted != got.fields:
            fields[number] = (
                f"{_label(case)}: {_by_field(wanted, got)}: {_words(want)}; {got.words}"
            )
    return {"validation: verdicts": verdicts, "validation: fields": fields}


def compare_defaults() -> Differences:
    """Returns where an object with defaults differs from what the API server's decoder gives."""
    differing: dict[int, str] = {}
    for number, case in cases.read("defaults"):
        try:
            got = adapter.apply_defaults(case["given"])
        except (NotExpressible, errors.ApiError) as error:
            differing[number] = str(error)
            continue
        if texts := _compare(case["want"], got, _comparable):
            differing[number] = f"{case['given']['kind']} " + "; ".join(texts)
    return {"defaults": differing}


def compare_stored() -> Differences:
    """Returns where a stored object differs from what the strategies prepare, as clients read both:
    upstream applies defaults again to what it reads from etcd.

    Objects that kcm refuses are left to `compare_verdicts`.
    """
    differing: dict[int, str] = {}
    for number, case in cases.read("stored"):
        try:
            got = adapter.store(case, _created(case["want"]))
        except NotExpressible as reason:
            differing[number] = f"not expressible: {reason}"
            continue
        except errors.ApiError:
            continue
        if texts := _compare(adapter.apply_defaults(case["want"]), got, _without_system_fields):
            differing[number] = f"{_label(case)} " + "; ".join(texts)
    return {"stored": differing}


def _compare(want: Any, got: Any, simplify: Callable[[Any], Any]) -> list[str]:
    """Returns the differences of two objects. Fields of gates that are off by default, and were on
    where the cases come from, are not wanted.
    """
    return list(cases.compare(simplify(_without_switched_off(want)), simplify(got)))


def _label(case: Case) -> str:
    verb = case["sub"] or ("update" if "old" in case else "create")
    return f"{case['new']['kind']} {verb}"


def _words(want: Any) -> str:
    causes = [f"{cause['f']}: {cause['m']}"[:200] for cause in want.get("causes") or ()]
    return "upstream: " + ("accepted" if want["ok"] else "; ".join(causes) or str(want.get("err")))


def _by_field(wanted: set[str], got: Verdict) -> str:
    return f"missing {sorted(wanted - got.fields)}, extra {sorted(got.fields - wanted)}"


def _created(want: Any) -> datetime:
    return datetime.fromisoformat(want["metadata"]["creationTimestamp"])


def _comparable(obj: Any) -> Any:
    """Returns an object without empty fields and without what only strategies set upstream."""
    parent, field = _SET_BY_STRATEGIES.get(obj["kind"], ("", ""))
    if isinstance(obj.get(parent), dict):
        kept = {name: value for name, value in obj[parent].items() if name != field}
        obj = {**obj, parent: kept}
    return cases.without_empty(obj)


def _without_switched_off(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: part for name, part in value.items() if name not in _SWITCHED_OFF}
        return {name: _without_switched_off(part) for name, part in kept.items()}
    return [_without_switched_off(part) for part in value] if isinstance(value, list) else value


def _without_system_fields(obj: Any) -> Any:
    meta = {name: part for name, part in obj["metadata"].items() if name not in _SYSTEM_FIELDS}
    return cases.without_empty({**obj, "metadata": meta})

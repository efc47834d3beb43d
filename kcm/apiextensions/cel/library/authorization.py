"""The functions of the variable `authorizer`, which ask whether somebody may do something.

A check is a map that grows with each call of the chain, such as
`authorizer.group('apps').resource('deployments').check('create').allowed()`. The last calls ask the
authorizer that `asking` names for the evaluation.

Source: staging/src/k8s.io/apiserver/pkg/cel/library/authz.go, Kubernetes 1.33. Departures: no
authorizer of kcm looks at field and label selectors, so they change nothing, and `errored` is
always false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

KIND = "kubernetes.authorization"
AUTHORIZER, RESOURCE, PATH, DECISION = "authorizer", "resource", "path", "decision"
_FIELDS = ("group", "resource", "subresource", "namespace", "name")

Ask = Callable[[Mapping[str, str]], tuple[bool, str]]
"""Returns whether a check is allowed, and why. The check has the keys `verb`, `account` (of a
service account, or ""), and `path` or `group`, `resource`, `subresource`, `namespace`, `name`."""

_ASK: ContextVar[Ask | None] = ContextVar("ask", default=None)


@contextmanager
def asking(ask: Ask) -> Iterator[None]:
    """Asks `ask` about each check while the block runs."""
    before = _ASK.set(ask)
    try:
        yield
    finally:
        _ASK.reset(before)


def authorizer(request: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Returns the value of the variable. `request` are the fields of `requestResource`."""
    value: dict[str, Any] = {KIND: AUTHORIZER, "account": ""}
    if request is not None:
        value["requestResource"] = {**request, KIND: RESOURCE, "account": ""}
    return value


def _require(value: Any, kind: str) -> dict[str, Any]:
    if not (isinstance(value, Mapping) and value.get(KIND) == kind):
        raise ValueError("no such overload")
    return dict(value)


def service_account(value: Any, namespace: str, name: str) -> dict[str, Any]:
    return _require(value, AUTHORIZER) | {"account": f"{namespace}/{name}"}


def path(value: Any, where: str) -> dict[str, Any]:
    if not where:
        raise ValueError("path must not be empty")
    return {KIND: PATH, "account": _require(value, AUTHORIZER)["account"], "path": where}


def group(value: Any, name: str) -> dict[str, Any]:
    return {KIND: "group", "account": _require(value, AUTHORIZER)["account"], "group": name}


def resource(value: Any, name: str) -> dict[str, Any]:
    checked = _require(value, "group")
    if not name:
        raise ValueError("resource must not be empty")
    empty = dict.fromkeys(_FIELDS, "")
    return empty | checked | {KIND: RESOURCE, "resource": name}


def subresource(value: Any, name: str) -> dict[str, Any]:
    return _require(value, RESOURCE) | {"subresource": name}


def namespace(value: Any, name: str) -> dict[str, Any]:
    return _require(value, RESOURCE) | {"namespace": name}


def name(value: Any, text: str) -> dict[str, Any]:
    return _require(value, RESOURCE) | {"name": text}


def field_selector(value: Any, _selector: str) -> dict[str, Any]:
    return _require(value, RESOURCE)


def label_selector(value: Any, _selector: str) -> dict[str, Any]:
    return _require(value, RESOURCE)


def check(value: Any, verb: str) -> dict[str, Any]:
    kind = value.get(KIND) if isinstance(value, Mapping) else None
    if kind not in (RESOURCE, PATH):
        raise ValueError("no such overload")
    ask = _ASK.get()
    if ask is None:
        raise ValueError("authorizer is not available in an expression that may cost this much")
    fields = {str(key): str(text) for key, text in value.items() if key != KIND}
    allowed, why = ask({**fields, "verb": verb})
    return {KIND: DECISION, "allowed": allowed, "reason": why}


def allowed(value: Any) -> bool:
    return bool(_require(value, DECISION)["allowed"])


def reason(value: Any) -> str:
    return str(_require(value, DECISION)["reason"])


def errored(value: Any) -> bool:
    return not _require(value, DECISION)


def error(value: Any) -> str:
    return "" if _require(value, DECISION) else "unknown"

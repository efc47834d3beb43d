"""The parameters of a policy: the objects that a binding names.

Source: CollectParams in
staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go, Kubernetes
1.33.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kcm import errors
from kcm.api.admissionregistration_v1 import DENY, ParamRef
from kcm.api.scheme import Resource
from kcm.apimachinery.labels import Selector
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.cache.watch_cache import WatchCache

NO_PARAMS: Sequence[Any] = (None,)  # evaluates once, without parameters


class BindingConfigurationError(errors.KcmError):
    """A binding's parameters cannot be found; the message says why."""


def collect_params(
    caches: Caches, kind: Resource | None, reference: ParamRef | None, namespace: str
) -> Sequence[Any]:
    """Returns the parameters as JSON values, one for each evaluation.

    `namespace` is that of the written object. Raises BindingConfigurationError.
    """
    if kind is None or reference is None:
        return NO_PARAMS
    inside = _namespace(kind, reference, namespace)
    cache = caches.cache(kind)
    if cache.position < 0:
        raise BindingConfigurationError(
            f"paramKind kind `{kind.api_version}, Kind={kind.kind}` not yet synced to use for "
            "admission"
        )
    entries = _find(cache, reference, inside)
    if not entries and reference.parameter_not_found_action == DENY:
        raise BindingConfigurationError(
            "no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    return [_to_json(entry, kind) for entry in entries]


def _namespace(kind: Resource, reference: ParamRef, namespace: str) -> str:
    if not kind.namespaced:
        if reference.namespace:
            raise BindingConfigurationError(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        return ""
    inside = reference.namespace or namespace
    if not inside:
        raise BindingConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return inside


def _find(cache: WatchCache, reference: ParamRef, namespace: str) -> list[Entry]:
    if reference.name:
        entry = cache.get(f"{namespace}/{reference.name}" if namespace else reference.name)
        return [entry] if entry is not None else []
    if reference.selector is None:
        raise BindingConfigurationError("one of name or selector must be provided")
    try:
        selector = Selector.from_label_selector(reference.selector)
    except errors.BadRequest as error:
        raise BindingConfigurationError(error.message) from None
    return [e for e in cache.entries(namespace) if selector.matches(e.obj.metadata.labels)]


def _to_json(entry: Entry, kind: Resource) -> Any:
    return json.loads(entry.convert_to(kind).raw)

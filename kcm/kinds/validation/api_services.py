"""Validation of APIServices.

Source: staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/validation/validation.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import binascii

from kcm.api.apiregistration_v1 import (
    FALSE,
    TRUE,
    UNKNOWN,
    APIService,
    APIServiceSpec,
    ServiceReference,
    name_of,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, invalid_all, not_supported, required
from kcm.kinds.validation import meta

_MOST_GROUP_PRIORITY, _MOST_VERSION_PRIORITY, _MOST_PORT = 20000, 1000, 65535
_GROUP, _BUNDLE, _SKIP = "spec.group", "spec.caBundle", "spec.insecureSkipTLSVerify"


def create(service: APIService) -> Faults:
    wanted = name_of(service.spec.group or "", service.spec.version or "")

    def name_faults(name: str) -> list[str]:
        faults = names.path_segment_faults(name)
        if faults or name == wanted:
            return faults
        return [f'must be `spec.version+"."+spec.group`: "{wanted}"']

    faults = meta.metadata(service, namespaced=False, name_rule=name_faults)
    return faults + _group_version(service.spec) + _server(service.spec)


def update(new: APIService, old: APIService) -> Faults:
    return meta.metadata_update(new, old) + create(new)


def status_update(new: APIService, old: APIService) -> Faults:
    statuses = (TRUE, FALSE, UNKNOWN)
    return meta.metadata_update(new, old) + [
        not_supported(f"status.conditions[{place}].status", condition.status, statuses)
        for place, condition in enumerate(new.status.conditions or ())
        if condition.status not in statuses
    ]


def _group_version(spec: APIServiceSpec) -> Faults:
    group, version = spec.group or "", spec.version or ""
    faults: Faults = []
    if not group and version != "v1":
        why = "only v1 may have an empty group and it better be legacy kube"
        faults.append(required(_GROUP, why))
    if group:
        faults += invalid_all(_GROUP, group, names.subdomain_faults(group))
    faults += invalid_all("spec.version", version, names.label_1035_faults(version))
    if not 0 < spec.group_priority_minimum <= _MOST_GROUP_PRIORITY:
        why = "must be positive and less than 20000"
        faults.append(invalid("spec.groupPriorityMinimum", spec.group_priority_minimum, why))
    if not 0 < spec.version_priority <= _MOST_VERSION_PRIORITY:
        why = "must be positive and less than 1000"
        faults.append(invalid("spec.versionPriority", spec.version_priority, why))
    return faults


def _server(spec: APIServiceSpec) -> Faults:
    bundle, skips = spec.ca_bundle or "", bool(spec.insecure_skip_tls_verify)
    faults: Faults = _base64(bundle)
    if spec.service is None:
        if bundle:
            why = "local APIServices may not have a caBundle"
            faults.append(invalid(_BUNDLE, f"{_size(bundle)} bytes", why))
        if skips:
            why = "local APIServices may not have insecureSkipTLSVerify"
            faults.append(invalid(_SKIP, True, why))
        return faults
    faults += _service(spec.service)
    if skips and bundle:
        faults.append(invalid(_SKIP, True, "may not be true if caBundle is present"))
    return faults


def _service(reference: ServiceReference) -> Faults:
    faults: Faults = []
    if not reference.namespace:
        faults.append(required("spec.service.namespace"))
    if not reference.name:
        faults.append(required("spec.service.name"))
    port = reference.port or 0
    if not 0 < port <= _MOST_PORT:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        faults.append(invalid("spec.service.port", port, why))
    return faults


def _base64(text: str) -> Faults:
    """Checks base64. Upstream already rejects invalid base64 when it decodes the request."""
    return [] if _size(text) >= 0 else [invalid(_BUNDLE, text, "illegal base64 data")]


def _size(text: str) -> int:
    """Returns how many bytes base64 stands for, -1 if it is invalid."""
    try:
        return len(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return -1

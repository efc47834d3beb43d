"""Validation of references to fields of the pod, and to keys of ConfigMaps and Secrets.

Source: pkg/apis/core/validation/validation.go and pkg/apis/core/pods/helpers.go
(ConvertDownwardAPIFieldLabel), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1.environment import (
    ConfigMapKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, invalid_all, not_supported, required
from kcm.apimachinery.metadata_checks import label_key

IN_VARIABLES = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP",
    "status.podIPs",
)  # fmt: skip
IN_VOLUMES = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
    "metadata.uid",
)  # fmt: skip
# All fields that ConvertDownwardAPIFieldLabel accepts.
_FIELDS = frozenset(
    {*IN_VARIABLES, *IN_VOLUMES, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
    "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = ("1m", "1")
_BYTE_DIVISORS = (
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
)  # fmt: skip


def field_selector(field: ObjectFieldSelector, offered: Sequence[str], path: str) -> Faults:
    """Checks a reference to a field of the pod, which must be one of `offered`."""
    if not field.api_version:
        return [required(f"{path}.apiVersion")]
    if not field.field_path:
        return [required(f"{path}.fieldPath")]
    base, key = split_subscript(field.field_path)
    complaint = _conversion_error(field, base, key)
    if complaint:
        detail = f"error converting fieldPath: {complaint}"
        return [invalid(f"{path}.fieldPath", field.field_path, detail)]
    if key is not None:
        return label_key(key.lower() if base == "metadata.annotations" else key, path)
    return [] if base in offered else [not_supported(f"{path}.fieldPath", base, offered)]


def _conversion_error(field: ObjectFieldSelector, base: str, key: str | None) -> str:
    if field.api_version != "v1":
        return f"unsupported pod version: {field.api_version}"
    if key is not None and base not in ("metadata.annotations", "metadata.labels"):
        return f"field label does not support subscript: {field.field_path}"
    if base not in _FIELDS:
        return f"field label not supported: {field.field_path}"
    return ""


def split_subscript(path: str) -> tuple[str, str | None]:
    """Splits `metadata.labels['app']` into `metadata.labels` and `app`.

    The second part is None for a path without a subscript. Source: SplitMaybeSubscriptedPath in
    pkg/fieldpath/fieldpath.go.
    """
    base, opening, key = path.removesuffix("']").partition("['")
    return (base, key) if path.endswith("']") and opening and base else (path, None)


def resource_selector(field: ResourceFieldSelector, path: str, *, in_volume: bool) -> Faults:
    """Checks a reference to a container's limit or request.

    In volumes it needs a container name.
    """
    name, faults = field.resource, []
    if in_volume and not field.container_name:
        faults.append(required(f"{path}.containerName"))
    elif not name:
        faults.append(required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        faults.append(not_supported(f"{path}.resource", name, _RESOURCES))
    divisor = str(field.divisor) if field.divisor else ""
    if divisor and not _is_divisor(name, divisor):
        faults.append(invalid(f"{path}.divisor", name, _divisor_detail(name)))
    return faults


def _is_divisor(resource: str, divisor: str) -> bool:
    if resource in ("limits.cpu", "requests.cpu"):
        return divisor in _CPU_DIVISORS
    if resource in _RESOURCES or resource.startswith(_HUGE_PAGES):
        return divisor in _BYTE_DIVISORS
    return True


def _divisor_detail(resource: str) -> str:
    if resource.endswith(".cpu"):
        return "only divisor's values 1m and 1 are supported with the cpu resource"
    what = "hugepages" if resource.startswith(_HUGE_PAGES) else resource.partition(".")[2]
    what = "local ephemeral storage" if what == "ephemeral-storage" else what
    return (
        f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {what} resource"
    )


def key_selector(field: ConfigMapKeySelector | SecretKeySelector, path: str) -> Faults:
    """Checks a reference to a key of a ConfigMap or Secret."""
    name = field.name or ""
    faults = invalid_all(f"{path}.name", name, names.subdomain_faults(name))
    if not field.key:
        return [*faults, required(f"{path}.key")]
    return faults + invalid_all(f"{path}.key", field.key, names.config_map_key_faults(field.key))

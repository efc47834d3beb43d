"""Validation of ConfigMaps and Secrets.

Messages never contain a Secret's values. Source: pkg/apis/core/validation/validation.go, Kubernetes
1.33.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping

from kcm.api.core_v1 import ConfigMap, Secret
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    ROOT,
    Faults,
    forbidden,
    invalid,
    invalid_all,
    require_unchanged,
    required,
    too_long,
)
from kcm.kinds.validation import meta

SIZE_LIMIT = 1024 * 1024  # bytes of decoded values
_IMMUTABLE = "field is immutable when `immutable` is set"
_REDACTED = "<secret contents redacted>"
_ACCOUNT = "kubernetes.io/service-account.name"


def create_config_map(config_map: ConfigMap) -> Faults:
    faults = meta.metadata(config_map, namespaced=True, name_rule=names.subdomain_faults)
    return faults + _contents(config_map)


def update_config_map(new: ConfigMap, old: ConfigMap) -> Faults:
    faults = meta.metadata_update(new, old)
    if old.immutable:
        if not new.immutable:
            faults.append(forbidden("immutable", _IMMUTABLE))
        faults += _immutable("data", new.data, old.data)
        faults += _immutable("binaryData", new.binary_data, old.binary_data)
    return faults + _contents(new)


def _immutable(path: str, new: Mapping[str, str] | None, old: Mapping[str, str] | None) -> Faults:
    return [] if (new or {}) == (old or {}) else [forbidden(path, _IMMUTABLE)]


def _contents(config_map: ConfigMap) -> Faults:
    text, binary = config_map.data or {}, config_map.binary_data or {}
    faults: Faults = []
    for key in text:
        faults += _key_faults(key, f"data[{key}]")
        if key in binary:
            detail = "duplicate of key present in binaryData"
            faults.append(invalid(f"data[{key}]", key, detail))
    for key, value in binary.items():
        faults += _key_faults(key, f"binaryData[{key}]")
        faults += _base64(value, f"binaryData[{key}]")
    if _text_size(text.values()) + _measure_decoded(binary.values()) > SIZE_LIMIT:
        faults.append(too_long(ROOT, SIZE_LIMIT))
    return faults


def _key_faults(key: str, path: str) -> Faults:
    return invalid_all(path, key, names.config_map_key_faults(key))


def _decode(value: str) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


def _base64(value: str, path: str) -> Faults:
    """Checks base64. Upstream already rejects invalid base64 when it decodes the request."""
    return [] if _decode(value) is not None else [invalid(path, _REDACTED, "illegal base64 data")]


def _text_size(values: Iterable[str]) -> int:
    return sum(len(value.encode(errors="replace")) for value in values)


def _measure_decoded(values: Iterable[str]) -> int:
    return sum(len(value) // 4 * 3 - value.count("=", -2) for value in values)


def create_secret(secret: Secret) -> Faults:
    faults = meta.metadata(secret, namespaced=True, name_rule=names.subdomain_faults)
    return faults + _secret(secret)


def update_secret(new: Secret, old: Secret) -> Faults:
    faults = meta.metadata_update(new, old)
    faults += require_unchanged("type", new.type, old.type)
    if old.immutable:
        if not new.immutable:
            faults.append(forbidden("immutable", _IMMUTABLE))
        faults += _immutable("data", new.data, old.data)
    return faults + _secret(new)


def _secret(secret: Secret) -> Faults:
    data = secret.data or {}
    faults: Faults = []
    for key, value in data.items():
        faults += _key_faults(key, f"data[{key}]") + _base64(value, f"data[{key}]")
    if _measure_decoded(data.values()) > SIZE_LIMIT:
        faults.append(too_long("data", SIZE_LIMIT))
    if secret.type == "kubernetes.io/service-account-token":
        if not secret.annotations.get(_ACCOUNT):
            faults.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    else:
        faults += _required_keys(secret.type or "", data)
    return faults


# What each type requires: a JSON document, all of these keys, or one of these keys.
_DOCUMENTS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_ALL_OF = {"kubernetes.io/tls": ("tls.crt", "tls.key")}
_FILLED = {"kubernetes.io/ssh-auth": "ssh-privatekey"}
_ONE_OF = {"kubernetes.io/basic-auth": ("username", "password")}


def _required_keys(kind: str, data: Mapping[str, str]) -> Faults:
    missing = [key for key in _ALL_OF.get(kind, ()) if key not in data]
    if (key := _FILLED.get(kind)) and not data.get(key):
        missing.append(key)
    if (keys := _ONE_OF.get(kind)) and not any(key in data for key in keys):
        missing += keys
    faults = [required(f"data[{key}]") for key in missing]
    if key := _DOCUMENTS.get(kind):
        faults += _document(data.get(key), f"data[{key}]")
    return faults


def _document(value: str | None, path: str) -> Faults:
    if value is None:
        return [required(path)]
    try:
        if isinstance(json.loads(_decode(value) or b""), dict | None):
            return []
    except (ValueError, RecursionError):
        pass
    return [invalid(path, _REDACTED, "must be a JSON object")]

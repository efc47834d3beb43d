"""Rules that claims and slices share: names, conditions, sets, and JSON of any form.

Source: pkg/apis/resource/validation/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    invalid_all,
    not_supported,
    required,
    too_long,
    too_many,
)
from kcm.kinds.validation.podspec.volumes.sources import csi_driver

T = TypeVar("T")

EFFECTS = ("NoExecute", "NoSchedule", "None")
_POOL_LENGTH = 253
_ID_LENGTH = 32
_MOST_CONDITIONS = 4
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

driver_name = csi_driver


def each(
    items: Sequence[T] | None,
    path: str,
    check: Callable[[T, str], Faults],
    *,
    most: int | None = None,
    key: Callable[[T], Hashable] | None = None,
) -> Faults:
    """Checks each item of a list, its length, and with `key` that no item is there twice."""
    present = items or ()
    if most is not None and len(present) > most:
        return [too_many(path, len(present), most)]
    faults = [fault for at, item in enumerate(present) for fault in check(item, f"{path}[{at}]")]
    seen: set[Hashable] = set()
    for at, identity in enumerate(map(key, present) if key is not None else ()):
        if identity in seen:
            faults.append(duplicate(f"{path}[{at}]", identity))
        seen.add(identity)
    return faults


def label_name(name: str, path: str) -> Faults:
    """Checks a name that is a DNS label."""
    return invalid_all(path, name, names.label_faults(name))


def pool_name(name: str, path: str) -> Faults:
    """Checks the name of a pool: domains, separated by slashes."""
    if not name:
        return [required(path)]
    faults = [too_long(path, _POOL_LENGTH)] if len(name) > _POOL_LENGTH else []
    for part in name.split("/"):
        faults += invalid_all(path, part, names.subdomain_faults(part))
    return faults


def qualified_name(name: str, path: str) -> Faults:
    """Checks an identifier, perhaps with a domain in front of it."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return _identifier(domain, path)
    if "/" in identifier:
        return []  # as upstream, which does not check such a name
    faults: Faults = []
    faults += driver_name(domain, path) if domain else _empty(path, "domain")
    return faults + (_identifier(identifier, path) if identifier else _empty(path, "name"))


def _empty(path: str, what: str) -> Faults:
    return [invalid(path, "", f"the {what} must not be empty")]


def fully_qualified_name(name: str, path: str) -> Faults:
    """Checks an identifier with a domain."""
    faults = qualified_name(name, path)
    if "/" not in name:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        faults.append(invalid(path, name, detail))
    return faults


def _identifier(text: str, path: str) -> Faults:
    faults = [too_long(path, _ID_LENGTH)] if len(text) > _ID_LENGTH else []
    if not _IDENTIFIER.fullmatch(text):
        detail = (
            "a valid C identifier must start with alphabetic character or '_', followed by a "
            "string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
            "'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
        )
        faults.append(invalid(path, text, detail))
    return faults


def share_id(text: str | None, path: str) -> Faults:
    """Checks the id of one share of a device that several claims use."""
    if text is None or _UID.fullmatch(text):
        return []
    detail = (
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with "
        "lowercase hexadecimal characters"
    )
    return [invalid(path, text, detail)]


def json_object(value: Any, path: str, most: int) -> Faults:
    """Checks JSON for a driver: an object of at most so many bytes."""
    if value is None:
        return [required(path)]
    if len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()) > most:
        return [too_long(path, most)]
    if not isinstance(value, dict):
        return [invalid(path, "<value omitted>", "must be a valid JSON object")]
    return []


def effect(value: str | None, path: str) -> Faults:
    """Checks the effect of a taint or toleration, if there is one."""
    return [not_supported(path, value, EFFECTS)] if value and value not in EFFECTS else []


def label_value(value: str | None, path: str) -> Faults:
    return invalid_all(path, value or "", metadata_checks.label_value_faults(value or ""))


def binding_conditions(good: Sequence[str], bad: Sequence[str], path: str) -> Faults:
    """Checks the conditions for which binding a pod waits, and with which it fails."""
    ready, failed = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    faults = [
        *each(good, ready, metadata_checks.label_key, most=_MOST_CONDITIONS, key=str),
        *each(bad, failed, metadata_checks.label_key, most=_MOST_CONDITIONS, key=str),
    ]
    awaited = frozenset(good)
    for index, condition in enumerate(bad):
        if condition in awaited:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            faults.append(invalid(f"{failed}[{index}]", condition, detail))
    if bad and not good:
        detail = "bindingConditions are required to use bindingFailureConditions"
        faults.append(invalid(ready, list(good), detail))
    if good and not bad:
        detail = "bindingFailureConditions are required to use bindingConditions"
        faults.append(invalid(failed, list(bad), detail))
    return faults

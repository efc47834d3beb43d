"""Validation of volumes whose files come from keys, fields of the pod and tokens.

Source: validateProjectionSources and the functions near it in
pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1.volume_sources import (
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    KeyToPath,
)
from kcm.api.core_v1.volumes import (
    TOKEN_VOLUME,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    VolumeProjection,
)
from kcm.apimachinery.field_errors import Faults, forbidden, invalid, required
from kcm.kinds.validation.podspec.references import IN_VOLUMES, field_selector, resource_selector
from kcm.kinds.validation.podspec.volumes.paths import file_mode, not_reserved

_SHORTEST_TOKEN = 10 * 60  # seconds
_LONGEST_TOKEN = 2**32


def key_to_paths(items: Iterable[KeyToPath], path: str) -> Faults:
    """Checks keys and the paths of their files."""
    faults: Faults = []
    for index, item in enumerate(items):
        where = f"{path}[{index}]"
        if not item.key:
            faults.append(required(f"{where}.key"))
        faults += _file(item.path, f"{where}.path")
        faults += file_mode(item.mode, f"{where}.mode")
    return faults


def _file(target: str, path: str) -> Faults:
    return not_reserved(target, path) if target else [required(path)]


def downward_api(source: DownwardAPIVolumeSource, path: str) -> Faults:
    faults = file_mode(source.default_mode, f"{path}.defaultMode")
    for item in source.items or ():
        faults += _downward_file(item, path)
    return faults


def _downward_file(item: DownwardAPIVolumeFile, path: str) -> Faults:
    faults = _file(item.path, f"{path}.path")
    if item.field_ref is not None:
        faults += field_selector(item.field_ref, IN_VOLUMES, f"{path}.fieldRef")
        if item.resource_field_ref is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            faults.append(invalid(path, "resource", detail))
    elif item.resource_field_ref is not None:
        where = f"{path}.resourceFieldRef"
        faults += resource_selector(item.resource_field_ref, where, in_volume=True)
    else:
        faults.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return faults + file_mode(item.mode, f"{path}.mode")


def projected(source: ProjectedVolumeSource, path: str) -> Faults:
    """Checks a projected volume, whose files must have different paths."""
    if source is TOKEN_VOLUME:
        return []
    faults = file_mode(source.default_mode, f"{path}.defaultMode")
    taken: set[str] = set()
    for index, part in enumerate(source.sources):
        where = f"{path}.sources[{index}]"
        set_fields = [name for name in type(part).model_fields if getattr(part, name) is not None]
        faults += _part(part, where, path)
        for target, shown in _targets(part):
            if target and target in taken:
                faults.append(invalid(path, shown, "conflicting duplicate paths"))
            taken.add(target)
        if len(set_fields) > 1:
            detail = "may not specify more than 1 volume type per source"
            faults.append(forbidden(where, detail))
    return faults


def _part(part: VolumeProjection, where: str, path: str) -> Faults:
    faults: Faults = []
    for name, keys in (("secret", part.secret), ("configMap", part.config_map)):
        if keys is not None:
            faults += [] if keys.name else [required(f"{where}.{name}.name")]
            faults += key_to_paths(keys.items or (), f"{where}.{name}.items")
    if part.downward_api is not None:
        for item in part.downward_api.items or ():
            faults += _downward_file(item, f"{where}.downwardAPI")
    if part.service_account_token is not None:
        faults += _token(part.service_account_token, f"{where}.serviceAccountToken", path)
    return faults


def _targets(part: VolumeProjection) -> Iterable[tuple[str, str]]:
    """Yields the paths of a source's files, each with the value that a fault about it shows."""
    for keys in (part.secret, part.config_map):
        for item in (keys.items if keys else None) or ():
            yield item.path, (keys.name if keys else None) or ""
    for file in (part.downward_api.items if part.downward_api else None) or ():
        yield file.path, file.path


def _token(token: ServiceAccountTokenProjection, where: str, path: str) -> Faults:
    faults: Faults = []
    seconds = token.expiration_seconds
    if seconds is not None and seconds < _SHORTEST_TOKEN:
        detail = "may not specify a duration less than 10 minutes"
        faults.append(invalid(f"{where}.expirationSeconds", seconds, detail))
    if seconds is not None and seconds > _LONGEST_TOKEN:
        detail = "may not specify a duration larger than 2^32 seconds"
        faults.append(invalid(f"{where}.expirationSeconds", seconds, detail))
    return faults + _file(token.path, f"{path}.path")

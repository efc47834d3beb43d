"""Validation of the environment variables of containers.

Source: ValidateEnv and ValidateEnvFrom in pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import PodSpec
from kcm.api.core_v1.environment import EnvFromSource, EnvVar, EnvVarSource, FileKeySelector
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, invalid_all, not_found, required
from kcm.kinds.validation.podspec.references import (
    IN_VARIABLES,
    field_selector,
    key_selector,
    resource_selector,
)
from kcm.kinds.validation.podspec.volumes.paths import no_backsteps


def variables(environment: Iterable[EnvVar], path: str) -> Faults:
    faults: Faults = []
    for index, variable in enumerate(environment):
        where = f"{path}[{index}]"
        if not variable.name:
            faults.append(required(f"{where}.name"))
        else:
            complaints = names.env_var_faults(variable.name)
            faults += invalid_all(f"{where}.name", variable.name, complaints)
        if variable.value_from is not None:
            faults += _source(variable.value_from, bool(variable.value), f"{where}.valueFrom")
    return faults


def _source(source: EnvVarSource, has_value: bool, path: str) -> Faults:
    faults: Faults = []
    count = 0
    if source.field_ref is not None:
        count += 1
        faults += field_selector(source.field_ref, IN_VARIABLES, f"{path}.fieldRef")
    if source.resource_field_ref is not None:
        count += 1
        where = f"{path}.resourceFieldRef"
        faults += resource_selector(source.resource_field_ref, where, in_volume=False)
    if source.config_map_key_ref is not None:
        count += 1
        faults += key_selector(source.config_map_key_ref, f"{path}.configMapKeyRef")
    if source.secret_key_ref is not None:
        count += 1
        faults += key_selector(source.secret_key_ref, f"{path}.secretKeyRef")
    if source.file_key_ref is not None:
        count += 1
        faults += _file_key(source.file_key_ref, f"{path}.fileKeyRef")
    if not count:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        faults.append(invalid(path, "", detail))
    elif has_value:
        faults.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        detail = "may not have more than one field specified at a time"
        faults.append(invalid(path, "", detail))
    return faults


def _file_key(source: FileKeySelector, path: str) -> Faults:
    parts = (
        ("key", source.key, names.env_var_faults),
        ("volumeName", source.volume_name, names.label_faults),
    )
    faults: Faults = []
    for field, text, rule in parts:
        where = f"{path}.{field}"
        faults += invalid_all(where, text, rule(text)) if text else [required(where)]
    where = f"{path}.path"
    return faults + (no_backsteps(source.path, where) if source.path else [required(where)])


def file_volumes(spec: PodSpec, path: str) -> Faults:
    """Checks that variables come from files on volumes of the kind emptyDir."""
    volumes = {volume.name: volume for volume in spec.volumes or ()}
    containers = {
        "initContainers": spec.init_containers,
        "containers": spec.containers,
        "ephemeralContainers": spec.ephemeral_containers,
    }
    faults: Faults = []
    for field, present in containers.items():
        for index, container in enumerate(present or ()):
            for at, variable in enumerate(container.env or ()):
                source = variable.value_from.file_key_ref if variable.value_from else None
                if source is None:
                    continue
                where = f"{path}.{field}[{index}].env[{at}].valueFrom.fileKeyRef.volumeName"
                volume = volumes.get(source.volume_name)
                if volume is None:
                    faults.append(not_found(where, source.volume_name))
                elif volume.empty_dir is None:
                    detail = "referenced volume must be of type emptyDir"
                    faults.append(invalid(where, source.volume_name, detail))
    return faults


def whole_sources(sources: Iterable[EnvFromSource], path: str) -> Faults:
    """Checks envFrom, whose entries are ConfigMaps and Secrets."""
    faults: Faults = []
    for index, source in enumerate(sources):
        where = f"{path}[{index}]"
        if source.prefix:
            complaints = names.env_var_faults(source.prefix)
            faults += invalid_all(f"{where}.prefix", source.prefix, complaints)
        references = {"configMapRef": source.config_map_ref, "secretRef": source.secret_ref}
        count = 0
        for field, reference in references.items():
            if reference is not None:
                count += 1
                faults += _name(reference.name or "", f"{where}.{field}.name")
        if not count:
            detail = "must specify one of: `configMapRef` or `secretRef`"
            faults.append(invalid(path, "", detail))
        elif count > 1:
            detail = "may not have more than one field specified at a time"
            faults.append(invalid(path, "", detail))
    return faults


def _name(name: str, path: str) -> Faults:
    if not name:
        return [required(path)]
    return invalid_all(path, name, names.subdomain_faults(name))

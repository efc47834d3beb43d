"""Rules for CustomResourceDefinitions: names, versions and scope. Schemas are not looked into.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api import names
from kcm.api.apiextensions_v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
)
from kcm.api.validation import meta
from kcm.api.validation.report import (
    Faults,
    invalid,
    invalid_all,
    not_supported,
    one_of,
    required,
    unchanged,
)

_SCOPES = ("Cluster", "Namespaced")
_CONVERSIONS = ("None", "Webhook")
_ONE_STORAGE = "must have exactly one version marked as storage version"


def create(definition: CustomResourceDefinition) -> Faults:
    faults = meta.metadata(definition, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _name(definition) + _spec(definition.spec)


def update(new: CustomResourceDefinition, old: CustomResourceDefinition) -> Faults:
    faults = meta.metadata_update(new, old) + _spec(new.spec)
    established = any(
        condition.type == "Established" and condition.status == "True"
        for condition in old.status.conditions or ()
    )
    if established:
        faults += unchanged("spec.scope", new.spec.scope, old.spec.scope)
        faults += unchanged("spec.names.kind", new.spec.names.kind, old.spec.names.kind)
    faults += unchanged("spec.group", new.spec.group, old.spec.group)
    faults += unchanged("spec.names.plural", new.spec.names.plural, old.spec.names.plural)
    return faults + _stored(new)


def status_update(new: CustomResourceDefinition, old: CustomResourceDefinition) -> Faults:
    return meta.metadata_update(new, old) + _stored(new)


def _stored(definition: CustomResourceDefinition) -> Faults:
    """Every version in which objects may be stored must still be there."""
    known = {version.name for version in definition.spec.versions}
    return [
        invalid(f"status.storedVersions[{index}]", name, "must appear in spec.versions")
        for index, name in enumerate(definition.status.stored_versions or ())
        if name not in known
    ]


def _name(definition: CustomResourceDefinition) -> Faults:
    spec = definition.spec
    if definition.name == f"{spec.names.plural}.{spec.group}":
        return []
    detail = 'must be spec.names.plural+"."+spec.group'
    return [invalid("metadata.name", definition.name, detail)]


def _spec(spec: CustomResourceDefinitionSpec) -> Faults:
    faults: Faults = []
    if not spec.group:
        faults.append(required("spec.group"))
    elif complaints := names.subdomain_faults(spec.group):
        faults += invalid_all("spec.group", spec.group, complaints)
    elif "." not in spec.group:
        faults.append(invalid("spec.group", spec.group, "should be a domain with at least one dot"))
    faults += one_of("spec.scope", spec.scope, _SCOPES)
    faults += _versions(spec.versions)
    faults += _names(spec.names, "spec.names")
    strategy = spec.conversion.strategy if spec.conversion else ""
    if strategy not in _CONVERSIONS:
        faults.append(not_supported("spec.conversion.strategy", strategy, _CONVERSIONS))
    if spec.preserve_unknown_fields:
        faults.append(invalid("spec.preserveUnknownFields", True, "must be false"))
    return faults


def _versions(versions: Sequence[CustomResourceDefinitionVersion]) -> Faults:
    faults: Faults = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        faults += invalid_all(f"{path}.name", version.name, names.label_1035_faults(version.name))
        if version.name in seen:
            detail = "must contain unique version names"
            faults.append(invalid("spec.versions", version.name, detail))
        seen.add(version.name)
        if not isinstance((version.schema_ or {}).get("openAPIV3Schema"), dict):
            faults.append(required(f"{path}.schema.openAPIV3Schema", "schemas are required"))
    if not versions:
        faults.append(required("spec.versions", "must have at least one version"))
    if sum(version.storage for version in versions) != 1:
        faults.append(invalid("spec.versions", list(versions), _ONE_STORAGE))
    return faults


def _names(found: CustomResourceDefinitionNames, path: str) -> Faults:
    faults: Faults = []
    values = {
        "plural": found.plural,
        "singular": found.singular or "",
        "kind": found.kind,
        "listKind": found.list_kind or "",
    }
    for field, value in values.items():
        if not value:
            faults.append(required(f"{path}.{field}"))
        else:
            faults += _word(value, f"{path}.{field}", mixed=field in ("kind", "listKind"))
    for index, word in enumerate(found.short_names or ()):
        faults += _word(word, f"{path}.shortNames[{index}]")
    for index, word in enumerate(found.categories or ()):
        faults += _word(word, f"{path}.categories[{index}]")
    if found.kind and found.kind == found.list_kind:
        detail = "kind and listKind may not be the same"
        faults.append(invalid(f"{path}.listKind", found.list_kind, detail))
    return faults


def _word(text: str, path: str, *, mixed: bool = False) -> Faults:
    if not mixed:
        return invalid_all(path, text, names.label_1035_faults(text))
    prefix = "may have mixed case, but should otherwise match: "
    complaints = names.label_1035_faults(text.lower())
    return invalid_all(path, text, [prefix + complaint for complaint in complaints])

"""Validation of CustomResourceDefinitions: names, versions, scope, schemas, columns, subresources.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.apiextensions_v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
)
from kcm.apiextensions import jsonpath, structural
from kcm.apimachinery import names
from kcm.apimachinery.base import JsonObject
from kcm.apimachinery.field_errors import (
    Faults,
    invalid,
    invalid_all,
    one_of,
    require_unchanged,
    required,
)
from kcm.kinds.validation import conversions, meta, selectable_fields

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (
    "byte", "date", "date-time", "double", "float", "int32", "int64", "password"
)  # fmt: skip
_LONGEST_WARNING = 256  # bytes
_APPROVED = "api-approved.kubernetes.io"
_SCOPES = ("Cluster", "Namespaced")
_ONE_STORAGE = "must have exactly one version marked as storage version"


def create(definition: CustomResourceDefinition) -> Faults:
    faults = meta.metadata(definition, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _name(definition) + _approval(definition) + _spec(definition.spec)


def update(new: CustomResourceDefinition, old: CustomResourceDefinition) -> Faults:
    faults = meta.metadata_update(new, old) + _spec(new.spec, old)
    established = any(
        condition.type == "Established" and condition.status == "True"
        for condition in old.status.conditions or ()
    )
    if established:
        faults += require_unchanged("spec.scope", new.spec.scope, old.spec.scope)
        faults += require_unchanged("spec.names.kind", new.spec.names.kind, old.spec.names.kind)
    faults += require_unchanged("spec.group", new.spec.group, old.spec.group)
    faults += require_unchanged("spec.names.plural", new.spec.names.plural, old.spec.names.plural)
    return faults + _versions_in_storage(new)


def status_update(new: CustomResourceDefinition, old: CustomResourceDefinition) -> Faults:
    return meta.metadata_update(new, old) + _versions_in_storage(new)


def _versions_in_storage(definition: CustomResourceDefinition) -> Faults:
    """Checks that the spec still has every version in which objects may be stored."""
    known = {version.name for version in definition.spec.versions}
    return [
        invalid(f"status.storedVersions[{index}]", name, "must appear in spec.versions")
        for index, name in enumerate(definition.status.stored_versions or ())
        if name not in known
    ]


def _approval(definition: CustomResourceDefinition) -> Faults:
    """Checks that a definition in a group of the Kubernetes project has been approved."""
    group = definition.spec.group
    protected = group.endswith((".k8s.io", ".kubernetes.io"))
    if not protected or definition.annotations.get(_APPROVED):
        return []
    detail = (
        f'protected groups must have approval annotation "{_APPROVED}", see '
        "https://github.com/kubernetes/enhancements/pull/1111"
    )
    return [required(f"metadata.annotations[{_APPROVED}]", detail)]


def _name(definition: CustomResourceDefinition) -> Faults:
    spec = definition.spec
    if definition.name == f"{spec.names.plural}.{spec.group}":
        return []
    detail = 'must be spec.names.plural+"."+spec.group'
    return [invalid("metadata.name", definition.name, detail)]


def _spec(
    spec: CustomResourceDefinitionSpec, old: CustomResourceDefinition | None = None
) -> Faults:
    """Checks a spec. `old` is the definition before an update."""
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
    faults += conversions.check(spec.conversion, old)
    if spec.preserve_unknown_fields:
        faults.append(invalid("spec.preserveUnknownFields", True, "must be false"))
    return faults


def _versions(versions: Sequence[CustomResourceDefinitionVersion]) -> Faults:
    faults: Faults = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        faults += invalid_all(f"{path}.name", version.name, names.label_1035_faults(version.name))
        warning = version.deprecation_warning
        if warning is not None:
            complaints = _complaints_about_warning(warning, deprecated=bool(version.deprecated))
            faults += invalid_all(f"{path}.deprecationWarning", warning, complaints)
        if version.name in seen:
            detail = "must contain unique version names"
            faults.append(invalid("spec.versions", version.name, detail))
        seen.add(version.name)
        if not isinstance((version.schema_ or {}).get("openAPIV3Schema"), dict):
            faults.append(required(f"{path}.schema.openAPIV3Schema", "schemas are required"))
        else:
            faults += _schema(version, path)
        faults += _columns(version, f"{path}.additionalPrinterColumns")
        faults += _subresources(version.subresources or {}, f"{path}.subresources")
    if not versions:
        faults.append(required("spec.versions", "must have at least one version"))
    if sum(version.storage for version in versions) != 1:
        faults.append(invalid("spec.versions", list(versions), _ONE_STORAGE))
    return faults


def _complaints_about_warning(text: str, *, deprecated: bool) -> list[str]:
    """Returns what is wrong with the warning of a version."""
    if not deprecated:
        return ["can only be set for deprecated versions"]
    complaints = []
    if len(text.encode(errors="replace")) > _LONGEST_WARNING:
        complaints.append(f"must be <= {_LONGEST_WARNING} characters long")
    if not text:
        complaints.append("must not be an empty string")
    hidden = next((at for at, char in enumerate(text) if not char.isprintable()), None)
    if hidden is not None:
        complaints.append(
            "must only contain printable UTF-8 characters; non-printable character found at index "
            f"{len(text[:hidden].encode(errors='replace'))}"
        )
    return complaints


def _schema(version: CustomResourceDefinitionVersion, path: str) -> Faults:
    """Checks the schema and, if nothing is wrong with it, the selectable fields."""
    schema = (version.schema_ or {})["openAPIV3Schema"]
    return structural.check(schema, f"{path}.schema.openAPIV3Schema") or selectable_fields.check(
        version.selectable_fields or (), schema, f"{path}.selectableFields"
    )


def _columns(version: CustomResourceDefinitionVersion, path: str) -> Faults:
    faults: Faults = []
    for index, column in enumerate(version.additional_printer_columns or ()):
        where = f"{path}[{index}]"
        if not column.name:
            faults.append(required(f"{where}.name"))
        if not column.type:
            detail = f"must be one of {','.join(_COLUMN_TYPES)}"
            faults.append(required(f"{where}.type", detail))
        elif column.type not in _COLUMN_TYPES:
            detail = f"must be one of {','.join(_COLUMN_TYPES)}"
            faults.append(invalid(f"{where}.type", column.type, detail))
        if column.format and column.format not in _COLUMN_FORMATS:
            detail = f"must be one of {','.join(_COLUMN_FORMATS)}"
            faults.append(invalid(f"{where}.format", column.format, detail))
        faults += _json_path(column.json_path, f"{where}.jsonPath")
    return faults


def _json_path(path: str, where: str) -> Faults:
    if not path:
        return [required(where)]
    if not path.startswith("."):
        return [invalid(where, path, "must be a simple json path starting with .")]
    try:
        jsonpath.parse(path)
    except jsonpath.BadPathError as error:
        return [invalid(where, path, f"must be a valid json path: {error}")]
    return []


def _subresources(subresources: JsonObject, path: str) -> Faults:
    scale = subresources.get("scale")
    if not isinstance(scale, dict):
        return []
    faults: Faults = []
    for name, root, needed in (
        ("specReplicasPath", ".spec.", True),
        ("statusReplicasPath", ".status.", True),
        ("labelSelectorPath", "", False),
    ):
        where, value = f"{path}.scale.{name}", str(scale.get(name) or "")
        if not value and not needed:
            continue
        complaints = _json_path(value, where)
        faults += complaints
        if not complaints and not value.startswith(root):
            faults.append(invalid(where, value, f"should be a json path under {root[:-1]}"))
        if not complaints and not root and not value.startswith((".spec.", ".status.")):
            faults.append(
                invalid(where, value, "should be a json path under either .spec or .status")
            )
    return faults


def _names(spec_names: CustomResourceDefinitionNames, path: str) -> Faults:
    faults: Faults = []
    values = {
        "plural": spec_names.plural,
        "singular": spec_names.singular or "",
        "kind": spec_names.kind,
        "listKind": spec_names.list_kind or "",
    }
    for field, value in values.items():
        if not value:
            faults.append(required(f"{path}.{field}"))
        else:
            faults += _word(value, f"{path}.{field}", mixed=field in ("kind", "listKind"))
    for index, word in enumerate(spec_names.short_names or ()):
        faults += _word(word, f"{path}.shortNames[{index}]")
    for index, word in enumerate(spec_names.categories or ()):
        faults += _word(word, f"{path}.categories[{index}]")
    if spec_names.kind and spec_names.kind == spec_names.list_kind:
        detail = "kind and listKind may not be the same"
        faults.append(invalid(f"{path}.listKind", spec_names.list_kind, detail))
    return faults


def _word(text: str, path: str, *, mixed: bool = False) -> Faults:
    if not mixed:
        return invalid_all(path, text, names.label_1035_faults(text))
    prefix = "may have mixed case, but should otherwise match: "
    complaints = names.label_1035_faults(text.lower())
    return invalid_all(path, text, [prefix + complaint for complaint in complaints])

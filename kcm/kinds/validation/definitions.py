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
from kcm.apiextensions import jsonpath
from kcm.apiextensions.schemas import structural
from kcm.apimachinery import field_errors, names
from kcm.apimachinery.base import JsonObject
from kcm.apimachinery.field_errors import (
    Faults,
    invalid,
    invalid_all,
    one_of,
    require_unchanged,
    required,
)
from kcm.errors import FieldError
from kcm.kinds.validation import conversions, meta, selectable_fields

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (
    "byte", "date", "date-time", "double", "float", "int32", "int64", "password"
)  # fmt: skip
_LONGEST_WARNING = 256  # bytes
_APPROVED = "api-approved.kubernetes.io"
_SCOPES = ("Cluster", "Namespaced")
_STILL_STORED = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in "
    "spec.versions until a storage migration ensures no data remains persisted in {0} and removes "
    "{0} from status.storedVersions"
)
_ONE_STORAGE = "must have exactly one version marked as storage version"


def create(definition: CustomResourceDefinition) -> Faults:
    faults = meta.metadata(definition, namespaced=False, name_rule=names.subdomain_faults)
    faults += _name(definition) + _approval(definition) + _spec(definition.spec)
    return faults + _status(definition)


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
    return faults + _status(new)


def status_update(new: CustomResourceDefinition, old: CustomResourceDefinition) -> Faults:
    return meta.metadata_update(new, old) + _status(new)


def _status(definition: CustomResourceDefinition) -> Faults:
    """Checks the accepted names, and that the spec still has every version in which objects may be
    stored.
    """
    accepted = definition.status.accepted_names
    names_faults = _spelling(accepted, "status.acceptedNames") if accepted else []
    path, stored = "status.storedVersions", definition.status.stored_versions or []
    if not stored:
        none = definition.status.stored_versions
        return [*names_faults, invalid(path, none, "must have at least one stored version")]
    versions = definition.spec.versions
    names = {version.name for version in versions}
    return [
        *names_faults,
        *(
            invalid(path, stored, f"must have the storage version {version.name}")
            for version in versions
            if version.storage and version.name not in stored
        ),
        *(
            invalid(f"{path}[{index}]", name, _STILL_STORED.format(name))
            for index, name in enumerate(stored)
            if name not in names
        ),
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
    faults += _unlike_stored(_versions(spec.versions), spec.versions, old)
    faults += _names(spec.names, "spec.names")
    faults += conversions.check(spec.conversion, old)
    if spec.preserve_unknown_fields:
        faults.append(invalid("spec.preserveUnknownFields", True, "must be false"))
    return faults


def _unlike_stored(
    faults: Faults,
    versions: Sequence[CustomResourceDefinitionVersion],
    old: CustomResourceDefinition | None,
) -> Faults:
    """Returns the faults without those that the stored definition has as well, in any place.

    They come from a time when they were allowed. Too many selectable fields may stay as they are.
    """
    if old is None or not faults:
        return faults

    before = old.spec.versions
    stored = {_kind_of(one) for one in field_errors.collect_tentative(lambda: _versions(before))}
    fields = {version.name: version.selectable_fields for version in before}
    kept = {
        f"spec.versions[{index}].selectableFields"
        for index, version in enumerate(versions)
        if version.selectable_fields == fields.get(version.name)
    }
    return [
        fault
        for fault in faults
        if _kind_of(fault) not in stored or (fault.type == "Too many" and fault.field not in kept)
    ]


def _kind_of(fault: FieldError) -> tuple[str, str, str]:
    return fault.type, fault.field.rpartition(".")[2], fault.detail


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
    faults += _shared_fields(versions)
    if not versions:
        faults.append(required("spec.versions", "must have at least one version"))
    if sum(version.storage for version in versions) != 1:
        faults.append(invalid("spec.versions", list(versions), _ONE_STORAGE))
    return faults


def _shared_fields(versions: Sequence[CustomResourceDefinitionVersion]) -> Faults:
    """Checks that versions with the same selectable fields have the same schema.

    Upstream's internal version keeps what all versions have in common, and its validation wants
    the schema there if the fields are.
    """
    if not versions or not versions[0].selectable_fields:
        return []
    fields, schema = versions[0].selectable_fields, versions[0].schema_
    if any(one.selectable_fields != fields for one in versions):
        return []
    if all(one.schema_ == schema for one in versions):
        return []
    detail = "may only be set when validations.schema is included"
    return [invalid("spec.selectableFields", "", detail)]


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
    values = {
        "plural": spec_names.plural,
        "singular": spec_names.singular or "",
        "kind": spec_names.kind,
        "listKind": spec_names.list_kind or "",
    }
    required_fields = [required(f"{path}.{field}") for field, value in values.items() if not value]
    return required_fields + _spelling(spec_names, path)


def _spelling(given: CustomResourceDefinitionNames, path: str) -> Faults:
    faults: Faults = []
    for field, value, mixed in (
        ("plural", given.plural, False),
        ("singular", given.singular, False),
        ("kind", given.kind, True),
        ("listKind", given.list_kind, True),
    ):
        faults += _word(value, f"{path}.{field}", mixed=mixed) if value else []
    for index, word in enumerate(given.short_names or ()):
        faults += _word(word, f"{path}.shortNames[{index}]")
    for index, word in enumerate(given.categories or ()):
        faults += _word(word, f"{path}.categories[{index}]")
    if given.kind and given.kind == given.list_kind:
        detail = "kind and listKind may not be the same"
        faults.append(invalid(f"{path}.listKind", given.list_kind, detail))
    return faults


def _word(text: str, path: str, *, mixed: bool = False) -> Faults:
    if not mixed:
        return invalid_all(path, text, names.label_1035_faults(text))
    prefix = "may have mixed case, but should otherwise match: "
    complaints = names.label_1035_faults(text.lower())
    return invalid_all(path, text, [prefix + complaint for complaint in complaints])

"""CustomResourceDefinitions."""

from typing import Any

import pytest

from kcm.api.apiextensions_v1 import CustomResourceDefinition
from tests.samples import sample, with_spec
from tests.unit.apiextensions.samples import TEXT, struct
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new_spec,
)

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
SCHEMA = {"openAPIV3Schema": {"type": "object"}}
V1 = {"name": "v1", "served": True, "storage": True, "schema": SCHEMA}
V2 = {**V1, "name": "v2", "storage": False}
NAMES = {"plural": "widgets", "kind": "Widget"}
KEYED = {
    "type": "array",
    "items": struct(n=TEXT),
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["n"],
}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"versions": [V1, {**V1, "name": "v2", "storage": False}]}, []),
        ({"scope": ""}, ["spec.scope: Required value"]),
        (
            {"names": {**NAMES, "plural": "gadgets"}},
            [
                'metadata.name: Invalid value: "widgets.example.com": '
                'must be spec.names.plural+"."+spec.group'
            ],
        ),
        (
            {"versions": [{**V1, "schema": None}]},
            ["spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"],
        ),
        (
            {"names": {**NAMES, "listKind": "Widget"}},
            ['spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'],
        ),
        (
            {"conversion": {"strategy": "X"}},
            [
                'spec.conversion.strategy: Unsupported value: "X": '
                'supported values: "None", "Webhook"'
            ],
        ),
        (
            {"versions": [{**V1, "additionalPrinterColumns": [{"name": "A", "type": "odd"}]}]},
            [
                'spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "odd": '
                "must be one of boolean,date,integer,number,string",
                "spec.versions[0].additionalPrinterColumns[0].jsonPath: Required value",
            ],
        ),
        (
            {
                "versions": [
                    {
                        **V1,
                        "additionalPrinterColumns": [
                            {"name": "A", "type": "string", "format": "odd", "jsonPath": ".a"}
                        ],
                    }
                ]
            },
            [
                'spec.versions[0].additionalPrinterColumns[0].format: Invalid value: "odd": '
                "must be one of byte,date,date-time,double,float,int32,int64,password"
            ],
        ),
        (
            {"versions": [{**V1, "subresources": {"scale": {"specReplicasPath": ".status.x"}}}]},
            [
                "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: "
                '".status.x": should be a json path under .spec',
                "spec.versions[0].subresources.scale.statusReplicasPath: Required value",
            ],
        ),
        (
            {"versions": [{**V1, "schema": {"openAPIV3Schema": {"type": "string"}}}]},
            [
                'spec.versions[0].schema.openAPIV3Schema.type: Invalid value: "string": '
                "must be object at the root"
            ],
        ),
        (
            {"preserveUnknownFields": True},
            ["spec.preserveUnknownFields: Invalid value: true: must be false"],
        ),
    ],
)
def test_a_definition_is_checked_as_upstream_does(
    spec: dict[str, Any], expected: list[str]
) -> None:
    assert validate_new_spec(DEFINITIONS, **spec) == expected


@pytest.mark.parametrize(
    ("spec", "start", "end"),
    [
        ({"versions": []}, "spec.versions: Required value", "at least one version"),
        ({"versions": [V1, V1]}, "spec.versions: Invalid value", "unique version names"),
        (
            {"versions": [V1, {**V1, "name": "v2"}]},
            "spec.versions: Invalid value",
            "exactly one version marked as storage version",
        ),
        (
            {"names": {**NAMES, "kind": "Wid get"}},
            "spec.names.kind: Invalid value",
            "may have mixed case, but should otherwise match: a DNS-1035 label",
        ),
        ({"names": {**NAMES, "shortNames": ["W"]}}, "spec.names.shortNames[0]", "a DNS-1035 label"),
        ({"group": "example"}, "spec.group: Invalid value", "a domain with at least one dot"),
        ({"group": "X.y"}, "spec.group: Invalid value", "a lowercase RFC 1123 subdomain"),
    ],
)
def test_words_and_versions_are_well_formed(spec: dict[str, Any], start: str, end: str) -> None:
    messages = validate_new_spec(DEFINITIONS, **spec)
    assert any(text.startswith(start) and end in text for text in messages)


# After TestValidateDeprecationWarning in pkg/apis/apiextensions/validation/validation_test.go.
@pytest.mark.parametrize(
    ("deprecated", "warning", "complaints"),
    [
        (True, "Test", []),
        (True, "Hi 🎉", []),
        (False, "Test", ["can only be set for deprecated versions"]),
        (True, "", ["must not be an empty string"]),
        (True, "x" * 256, []),
        (True, "x" * 257, ["must be <= 256 characters long"]),
        (
            True,
            "é\nTest",
            [
                "must only contain printable UTF-8 characters; non-printable character found at "
                "index 2"
            ],
        ),
    ],
)
def test_warnings_are_one_printable_line(
    deprecated: bool, warning: str, complaints: list[str]
) -> None:
    version = {**V1, "deprecated": deprecated, "deprecationWarning": warning}
    messages = validate_new_spec(DEFINITIONS, versions=[version])
    assert len(messages) == len(complaints)
    for message, complaint in zip(messages, complaints, strict=True):
        assert message.startswith("spec.versions[0].deprecationWarning: Invalid value")
        assert message.endswith(complaint)


def test_names_follow_from_the_kind() -> None:
    spec = sample(DEFINITIONS).spec
    assert (spec.names.singular, spec.names.list_kind) == ("widget", "WidgetList")
    assert spec.conversion.strategy == "None"


def build_established(**spec: Any) -> CustomResourceDefinition:
    obj: CustomResourceDefinition = with_spec(DEFINITIONS, **spec)
    conditions = [{"type": "Established", "status": "True"}]
    return obj.with_status(type(obj.status)(conditions=conditions, stored_versions=["v1"]))


def test_group_and_plural_never_change_and_the_scope_not_once_established() -> None:
    [message] = validate_changed(build_established(scope="Cluster"), build_established())
    assert message == 'spec.scope: Invalid value: "Cluster": field is immutable'
    assert validate_changed(with_spec(DEFINITIONS, scope="Cluster"), sample(DEFINITIONS)) == []
    [message] = validate_changed(
        build_established(names={**NAMES, "plural": "gadgets"}), build_established()
    )
    assert message == 'spec.names.plural: Invalid value: "gadgets": field is immutable'


def test_a_version_with_stored_objects_stays() -> None:
    gone = build_established(versions=[{**V1, "name": "v2"}])
    for messages in (
        validate_changed(gone, build_established()),
        validate_changed_status(gone, gone),
    ):
        assert messages[0].endswith("must have the storage version v2")
        assert messages[1].startswith(
            'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was '
        )


def test_what_a_stored_definition_has_wrong_may_stay() -> None:
    keyless = {**V1, "schema": {"openAPIV3Schema": struct(a=KEYED)}}
    assert validate_changed(build_established(versions=[keyless]), build_established())
    stored = build_established(versions=[keyless])
    assert not validate_changed(build_established(versions=[keyless, {**V2}]), stored)


def test_versions_with_the_same_selectable_fields_have_the_same_schema() -> None:
    fields = {"selectableFields": [{"jsonPath": ".spec.a"}]}
    one = {**V1, **fields, "schema": {"openAPIV3Schema": struct(spec=struct(a=TEXT))}}
    other = {**V2, **fields, "schema": {"openAPIV3Schema": struct(spec=struct(a=TEXT, b=TEXT))}}
    assert not validate_changed(build_established(versions=[one]), build_established())
    [message] = validate_changed(build_established(versions=[one, other]), build_established())
    assert message.startswith('spec.selectableFields: Invalid value: "": may only be set when')


def test_groups_of_the_project_need_approval() -> None:
    text = " ".join(validate_new_spec(DEFINITIONS, group="widgets.k8s.io"))
    assert "metadata.annotations[api-approved.kubernetes.io]: Required value" in text

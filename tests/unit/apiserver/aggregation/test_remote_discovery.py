"""What is taken from the discovery documents of other servers.

The case of old documents follows TestConvertAPIResourceToDiscovery in
staging/src/k8s.io/apiserver/pkg/endpoints/installer_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.apiserver.aggregation.remote_discovery import (
    is_aggregated,
    parse_aggregated,
    parse_legacy,
)

KIND = {"group": "g", "version": "v1", "kind": "Fruit"}
EMPTY = {"group": "", "version": "", "kind": ""}


def listed(*resources: Any) -> dict[str, Any]:
    versions = [{"version": "v1", "resources": list(resources)}]
    return {"items": [{"metadata": {"name": "g"}, "versions": versions}]}


def test_resources_are_taken_as_they_are() -> None:
    fruits = {
        "resource": "fruits", "responseKind": KIND, "scope": "Namespaced",
        "singularResource": "fruit", "verbs": ["get"], "shortNames": ["fr"], "categories": ["all"],
        "subresources": [{"subresource": "status", "responseKind": KIND, "verbs": ["get"]}],
    }  # fmt: skip
    assert parse_aggregated(listed(fruits)) == {("g", "v1"): [fruits]}


def test_what_has_another_type_is_left_out() -> None:
    odd = {
        "resource": "odd",
        "responseKind": None,
        "scope": 7,
        "verbs": ["get", 8],
        "subresources": "x",
    }
    assert parse_aggregated(listed(odd, {"resource": 7}, "x", None)) == {
        ("g", "v1"): [
            {"resource": "odd", "responseKind": EMPTY, "scope": "Cluster",
             "singularResource": "", "verbs": ["get"]}
        ]
    }  # fmt: skip


@pytest.mark.parametrize("document", [None, [], "x", {}, {"items": 7}, {"resources": {}}])
def test_rubbish_is_no_document(document: Any) -> None:
    with pytest.raises(ValueError, match="this is no"):
        parse_aggregated(document)
    with pytest.raises(ValueError, match="this is no"):
        parse_legacy(document, "g", "v1")


def test_old_documents_are_converted() -> None:
    document = {
        "resources": [
            {"name": "fruits", "singularName": "fruit", "namespaced": True, "kind": "Fruit",
             "shortNames": ["fr"], "categories": ["all"], "verbs": ["get", "list"]},
            {"name": "fruits/scale", "namespaced": True, "group": "autoscaling", "version": "v1",
             "kind": "Scale", "verbs": ["get"]},
            {"name": "alone/status", "kind": "Alone", "verbs": ["get"]},
            {"name": ""},
        ]
    }  # fmt: skip
    fruits, alone = parse_legacy(document, "g", "v1")
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert fruits == {
        "resource": "fruits", "responseKind": KIND, "scope": "Namespaced",
        "singularResource": "fruit", "verbs": ["get", "list"], "shortNames": ["fr"],
        "categories": ["all"],
        "subresources": [{"subresource": "scale", "responseKind": scale, "verbs": ["get"]}],
    }  # fmt: skip
    assert (alone["resource"], alone["responseKind"]) == ("alone", EMPTY)


@pytest.mark.parametrize(
    ("content_type", "wanted"),
    [
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", True),
        ("application/json; as=APIGroupDiscoveryList; g=apidiscovery.k8s.io; v=v2beta1", True),
        ("application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList", False),
        ("application/json", False),
    ],
)
def test_the_new_form_is_known_by_its_type(content_type: str, wanted: bool) -> None:
    assert is_aggregated(content_type) is wanted

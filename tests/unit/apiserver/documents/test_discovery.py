from __future__ import annotations

import json
from typing import Any

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.apiserver.documents import discovery
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http_errors import PathNotFound
from kcm.apiserver.request_info import NOT_DELETED_TOGETHER

DISCOVERY = discovery.Discovery(BUILT_IN)

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = V2.replace("v=v2", "v=v2beta1")


def read(answer: Response) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(answer.body)
    return body


def test_groups_and_versions_in_the_plain_form() -> None:
    assert read(DISCOVERY.api("application/json", "h"))["versions"] == ["v1"]
    names = [group["name"] for group in read(DISCOVERY.apis(""))["groups"]]
    assert "apps" in names
    assert read(DISCOVERY.group("apps"))["preferredVersion"]["groupVersion"] == "apps/v1"
    with pytest.raises(PathNotFound):
        DISCOVERY.group("none")
    with pytest.raises(PathNotFound):
        DISCOVERY.group_version("apps", "v2")


def test_a_group_version_lists_kinds_and_subresources() -> None:
    entries = {e["name"]: e for e in read(DISCOVERY.group_version("apps", "v1"))["resources"]}
    assert entries["replicasets"]["shortNames"] == ["rs"]
    assert entries["replicasets/scale"]["group"] == "autoscaling"
    assert entries["replicasets/status"]["verbs"] == ["get", "patch", "update"]


@pytest.mark.parametrize(
    ("group", "version", "name", "storage_version_hash"),
    [  # as a cluster of upstream's says
        ("", "v1", "pods", "xPOwRZ+Yhw8="),
        ("apps", "v1", "deployments", "8aSe+NMegvE="),
        ("", "v1", "pods/status", None),
        ("", "v1", "bindings", None),
        ("authorization.k8s.io", "v1", "subjectaccessreviews", None),
    ],
)
def test_discovery_tells_the_storage_version_of_stored_kinds(
    group: str, version: str, name: str, storage_version_hash: str | None
) -> None:
    entries = {e["name"]: e for e in read(DISCOVERY.group_version(group, version))["resources"]}
    assert entries[name].get("storageVersionHash") == storage_version_hash


@pytest.mark.parametrize(
    ("accept", "form"),
    [(V2, "v2"), (V2BETA1, "v2beta1"), (f"{V2},{V2BETA1},application/json", "v2")],
)
def test_aggregated_discovery_answers_in_the_version_that_was_asked_for(
    accept: str, form: str
) -> None:
    answer = DISCOVERY.apis(accept)
    assert f"v={form};" in answer.content_type
    document = read(answer)
    assert document["apiVersion"] == f"apidiscovery.k8s.io/{form}"
    apps = next(item for item in document["items"] if item["metadata"]["name"] == "apps")
    served = {
        document["responseKind"]["kind"]: document for document in apps["versions"][0]["resources"]
    }
    resource = served["ReplicaSet"]
    assert (resource["resource"], resource["scope"]) == ("replicasets", "Namespaced")
    assert [sub["subresource"] for sub in resource["subresources"]] == ["scale", "status"]
    (core,) = read(DISCOVERY.api(accept, "h"))["items"]
    scopes = {one["resource"]: one["scope"] for one in core["versions"][0]["resources"]}
    assert (scopes["pods"], scopes["nodes"]) == ("Namespaced", "Cluster")


def test_the_version_is_that_of_kubernetes_with_our_own_behind_it() -> None:
    version_info = discovery.version()
    assert (version_info["major"], version_info["minor"]) == ("1", "36")
    assert version_info["gitVersion"].startswith("v1.36.2+kcm.")


def test_what_cannot_be_deleted_together_has_no_such_verb() -> None:
    entries = {e["name"]: e for e in read(DISCOVERY.group_version("", "v1"))["resources"]}
    assert "deletecollection" in entries["pods"]["verbs"]
    for name in NOT_DELETED_TOGETHER & entries.keys():
        assert "deletecollection" not in entries[name]["verbs"]
    assert NOT_DELETED_TOGETHER & entries.keys()

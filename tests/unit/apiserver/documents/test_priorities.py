"""The order of groups and versions."""

from __future__ import annotations

import json

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.apiserver.documents import discovery
from kcm.apiserver.documents.priorities import (
    Priority,
    RankedVersion,
    sort_by_group_and_version,
)
from kcm.apiserver.documents.remote import RemoteVersion, RemoteVersions

DISCOVERY = discovery.Discovery(BUILT_IN)


@pytest.mark.parametrize(
    ("versions", "wanted"),
    [
        ("v1 v2", "v2 v1"),
        ("v2 v10", "v10 v2"),
        ("v2 v2beta1 v10beta2 v10beta1 v10alpha1 v1", "v2 v1 v10beta2 v10beta1 v2beta1 v10alpha1"),
        ("v1 v2 test foo10 final foo2 foo1", "v2 v1 final foo1 foo10 foo2 test"),
        ("v12alpha1 v10 v11beta2 v10beta3 v3beta1 v2 v11alpha2 foo1 v1 foo10",
         "v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v11alpha2 foo1 foo10"),
    ],
)  # fmt: skip
def test_versions_of_equal_priority_are_ordered_by_their_names(versions: str, wanted: str) -> None:
    # TestSortedAPIServicesByVersion in
    # staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/helpers_test.go
    ranked = [RankedVersion("g", name, Priority(0, 100)) for name in versions.split()]
    [members] = sort_by_group_and_version(ranked)
    assert " ".join(member.name for member in members) == wanted


@pytest.mark.parametrize(
    ("apis", "wanted"),
    [
        ({}, []),
        ({"foo/v1": (11, 0), "bar/v1": (10, 0)}, [("foo", ["v1"]), ("bar", ["v1"])]),
        ({"foo/v1": (20, 10), "bar/v2": (11, 0), "foo/v2": (1, 15), "bar/v1": (11, 0)},
         [("foo", ["v2", "v1"]), ("bar", ["v2", "v1"])]),
    ],
)  # fmt: skip
def test_groups_of_other_servers_are_ordered_by_priority(
    apis: dict[str, tuple[int, int]], wanted: list[tuple[str, list[str]]]
) -> None:
    # TestAPIs in staging/src/k8s.io/kube-aggregator/pkg/apiserver/handler_apis_test.go
    remote = RemoteVersions(
        RemoteVersion(name.split("/")[0], name.split("/")[1], Priority(*numbers))
        for name, numbers in apis.items()
    )
    groups = json.loads(DISCOVERY.apis("", remote).body)["groups"]
    assert groups[0]["name"] == "apiregistration.k8s.io"
    found = [
        (group["name"], [version["version"] for version in group["versions"]])
        for group in groups
        if group["name"] in {"foo", "bar"}
    ]
    assert found == wanted
    for name, versions in wanted:
        preferred = json.loads(DISCOVERY.group(name, remote).body)["preferredVersion"]
        assert preferred == {"groupVersion": f"{name}/{versions[0]}", "version": versions[0]}

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.store.remote.discovery import ServedKind, discover
from tests.unit.store.remote.answers import Answers

VERBS = ["delete", "list", "watch"]
PODS = ServedKind("", "v1", "pods", "Pod", True, frozenset(VERBS))
NODES = ServedKind("", "v1", "nodes", "Node", False, frozenset(["list"]))
THINGS = ServedKind("example.com", "v2", "things", "Thing", True, frozenset(VERBS))


def aggregated(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "versions": list(versions)}


def in_version(version: str, *kinds: ServedKind, freshness: str = "Current") -> dict[str, Any]:
    resources = [
        {
            "resource": kind.plural,
            "responseKind": {"kind": kind.kind},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "verbs": sorted(kind.verbs),
            "subresources": [{"subresource": "status", "verbs": ["get"]}],
        }
        for kind in kinds
    ]
    return {"version": version, "resources": resources, "freshness": freshness}


def listed(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "items": list(groups)}


def test_aggregated_discovery_takes_two_requests_to_a_ready_server() -> None:
    client = Answers(
        {
            "GET /api": listed(aggregated("", in_version("v1", PODS, NODES))),
            "GET /apis": listed(aggregated("example.com", in_version("v2", THINGS))),
        }
    )
    served = discover(client)
    assert served.kinds == [PODS, NODES, THINGS]
    assert served.failed == {}
    assert [path for path, _ in client.asked] == ["GET /readyz", "GET /api", "GET /apis"]


def test_a_stale_version_is_named_beside_the_others() -> None:
    stale = in_version("v2", freshness="Stale")
    client = Answers(
        {
            "GET /api": listed(aggregated("", in_version("v1", PODS))),
            "GET /apis": listed(aggregated("example.com", stale)),
        }
    )
    served = discover(client)
    assert served.kinds == [PODS]
    assert list(served.failed) == ["example.com/v2"]


def test_a_server_without_aggregated_discovery_is_asked_group_by_group() -> None:
    pods = {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": VERBS}
    status = {"name": "pods/status", "kind": "Pod", "namespaced": True, "verbs": ["get"]}
    things = {"name": "things", "kind": "Thing", "namespaced": True, "verbs": VERBS}
    group = {
        "name": "example.com",
        "versions": [{"version": "v1"}, {"version": "v2"}],
        "preferredVersion": {"version": "v2"},
    }
    client = Answers(
        {
            "GET /api": {"kind": "APIVersions", "versions": ["v1"]},
            "GET /api/v1": {"resources": [pods, status]},
            "GET /apis": {"kind": "APIGroupList", "groups": [group]},
            "GET /apis/example.com/v2": {"resources": [things]},
            "GET /apis/example.com/v1": errors.StoreUnavailable("no endpoints"),
        }
    )
    served = discover(client)
    assert served.kinds == [PODS, THINGS]
    assert served.failed == {"example.com/v1": "no endpoints"}


@pytest.mark.parametrize(
    "answer", [errors.StoreUnavailable("away"), errors.Forbidden('cannot get path "/api"')]
)
def test_a_server_that_does_not_say_what_it_serves_is_asked_again(answer: Exception) -> None:
    """It refuses while it has not read its rules yet."""
    with pytest.raises(errors.StoreUnavailable):
        discover(Answers({"GET /api": answer}))


def test_a_server_that_is_not_ready_is_not_believed() -> None:
    """It names only some of its kinds while it starts."""
    unready = errors.StoreUnavailable("[-]poststarthook/crd-informer-synced failed")
    client = Answers({"GET /api": listed(), "GET /apis": listed(), "GET /readyz": unready})
    with pytest.raises(errors.StoreUnavailable, match=r"not ready: .*crd-informer"):
        discover(client)


@pytest.mark.parametrize("answer", [errors.NotFound("no path"), errors.Forbidden("no right")])
def test_a_server_that_does_not_say_whether_it_is_ready_is_believed(answer: Exception) -> None:
    core = listed(aggregated("", in_version("v1", PODS)))
    client = Answers({"GET /api": core, "GET /apis": listed(), "GET /readyz": answer})
    assert discover(client).kinds == [PODS]

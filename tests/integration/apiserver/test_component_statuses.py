"""ComponentStatuses tell what the processes of kcm report."""

from __future__ import annotations

from kcm.coordination.presence import Member, Presence
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live

PATH = "/api/v1/componentstatuses"
WARNING = '299 - "v1 ComponentStatus is deprecated in v1.19+"'


def states(api: Live) -> dict[str, tuple[str, str]]:
    found = {}
    for item in api.get(PATH)["items"]:
        [condition] = item["conditions"]
        assert condition["type"] == "Healthy"
        found[item["metadata"]["name"]] = (condition["status"], condition["message"])
    return found


def test_each_part_is_judged_by_its_own_processes(api: Live) -> None:
    no_manager = "no manager sent a heartbeat within 30 s"
    assert states(api) == {
        "scheduler": ("False", no_manager),
        "controller-manager": ("False", no_manager),
        "etcd-0": ("True", "ok"),
    }
    others = [Member("m", "manager"), Member("w", "worker", queues=("gc",))]
    pods = Member("p", "worker", queues=("core",))
    for member in others:
        Presence(api.store.io, member).once()
    assert states(api)["controller-manager"] == ("True", "ok")
    assert states(api)["scheduler"] == (
        "False",
        "no worker of the queue core sent a heartbeat within 30 s",
    )
    Presence(api.store.io, pods).once()
    assert {state for state, _ in states(api).values()} == {"True"}
    for member in (*others, pods):
        Presence(api.store.io, member).end()


def test_they_are_deprecated_and_read_only(api: Live) -> None:
    one = api.request("GET", f"{PATH}/etcd-0")
    assert (one.status_code, one.headers["warning"]) == (200, WARNING)
    assert api.request("GET", PATH).headers["warning"] == WARNING
    assert api.request("POST", PATH, one.json()).status_code == 405
    assert api.request("DELETE", f"{PATH}/etcd-0").status_code == 405
    assert api.request("GET", f"{PATH}?watch=true").status_code == 405
    assert api.request("GET", f"{PATH}/etcd-0/status").status_code == 404
    missing = api.request("GET", f"{PATH}/etcd-1")
    assert (missing.status_code, missing.json()["message"]) == (
        404,
        'componentstatuses "etcd-1" not found',
    )
    chosen = api.get(PATH, fieldSelector="metadata.name=etcd-0")["items"]
    assert [item["metadata"]["name"] for item in chosen] == ["etcd-0"]


def test_kubectl_shows_them(kubectl: Kubectl) -> None:
    header, *lines = kubectl("get", "cs").splitlines()
    assert header.split() == ["NAME", "STATUS", "MESSAGE", "ERROR"]
    assert ["etcd-0", "Healthy", "ok"] in [line.split() for line in lines]
    assert "Unhealthy" in kubectl("get", "componentstatuses", "scheduler")

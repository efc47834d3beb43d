"""The subresources ephemeralcontainers and resize of pods, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.serving import Live

PODS = "/api/v1/namespaces/default/pods"
DEBUGGER = {"name": "debugger", "image": "busybox"}


def make_pod(api: Live, name: str, cpu: str = "100m", memory: str = "100Mi") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    containers = [{"name": "c", "image": "i", "resources": resources}]
    body = {"metadata": {"name": name}, "spec": {"containers": containers}}
    created: dict[str, Any] = api.create(PODS, body)
    return created


def requests_of(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 200, answer.text
    requests: dict[str, str] = answer.json()["spec"]["containers"][0]["resources"]["requests"]
    return requests


def names_of(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [container["name"] for container in answer.json()["spec"]["ephemeralContainers"]]


def test_a_debugger_is_added_by_every_verb_and_patch(api: Live) -> None:
    pod = make_pod(api, "pp-debug")
    path = f"{PODS}/pp-debug/ephemeralcontainers"
    pod["spec"]["ephemeralContainers"] = [DEBUGGER]
    pod["spec"]["nodeName"] = "dropped"
    assert names_of(api.request("PUT", path, pod)) == ["debugger"]
    spec = {"spec": {"ephemeralContainers": [{"name": "d2", "image": "x"}]}}
    assert names_of(api.patch(path, spec, "strategic")) == ["d2", "debugger"]  # new ones first
    whole = api.get(path)["spec"]["ephemeralContainers"]
    merged = {"spec": {"ephemeralContainers": [*whole, {"name": "d3", "image": "x"}]}}
    assert names_of(api.patch(path, merged))[-1] == "d3"
    added = [{"op": "add", "path": "/spec/ephemeralContainers/-",
              "value": {"name": "d4", "image": "x"}}]  # fmt: skip
    assert names_of(api.patch(path, added, "json"))[-1] == "d4"
    stored = api.get(f"{PODS}/pp-debug")
    assert "nodeName" not in stored["spec"]
    assert stored["metadata"]["managedFields"][-1]["subresource"] == "ephemeralcontainers"


def test_a_debugger_is_neither_changed_nor_put_past_the_subresource(api: Live) -> None:
    make_pod(api, "pp-fixed")
    path = f"{PODS}/pp-fixed/ephemeralcontainers"
    assert api.patch(path, {"spec": {"ephemeralContainers": [DEBUGGER]}}).status_code == 200
    changed = {"spec": {"ephemeralContainers": [DEBUGGER | {"image": "other"}]}}
    refused = api.patch(path, changed)
    assert refused.status_code == 422
    message = 'existing ephemeral containers "debugger" may not be changed'
    assert message in refused.json()["message"]
    around = api.patch(f"{PODS}/pp-fixed", changed, "strategic")
    assert around.status_code == 422
    assert "pod updates may not change fields other than" in around.text
    assert api.client.delete(path).status_code == 405


@pytest.mark.parametrize("part", ["ephemeralcontainers", "resize"])
def test_an_older_version_is_a_conflict(api: Live, part: str) -> None:
    pod = make_pod(api, f"pp-old-{part}")
    name = pod["metadata"]["name"]
    api.patch(f"{PODS}/{name}", {"metadata": {"labels": {"a": "b"}}})
    assert api.request("PUT", f"{PODS}/{name}/{part}", pod).status_code == 409
    assert api.client.get(f"{PODS}/none/{part}").status_code == 404


def test_a_resize_changes_the_requests_and_nothing_else(api: Live) -> None:
    pod = make_pod(api, "pp-size")
    path = f"{PODS}/pp-size/resize"
    container = pod["spec"]["containers"][0]
    container["image"] = "other"
    container["resources"]["requests"]["cpu"] = "200m"
    assert requests_of(api.request("PUT", path, pod)) == {"cpu": "200m", "memory": "100Mi"}
    wanted = {"name": "c", "resources": {"requests": {"memory": "200Mi"}}}
    strategic = api.patch(path, {"spec": {"containers": [wanted]}}, "strategic")
    assert requests_of(strategic) == {"cpu": "200m", "memory": "200Mi"}
    assert strategic.json()["spec"]["containers"][0]["image"] == "i"
    limited = {"name": "c", "resources": {"limits": {"memory": "1Gi"}}}
    bounded = api.patch(path, {"spec": {"containers": [limited]}}, "strategic")
    resources = bounded.json()["spec"]["containers"][0]["resources"]
    assert resources == {
        "limits": {"memory": "1Gi"}, "requests": {"cpu": "200m", "memory": "200Mi"}
    }  # fmt: skip
    around = api.patch(f"{PODS}/pp-size", {"spec": {"containers": [wanted]}}, "strategic")
    assert around.status_code == 200  # nothing changes
    wanted["resources"] = {"requests": {"memory": "300Mi"}}
    around = api.patch(f"{PODS}/pp-size", {"spec": {"containers": [wanted]}}, "strategic")
    assert around.status_code == 422


def test_quotas_and_limit_ranges_hold_for_a_resize(api: Live) -> None:
    api.create("/api/v1/namespaces", {"metadata": {"name": "pp-quota"}})
    inside = "/api/v1/namespaces/pp-quota"
    quota = api.create(
        f"{inside}/resourcequotas",
        {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}}},
    )
    quota["status"] = {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "0"}}
    api.request("PUT", f"{inside}/resourcequotas/q/status", quota)
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "400m"}}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
    api.create(f"{inside}/pods", pod)

    def resize(cpu: str) -> httpx.Response:
        wanted = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        change = {"spec": {"containers": [wanted]}}
        return api.patch(f"{inside}/pods/p/resize", change, "strategic")

    assert resize("900m").status_code == 200
    used = api.get(f"{inside}/resourcequotas/q")["status"]["used"]
    assert used == {"requests.cpu": "900m"}
    refused = resize("1100m")
    assert refused.status_code == 403
    assert "exceeded quota: q, requested: requests.cpu=200m" in refused.text
    limits = [{"type": "Container", "max": {"cpu": "800m"}}]
    api.create(f"{inside}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    until(lambda: resize("950m").status_code == 403, "the range is read")
    assert "maximum cpu usage per Container is 800m" in resize("950m").text


def test_each_part_has_a_right_of_its_own(api: Live) -> None:
    make_pod(api, "pp-rights")
    with api.as_user("janes-token") as jane:
        for part in ("ephemeralcontainers", "resize"):
            refused = jane.get(f"{PODS}/pp-rights/{part}")
            assert refused.status_code == 403
            assert f'cannot get resource "pods/{part}"' in refused.json()["message"]

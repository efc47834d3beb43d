"""Labels and annotations that are sent with a status, as clients of the conformance suite do."""

from __future__ import annotations

import pytest

from tests.integration.apiserver.serving import Live

META = {"metadata": {"annotations": {"patched": "yes"}, "labels": {"team": "a"}}}
CASES = {
    "/api/v1/namespaces": {"metadata": {"name": "sm"}},
    "/api/v1/namespaces/default/resourcequotas": {"metadata": {"name": "sm"}},
    "/apis/apps/v1/namespaces/default/deployments": {
        "metadata": {"name": "sm"},
        "spec": {
            "selector": {"matchLabels": {"app": "sm"}},
            "template": {
                "metadata": {"labels": {"app": "sm"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    },
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("form", ["merge", "strategic"])
def test_a_patch_of_the_status_changes_metadata_too(api: Live, kind: str, form: str) -> None:
    path = f"{kind}/sm"
    if api.request("GET", path).status_code == 404:
        api.create(kind, CASES[kind])
    answer = api.patch(f"{path}/status", META, form)
    assert answer.status_code == 200, answer.text
    stored = api.get(path)["metadata"]
    assert stored["annotations"]["patched"] == "yes"
    assert stored.get("labels", {}).get("team") == (None if "deployments" in kind else "a")
    assert any(entry.get("subresource") == "status" for entry in stored["managedFields"])


def test_an_update_of_the_status_does_so_and_leaves_the_spec(api: Live) -> None:
    path = "/api/v1/namespaces/default/resourcequotas"
    quota = api.create(path, {"metadata": {"name": "sm-put"}, "spec": {"hard": {"pods": "4"}}})
    quota["metadata"]["annotations"] = {"updated": "yes"}
    quota["spec"] = {"hard": {"pods": "5"}}
    quota["status"] = {"hard": {"pods": "4"}, "used": {"pods": "0"}}
    answer = api.request("PUT", f"{path}/sm-put/status", quota)
    assert answer.status_code == 200, answer.text
    stored = api.get(f"{path}/sm-put")
    assert stored["metadata"]["annotations"] == {"updated": "yes"}
    assert stored["spec"]["hard"] == {"pods": "4"}
    assert stored["status"]["hard"] == {"pods": "4"}

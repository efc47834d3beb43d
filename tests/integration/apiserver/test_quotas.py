"""Quotas are not exceeded by many concurrent clients, over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.integration.apiserver.manifests import pod
from tests.integration.apiserver.serving import Live


def test_fifty_clients_at_a_time_create_exactly_what_there_is_room_for(api: Live) -> None:
    api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    quotas = "/api/v1/namespaces/team/resourcequotas"
    api.create(quotas, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "20"}}})
    status = {"hard": {"pods": "20"}, "used": {"pods": "0"}}
    assert api.patch(f"{quotas}/few/status", {"status": status}).status_code == 200

    def attempt(number: int) -> int:
        return api.request("POST", "/api/v1/namespaces/team/pods", pod(f"p{number}")).status_code

    with ThreadPoolExecutor(50) as clients:
        answers = list(clients.map(attempt, range(50)))
    assert sorted(answers) == [201] * 20 + [403] * 30
    assert len(api.get("/api/v1/namespaces/team/pods")["items"]) == 20
    assert api.get(f"{quotas}/few")["status"]["used"] == {"pods": "20"}

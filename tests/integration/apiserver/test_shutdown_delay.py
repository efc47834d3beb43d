"""A server that is asked to stop serves on for a while, and says that it is not ready."""

from __future__ import annotations

from pathlib import Path

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.integration.apiserver.serving import live

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def test_requests_are_served_while_the_server_is_not_ready(
    redis_server: EmbeddedServer, tmp_path: Path
) -> None:
    with live(redis_server.url, tmp_path, delay=600) as api:
        api.server.ask_to_stop()
        until(lambda: api.client.get("/readyz").status_code == 500, "it is not ready")
        assert "[-]shutdown failed: process is shutting down" in api.client.get("/readyz").text
        for path in ("/livez", "/healthz"):
            assert api.client.get(path).status_code == 200
        with api.as_user(api.client.headers["authorization"].removeprefix("Bearer ")) as another:
            made = another.post(CONFIGMAPS, json={"metadata": {"name": "late"}})
            assert made.status_code == 201, made.text
        api.server.force_exit = True  # as a second Ctrl-C does

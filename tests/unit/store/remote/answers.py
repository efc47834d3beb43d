"""A client whose server's answers a test gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kcm import errors
from kcm.store.remote.kubeconfig import ClusterConnection
from kcm.store.remote.rest import JSON, RestClient


class Answers(RestClient):
    """Answers requests with what is given for `METHOD path`, with 404 for anything else.

    An exception is raised. `asked` has the requests, with their bodies.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        super().__init__(ClusterConnection("http://server", None))
        self.answers = dict(answers)
        self.asked: list[tuple[str, Any]] = []

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        self.asked.append((f"{method} {path}", body))
        answer = self.answers.get(f"{method} {path}", errors.NotFound("404 page not found"))
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()

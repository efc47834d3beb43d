"""Tests the order of the filters, and what they make of a request that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any, cast

import pytest
from starlette.types import Message

from kcm import errors
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.filters.chain import FilterChain
from kcm.apiserver.filters.panic_recovery import PanicRecovery
from kcm.apiserver.http.responses import Response
from kcm.apiserver.request import Disconnected, Request

# DefaultBuildHandlerChain of staging/src/k8s.io/apiserver/pkg/server/config.go, Kubernetes 1.33, as
# a request passes it; limits are the one filter that is elsewhere here.
UPSTREAM = [
    "audit",
    "panic_recovery",
    "request_info",
    "authentication",
    "impersonation",
    "limits",
    "authorization",
]
NAMES = [one.name for one in fields(FilterChain)]


def exchange() -> Exchange:
    async def receive() -> Message:
        raise AssertionError("nothing reads the body")

    async def send(message: Message) -> None:
        raise AssertionError("nothing is answered here")

    return Exchange(Request("POST", "/api/v1/pods", b"", {}), {}, receive, send)


class Step:
    """A filter that notes when it is passed."""

    def __init__(self, name: str, passed: list[str]) -> None:
        self._name = name
        self._passed = passed

    async def serve(self, given: Exchange, proceed: Handler) -> Response | None:
        self._passed.append(self._name)
        response = await proceed(given)
        self._passed.append(f"{self._name} returns")
        return response


def serve(filters: dict[str, Any], handle: Callable[[Exchange], Any]) -> Response | None:
    """Passes a request through filters; those without a name here are left out, as faults are."""
    chain = FilterChain(*cast("Any", [filters.get(name) for name in NAMES]))

    async def handler(given: Exchange) -> Response | None:
        answer: Response | None = handle(given)
        return answer

    async def run() -> Response | None:
        return await chain.compose(handler)(exchange())

    return asyncio.run(run())


def test_the_order_is_upstreams_but_for_the_limits() -> None:
    shared = [name for name in NAMES if name in UPSTREAM and name != "limits"]
    assert shared == [name for name in UPSTREAM if name != "limits"]
    assert NAMES.index("limits") > NAMES.index("authorization")


def test_a_request_passes_from_top_to_bottom_and_its_answer_back() -> None:
    passed: list[str] = []
    steps = {name: Step(name, passed) for name in NAMES if name != "faults"}
    answered = Response(b"{}")
    assert serve(steps, lambda _: answered) is answered
    wanted = [name for name in NAMES if name != "faults"]
    assert passed == [*wanted, *(f"{name} returns" for name in reversed(wanted))]


@pytest.mark.parametrize(
    ("error", "code"), [(errors.Forbidden("no"), 403), (RuntimeError("a secret"), 500)]
)
def test_an_error_is_a_status_with_the_warnings_before_it(error: Exception, code: int) -> None:
    def fail(given: Exchange) -> None:
        given.remarks.warnings += ["old", "old"]
        raise error

    response = serve({"panic_recovery": PanicRecovery()}, fail)
    assert response is not None
    assert (response.code, json.loads(response.body)["code"]) == (code, code)
    assert b"secret" not in response.body
    assert response.warnings == ["old"]


def test_who_has_left_is_not_answered() -> None:
    def leave(given: Exchange) -> None:
        raise Disconnected

    assert serve({"panic_recovery": PanicRecovery()}, leave) is None

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kcm.http.listening import is_loopback_host
from kcm.manager.access import PageAccess


async def status(access: PageAccess, path: str, method: str = "GET", **headers: str) -> int:
    def page(request: Request) -> Response:
        return PlainTextResponse("shown")

    access.app = Starlette(routes=[Route("/{rest:path}", page)])
    transport = httpx.ASGITransport(app=access)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        return (await client.request(method, path, headers=headers)).status_code


def ask(access: PageAccess, path: str, method: str = "GET", **headers: str) -> int:
    import asyncio

    return asyncio.run(status(access, path, method, **headers))


@pytest.mark.parametrize(
    ("header", "local"),
    [
        ("localhost", True),
        ("LocalHost:10257", True),
        ("127.0.0.1:10257", True),
        ("127.8.8.8", True),
        ("[::1]:10257", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:80", False),
        ("10.0.0.1", False),
        ("", False),
        ("127.0.0.1:8201:x", False),
        ("127.0.0.1:x", False),
        ("127.0.0.1:8201\n", False),
        ("[::1].evil.com", False),
        ("[::1]evil", False),
        ("[::1", False),
        ("[localhost]", False),
        ("::1", False),
        ("localhost:", True),
    ],
)
def test_a_host_header_names_this_machine_or_not(header: str, local: bool) -> None:
    assert is_loopback_host(header) is local


def test_on_loopback_a_web_page_cannot_read() -> None:
    assert ask(PageAccess(), "/configz") == 200
    assert ask(PageAccess(), "/configz", host="evil.example") == 403


def test_elsewhere_any_host_name_will_do() -> None:
    assert ask(PageAccess(loopback=False), "/configz", host="kcm.example") == 200


@pytest.mark.parametrize(
    ("path", "authorization", "expected"),
    [
        ("/metrics", "", 401),
        ("/metrics", "Bearer wrong", 401),
        ("/metrics", "Basic secret", 401),
        ("/metrics", "Bearer secret", 200),
        ("/metrics", "bearer secret", 200),
        ("/healthz", "", 200),
        ("/readyz/store", "", 200),
        ("/livez", "", 200),
        ("/healthzz", "", 401),
        ("/debug/controllers", "", 401),
    ],
)
def test_a_token_guards_all_but_health(path: str, authorization: str, expected: int) -> None:
    access = PageAccess("secret", loopback=False)
    assert ask(access, path, authorization=authorization) == expected


def test_pages_are_for_reading_only() -> None:
    assert ask(PageAccess(), "/healthz", "POST") == 405


def test_the_token_does_not_show() -> None:
    assert "secret" not in repr(PageAccess("secret"))

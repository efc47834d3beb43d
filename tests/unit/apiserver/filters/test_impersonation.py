"""Impersonation headers, as a table: headers in, user out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kcm import errors
from kcm.apiserver.auth.attributes import ANYBODY, Attributes, User
from kcm.apiserver.auth.authorizer import AlwaysAllow, AuthorizerDecision
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.filters.impersonation import Impersonation, impersonate
from kcm.apiserver.request import Request

REAL = User("real")


class Asked(AlwaysAllow):
    """Allows every request but some, and records the attributes of all."""

    def __init__(self, *refused: str) -> None:
        self._refused = refused
        self.asked: list[str] = []

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        assert (user, asked.verb) == (REAL, "impersonate")
        place = f"{asked.namespace}/" if asked.namespace else ""
        text = f"{asked.full_resource} {place}{asked.name}"
        self.asked.append(text)
        return AuthorizerDecision(text not in self._refused)


def act(authorizer: Asked, *headers: str) -> User | None:
    """Impersonates with headers `name: value`, which are given without their prefix."""
    split = [header.split(": ") for header in headers]
    fields = [(f"impersonate-{name}".encode(), value.encode()) for name, value in split]
    return impersonate(REAL, [(b"host", b"x"), *fields], authorizer)


@pytest.mark.parametrize(
    ("headers", "asked", "expected"),
    [
        (["user: jane"], ["users jane"], User("jane", groups=("system:authenticated",))),
        (["user: jane", "group: dev", "group: ops", "uid: 7"],
         ["users jane", "groups dev", "groups ops", "uids 7"],
         User("jane", "7", ("dev", "ops", "system:authenticated"))),
        (["user: system:anonymous"], ["users system:anonymous"],
         User("system:anonymous", groups=("system:unauthenticated",))),
        (["user: x", "group: system:unauthenticated"],
         ["users x", "groups system:unauthenticated"],
         User("x", groups=("system:unauthenticated",))),
        (["user: system:serviceaccount:a:b"], ["serviceaccounts a/b"],
         User("system:serviceaccount:a:b",
              groups=("system:serviceaccounts", "system:serviceaccounts:a",
                      "system:authenticated"))),
        (["user: system:serviceaccount:a:b", "group: g"], ["serviceaccounts a/b", "groups g"],
         User("system:serviceaccount:a:b", groups=("g", "system:authenticated"))),
        (["user: system:serviceaccount:ab"], ["users system:serviceaccount:ab"],
         User("system:serviceaccount:ab", groups=("system:authenticated",))),
        (["user: x", "extra-scopes: a", "extra-scopes: b", "extra-acme.io%2fy: c"],
         ["users x", "userextras/scopes a", "userextras/scopes b", "userextras/acme.io/y c"],
         User("x", "", ("system:authenticated",),
              (("scopes", ("a", "b")), ("acme.io/y", ("c",))))),
    ],
)  # fmt: skip
def test_each_piece_is_asked_for(headers: list[str], asked: list[str], expected: User) -> None:
    authorizer = Asked()
    assert act(authorizer, *headers) == expected
    assert authorizer.asked == asked


@pytest.mark.parametrize("piece", ["users x", "groups g", "uids 7", "userextras/k v"])
def test_each_piece_may_be_refused(piece: str) -> None:
    with pytest.raises(errors.Forbidden):
        act(Asked(piece), "user: x", "group: g", "uid: 7", "extra-k: v")


@pytest.mark.parametrize(
    "headers",
    [["group: g"], ["uid: 7"], ["extra-k: v"], ["user: "], ["user: a", "user: b"],
     ["user: a", "uid: 1", "uid: 2"]],
)  # fmt: skip
def test_what_names_nobody_is_a_bad_request(headers: list[str]) -> None:
    with pytest.raises(errors.BadRequest):
        act(Asked(), *headers)


def test_without_such_headers_nobody_is_impersonated() -> None:
    assert act(Asked()) is None


@pytest.mark.parametrize(
    ("sender", "fields", "user"),
    [
        (REAL, [], "real"),
        (REAL, [(b"impersonate-user", b"jane")], "jane"),
        (None, [(b"impersonate-user", b"jane")], ANYBODY.name),  # nobody was authenticated
    ],
)
def test_a_request_acts_for_its_sender_or_for_whom_that_one_names(
    sender: User | None, fields: list[tuple[bytes, bytes]], user: str
) -> None:
    async def unused(*_: object) -> Any:
        raise AssertionError("nothing is read or sent")

    async def proceed(exchange: Exchange) -> None:
        assert (exchange.sender, exchange.user.name) == (sender, user)

    request = Request("GET", "/api/v1/pods", b"", {}, fields=fields)
    exchange = Exchange(request, {}, unused, unused, sender=sender)
    asyncio.run(Impersonation(Asked()).serve(exchange, proceed))
    assert exchange.user.name == user

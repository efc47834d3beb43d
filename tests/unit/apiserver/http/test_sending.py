from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kcm.apiserver.http.responses import Response
from kcm.apiserver.http.sending import send_response


def warnings_of(*texts: str) -> list[str]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(send_response(Response(b"{}", warnings=list(texts)), "GET", send))
    headers = [value.decode() for name, value in sent[0]["headers"] if name == b"warning"]
    return [header.removeprefix('299 - "').removesuffix('"') for header in headers]


# after TestWarning in staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning_test.go
@pytest.mark.parametrize(
    ("texts", "sent"),
    [
        ([""], []),
        (["a", "b", "a"], ["a", "b"]),
        (["x" * 4096], ["x" * 4096]),
        (["x" * 5000], ["x" * 256]),
        (["x" * 4000, "y" * 1000], ["x" * 256, "y" * 256]),
        (["x" * 300, "x" * 301, "y" * 4000], ["x" * 256, "y" * 256]),
    ],
)
def test_warnings_fit_into_a_head(texts: list[str], sent: list[str]) -> None:
    assert warnings_of(*texts) == sent


def test_many_warnings_end_at_the_limit() -> None:
    assert len(warnings_of(*(f"{number:0256}" for number in range(100)))) == 16

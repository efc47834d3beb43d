"""The cases follow TestToStatusErr in
staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror_test.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.apiserver.admission.webhooks.errors import denied
from kcm.apiserver.objects.status import failure

DENIED = 'admission webhook "hook.example.com" denied the request'


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (None, f"{DENIED} without explanation", 400),
        ({}, f"{DENIED} without explanation", 400),
        ({"message": "because"}, f"{DENIED}: because", 400),
        ({"reason": "because"}, f"{DENIED}: because", 400),
        ({"message": "this", "reason": "that"}, f"{DENIED}: this", 400),
        ({"message": "because", "code": 403}, f"{DENIED}: because", 403),
        ({"message": "because", "code": 200}, f"{DENIED}: because", 400),
        ({"message": "because", "code": 777}, f"{DENIED}: because", 400),
        ({"message": "because", "status": "Success"}, f"{DENIED}: because", 400),
        ({"message": 5, "code": "403", "details": []}, f"{DENIED} without explanation", 400),
    ],
)
def test_a_refusal_is_a_status(status: dict[str, Any] | None, message: str, code: int) -> None:
    shown = failure(denied("hook.example.com", status))
    assert (shown["status"], shown["message"], shown["code"]) == ("Failure", message, code)
    reason = (status or {}).get("reason")
    assert shown.get("reason") == reason


def test_details_come_along() -> None:
    details = {"name": "a", "causes": [{"field": "spec"}]}
    assert failure(denied("h", {"details": details}))["details"] == details


def test_a_refusal_has_bounds() -> None:
    long = denied("h", {"message": "x" * 10**6, "details": {"name": "x" * 10**6}})
    assert len(str(failure(long))) < 100_000

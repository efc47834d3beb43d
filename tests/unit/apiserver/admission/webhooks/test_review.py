"""The cases follow TestVerifyAdmissionResponse in
staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview_test.go.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kcm.apiserver.admission.webhooks.review import (
    InvalidReview,
    ReviewRequest,
    UnsupportedPatch,
    read_answer,
)

PATCH = base64.b64encode(b'[{"op":"add","path":"/foo","value":"bar"}]').decode()


def answer(version: str, **response: Any) -> bytes:
    review = {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview"}
    return json.dumps({**review, "response": response}).encode()


def request(version: str = "v1") -> ReviewRequest:
    return ReviewRequest(version, "123", b"")


@pytest.mark.parametrize("mutating", [True, False])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("allowed", [True, False])
def test_an_answer_says_whether_the_request_is_admitted(
    *, version: str, mutating: bool, allowed: bool
) -> None:
    body = answer(version, uid="123", allowed=allowed)
    assert read_answer(request(version), body, mutating=mutating).allowed is allowed


@pytest.mark.parametrize(
    ("mutating", "response", "words"),
    [
        (False, None, "webhook response was absent"),
        (False, {}, 'expected response.uid="123", got ""'),
        (False, {"uid": "1"}, 'expected response.uid="123", got "1"'),
        (False, {"uid": "123", "patch": PATCH}, "validating webhook may not return response.patch"),
        (
            False,
            {"uid": "123", "patchType": "JSONPatch"},
            "validating webhook may not return response.patchType",
        ),
        (
            True,
            {"uid": "123", "patch": PATCH},
            "webhook returned response.patch but not response.patchType",
        ),
        (
            True,
            {"uid": "123", "patchType": "JSONPatch"},
            "webhook returned response.patchType but not response.patch",
        ),
    ],
)
def test_an_answer_that_is_not_valid_is_explained(
    *, mutating: bool, response: dict[str, Any] | None, words: str
) -> None:
    body = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}'
    with pytest.raises(InvalidReview) as raised:
        read_answer(
            request(), body if response is None else answer("v1", **response), mutating=mutating
        )
    assert words in raised.value.message


@pytest.mark.parametrize("kind", ["", "Review"])
def test_an_answer_of_another_kind_is_refused(kind: str) -> None:
    body = json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": kind, "response": {"uid": "123"}}
    )
    with pytest.raises(InvalidReview, match="Kind=AdmissionReview, got"):
        read_answer(request(), body.encode(), mutating=False)


def test_the_older_version_is_read_generously() -> None:
    body = json.dumps({"response": {"allowed": True, "patch": PATCH, "uid": "other"}}).encode()
    read = read_answer(request("v1beta1"), body, mutating=True)
    assert (read.allowed, json.loads(read.patch)[0]["op"]) == (True, "add")
    assert not read_answer(request("v1beta1"), body, mutating=False).patch


def test_other_patches_are_not_known() -> None:
    body = answer("v1", uid="123", patch=PATCH, patchType="Merge")
    with pytest.raises(UnsupportedPatch, match='unsupported patch type "Merge"'):
        read_answer(request(), body, mutating=True)


@pytest.mark.parametrize(
    "response",
    [
        {"warnings": "text", "auditAnnotations": [], "status": 5},
        {"warnings": [1, {}], "auditAnnotations": {"a": 1}},
        {"allowed": "yes"},
    ],
)
def test_fields_of_another_type_are_passed_over(response: dict[str, Any]) -> None:
    read = read_answer(request(), answer("v1", uid="123", **response), mutating=False)
    assert (read.allowed, read.warnings, read.annotations) == (False, [], {})


def test_a_webhook_cannot_fill_the_audit_log() -> None:
    many = {f"key-{number}": "x" * 100_000 for number in range(1000)}
    body = answer("v1", uid="123", allowed=True, auditAnnotations=many)
    read = read_answer(request(), body, mutating=False)
    assert sum(map(len, read.annotations.values())) < 1_000_000


@pytest.mark.parametrize("body", [b"", b"[", b"[]", b"5", b'{"response":5}', b"[" * 100_000])
def test_rubbish_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidReview):
        read_answer(request(), body, mutating=True)

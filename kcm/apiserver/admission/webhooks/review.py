"""AdmissionReview: what a webhook is asked, and what it answers.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery import nesting
from kcm.apiserver.admission.attributes import WriteAttributes

_GROUP = "admission.k8s.io"
_KIND = "AdmissionReview"
V1, V1BETA1 = "v1", "v1beta1"
JSON_PATCH = "JSONPatch"
_MOST_ANNOTATIONS = 64  # of one answer
_LONGEST_ANNOTATION = 10 * 1024  # characters, as those of policies


class InvalidReview(errors.KcmError):
    """A webhook cannot be asked, or its answer cannot be used; the message says why."""


class UnsupportedPatch(InvalidReview):
    """The patch in a webhook's answer is of a type that is not known."""


@dataclass(frozen=True)
class ReviewRequest:
    """A review to send."""

    version: str
    uid: str
    body: bytes


@dataclass(frozen=True)
class ReviewAnswer:
    """What a webhook has decided."""

    allowed: bool
    patch: bytes = b""  # a JSON patch
    status: Mapping[str, Any] | None = None  # why it refuses
    warnings: Sequence[str] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)  # of the audit log


def make_review(
    write: WriteAttributes, matched: Resource, versions: Sequence[str]
) -> ReviewRequest:
    """Returns the review of a write, in the version of its kind that the webhook's rules match.

    `versions` are those of AdmissionReview that the webhook reads. Raises InvalidReview.
    """
    version = next((one for one in versions if one in (V1, V1BETA1)), "")
    if not version:
        raise InvalidReview(
            f"webhook does not accept known AdmissionReview versions ({V1}, {V1BETA1})"
        )
    about = {name: value for name, value in write.describe(matched).items() if value != ""}
    about["userInfo"] = {name: value for name, value in about["userInfo"].items() if value}
    head = f'{{"kind":"{_KIND}","apiVersion":"{_GROUP}/{version}","request":'.encode()
    new, old = write.new_text(matched), write.old_text(matched)
    parts = (head, to_json(about)[:-1], b',"object":', new, b',"oldObject":', old, b"}}")
    return ReviewRequest(version, about["uid"], b"".join(parts))


def read_answer(request: ReviewRequest, body: bytes, *, mutating: bool) -> ReviewAnswer:
    """Returns what a webhook has answered. Raises InvalidReview."""
    try:
        nesting.check(body)
        review = json.loads(body)
    except (ValueError, RecursionError, errors.BadRequest) as error:
        raise InvalidReview(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(review, dict):
        raise InvalidReview("couldn't get version/kind; json parse error: it is not an object")
    response = review.get("response")
    if not isinstance(response, dict):
        raise InvalidReview("webhook response was absent")
    if request.version == V1:
        _check_identity(request, review, response)
    return ReviewAnswer(
        allowed=response.get("allowed") is True,
        patch=_patch(request, response, mutating=mutating),
        status=_mapping(response.get("status")),
        warnings=[text for text in _list(response.get("warnings")) if isinstance(text, str)],
        annotations=_annotations(response.get("auditAnnotations")),
    )


def _annotations(given: Any) -> Mapping[str, str]:
    texts = [(key, text) for key, text in (_mapping(given) or {}).items() if isinstance(text, str)]
    return {key: text[:_LONGEST_ANNOTATION] for key, text in texts[:_MOST_ANNOTATIONS]}


def _check_identity(
    request: ReviewRequest, review: Mapping[str, Any], response: Mapping[str, Any]
) -> None:
    uid = response.get("uid")
    if uid != request.uid:
        shown = json.dumps(uid if isinstance(uid, str) else "")
        raise InvalidReview(f'expected response.uid="{request.uid}", got {shown}')
    kind = (review.get("apiVersion"), review.get("kind"))
    if kind != (f"{_GROUP}/{V1}", _KIND):
        shown_kind = f"{kind[0] or '/'}, Kind={kind[1] or ''}"
        raise InvalidReview(
            f"expected webhook response of {_GROUP}/{V1}, Kind={_KIND}, got {shown_kind}"
        )


def _patch(request: ReviewRequest, response: Mapping[str, Any], *, mutating: bool) -> bytes:
    given, kind = response.get("patch"), response.get("patchType")
    is_strict = request.version == V1
    if not mutating:
        if is_strict and given:
            raise InvalidReview("validating webhook may not return response.patch")
        if is_strict and kind is not None:
            raise InvalidReview("validating webhook may not return response.patchType")
        return b""
    if is_strict and given and kind is None:
        raise InvalidReview("webhook returned response.patch but not response.patchType")
    if is_strict and not given and kind is not None:
        raise InvalidReview("webhook returned response.patchType but not response.patch")
    if not given:
        return b""
    if is_strict and kind != JSON_PATCH:
        raise UnsupportedPatch(f"unsupported patch type {json.dumps(kind)}")
    try:
        return base64.b64decode(given, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise InvalidReview(f"response.patch is not base64: {error}") from None


def _mapping(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, dict) else None


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()

"""ConversionReview: what a conversion webhook is asked, and what it answers.

Source: createConversionReviewObjects and getConvertedObjectsFromResponse in
staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, Kubernetes
1.33.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kcm import errors
from kcm.apimachinery import nesting

_GROUP = "apiextensions.k8s.io"
_KIND = "ConversionReview"
V1, V1BETA1 = "v1", "v1beta1"
_SUCCESS = "Success"
_EMPTY_RESPONSE = b'"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}'
_LONGEST_MESSAGE = 4096  # characters of a webhook's message


class InvalidReview(errors.KcmError):
    """A webhook cannot be asked, or its answer cannot be used; the message says why."""


def choose_version(versions: Sequence[str]) -> str:
    """Returns the version of the review for a webhook that reads `versions`, the first that is
    known.

    Raises InvalidReview.
    """
    for version in versions:
        if version in (V1, V1BETA1):
            return version
    raise InvalidReview("no supported conversion review versions")


def make_review(version: str, uid: str, target: str, objects: Sequence[bytes]) -> bytes:
    """Returns the JSON of a review that asks for objects, given as JSON, in the apiVersion
    `target`.
    """
    about = json.dumps({"uid": uid, "desiredAPIVersion": target}, separators=(",", ":"))[:-1]
    head = f'{{"kind":"{_KIND}","apiVersion":"{_GROUP}/{version}","request":{about},"objects":['
    return b"".join((head.encode(), b",".join(objects), b"]},", _EMPTY_RESPONSE, b"}"))


def read_answer(version: str, uid: str, body: bytes) -> Sequence[Any]:
    """Returns the converted objects of an answer as JSON values.

    `version` and `uid` are those of the review. Raises InvalidReview.
    """
    response = _read_response(version, body)
    if version == V1 and response.get("uid") != uid:
        given = response.get("uid")
        shown = json.dumps(given if isinstance(given, str) else "")
        raise InvalidReview(f'expected response.uid="{uid}", got {shown}')
    _require_success(response.get("result"))
    converted = response.get("convertedObjects")
    if converted is None:
        return ()
    if not isinstance(converted, list):
        raise InvalidReview("response.convertedObjects is not a list")
    return converted


def _read_response(version: str, body: bytes) -> dict[str, Any]:
    try:
        nesting.check(body)
        review = json.loads(body)
    except (ValueError, RecursionError, errors.BadRequest) as error:
        raise InvalidReview(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(review, dict):
        raise InvalidReview("couldn't get version/kind; json parse error: it is not an object")
    expected = (f"{_GROUP}/{V1}", _KIND)
    kind = (review.get("apiVersion"), review.get("kind"))
    if version == V1 and kind != expected:
        raise InvalidReview(
            f"expected webhook response of {show_kind(*expected)}, got {show_kind(*kind)}"
        )
    response = review.get("response")
    if not isinstance(response, dict):
        raise InvalidReview("no response provided")
    return response


def _require_success(result: Any) -> None:
    """Raises InvalidReview with the message of a result that is no success."""
    result = result if isinstance(result, dict) else {}
    status, message = result.get("status"), result.get("message")
    if status == _SUCCESS:
        return
    if isinstance(message, str) and message:
        raise InvalidReview(message[:_LONGEST_MESSAGE])
    shown = str(status or "")[:_LONGEST_MESSAGE]
    raise InvalidReview(f"response.result.status was '{shown}', not 'Success'")


def show_kind(api_version: Any, kind: Any) -> str:
    """Returns an apiVersion and a kind as Go prints a GroupVersionKind."""
    text = api_version if isinstance(api_version, str) else ""
    group, _, version = text.rpartition("/")
    return f"{group}/{version}, Kind={kind if isinstance(kind, str) else ''}"

"""ConversionReviews: what is asked, and what an answer means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcm.apiserver.egress.conversion.review import (
    InvalidReview,
    choose_version,
    make_review,
    read_answer,
    show_kind,
)

OBJECT = {"apiVersion": "foo/v1", "kind": "Widget", "metadata": {"name": "myv1"}}
SUCCESS = {"status": "Success"}
V1 = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
NO_KIND = "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview"


# upstream's TestCreateConversionReviewObjects
@pytest.mark.parametrize(
    ("versions", "expected"),
    [(["v1", "v1beta1", "v2"], "v1"), (["v1beta1", "v1", "v2"], "v1beta1"), (["vx", "v1"], "v1")],
)
def test_the_first_known_version_is_chosen(versions: list[str], expected: str) -> None:
    assert choose_version(versions) == expected


@pytest.mark.parametrize("versions", [[], ["vx"]])
def test_a_webhook_that_reads_no_known_version_cannot_be_asked(versions: list[str]) -> None:
    with pytest.raises(InvalidReview, match="no supported conversion review versions"):
        choose_version(versions)


def test_a_review_has_the_form_of_upstreams() -> None:
    body = make_review("v1", "uid", "foo/v1", [b'{"a":1}', b'{"b":2}'])
    assert json.loads(body) == {
        **V1,
        "request": {"uid": "uid", "desiredAPIVersion": "foo/v1", "objects": [{"a": 1}, {"b": 2}]},
        "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
    }


# upstream's TestGetConvertedObjectsFromResponse
@pytest.mark.parametrize(
    ("version", "answer", "expected"),
    [
        ("v1beta1", {"response": {"result": SUCCESS}}, []),
        ("v1beta1", {"response": {"result": SUCCESS, "convertedObjects": [OBJECT]}}, [OBJECT]),
        ("v1", {**V1, "response": {"uid": "uid", "result": SUCCESS}}, []),
        (
            "v1",
            {**V1, "response": {"uid": "uid", "result": SUCCESS, "convertedObjects": [OBJECT]}},
            [OBJECT],
        ),
    ],
)
def test_an_answer_has_the_converted_objects(version: str, answer: Any, expected: Any) -> None:
    assert list(read_answer(version, "uid", json.dumps(answer).encode())) == expected


FAILURE: dict[str, Any] = {"status": "Failure"}


@pytest.mark.parametrize(
    ("version", "answer", "expected"),
    [
        ("v1beta1", [], "couldn't get version/kind; json parse error: it is not an object"),
        ("v1beta1", {}, "no response provided"),
        ("v1beta1", {"response": {"result": {"status": ""}}}, "was '', not 'Success'"),
        ("v1beta1", {"response": {"result": FAILURE}}, "was 'Failure', not 'Success'"),
        (
            "v1beta1",
            {"response": {"result": {**FAILURE, "message": "some failure message"}}},
            "some failure message",
        ),
        ("v1", {**V1, "response": {"result": SUCCESS}}, 'expected response.uid="uid", got ""'),
        ("v1", {"kind": "ConversionReview", "response": {"uid": "uid"}}, NO_KIND),
        ("v1", {"apiVersion": V1["apiVersion"], "response": {"uid": "uid"}}, NO_KIND),
        ("v1", {**V1, "apiVersion": "v2", "response": {"uid": "uid"}}, NO_KIND),
        ("v1", {**V1, "kind": "Foo", "response": {"uid": "uid"}}, NO_KIND),
        ("v1", {**V1, "response": {"uid": "uid", "result": {"status": ""}}}, "was '', not"),
        ("v1", {**V1, "response": {"uid": "uid", "result": FAILURE}}, "was 'Failure', not"),
        (
            "v1",
            {**V1, "response": {"uid": "uid", "result": {**FAILURE, "message": "some failure"}}},
            "some failure",
        ),
        ("v1", V1, "no response provided"),
        ("v1", {**V1, "response": {"uid": "uid", "result": 1}}, "was '', not 'Success'"),
        (
            "v1",
            {**V1, "response": {"uid": "uid", "result": SUCCESS, "convertedObjects": {}}},
            "response.convertedObjects is not a list",
        ),
    ],
)
def test_an_answer_that_cannot_be_used_says_why(version: str, answer: Any, expected: str) -> None:
    with pytest.raises(InvalidReview) as raised:
        read_answer(version, "uid", json.dumps(answer).encode())
    assert expected in raised.value.message


def test_what_is_no_json_says_so() -> None:
    for body in (b"<html>", b"[" * 100_000, b"\xff"):
        with pytest.raises(InvalidReview, match="json parse error"):
            read_answer("v1", "uid", body)


def test_kinds_are_shown_as_go_does() -> None:
    assert show_kind("example.com/v1", "CronTab") == "example.com/v1, Kind=CronTab"
    assert show_kind("v1", "Pod") == "/v1, Kind=Pod"
    assert show_kind(None, 3) == "/, Kind="

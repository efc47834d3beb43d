"""Answers ConversionReviews about Gateways, whose versions have an address in two forms.

`v1beta1` has `spec.hostPort`, `v1` has `spec.host` and `spec.port`. `v1alpha1` is like `v1beta1`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

Review = dict[str, Any]


def convert(obj: Any, version: str) -> Any:
    """Returns a Gateway in another apiVersion."""
    converted = copy.deepcopy(obj)
    converted["apiVersion"] = version
    spec = converted.get("spec") or {}
    if version.endswith("/v1") and "hostPort" in spec:
        host, _, port = spec.pop("hostPort").rpartition(":")
        spec |= {"host": host, "port": int(port)}
    elif not version.endswith("/v1") and "host" in spec:
        spec["hostPort"] = f"{spec.pop('host')}:{spec.pop('port')}"
    return converted


def _answer(review: Review, **fields: Any) -> Review:
    request = review["request"]
    wanted = request["desiredAPIVersion"]
    response = {
        "uid": request["uid"],
        "result": {"status": "Success"},
        "convertedObjects": [convert(obj, wanted) for obj in request["objects"]],
        **fields,
    }
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def _change(review: Review, change: Callable[[Any], None]) -> Review:
    """Returns an answer whose objects were changed once more."""
    answer = _answer(review)
    for obj in answer["response"]["convertedObjects"]:
        change(obj)
    return answer


def _set(*path: str, value: Any) -> Callable[[Any], None]:
    def change(obj: Any) -> None:
        for step in path[:-1]:
            obj = obj.setdefault(step, {})
        obj[path[-1]] = value

    return change


def _mark(obj: Any) -> None:
    """Changes labels, annotations, and metadata that must not be changed."""
    metadata = obj["metadata"]
    metadata["labels"] = {**metadata.get("labels", {}), "by": "webhook"}
    metadata["annotations"] = {"from": "webhook"}
    metadata |= {"finalizers": ["example.com/x"], "generation": 77, "resourceVersion": "1"}


_ANSWERS: Mapping[str, Callable[[Review, str], Review]] = {
    "convert": lambda review, _: _answer(review),
    "mark": lambda review, _: _change(review, _mark),
    "refuse": lambda review, text: _answer(
        review, result={"status": "Failure", "message": text}, convertedObjects=[]
    ),
    "no-status": lambda review, _: _answer(review, result={}),
    "wrong-uid": lambda review, _: _answer(review, uid="other"),
    "wrong-review": lambda review, _: _answer(review) | {"kind": "Pod", "apiVersion": "v1"},
    "no-response": lambda review, _: {"apiVersion": review["apiVersion"], "kind": review["kind"]},
    "too-few": lambda review, _: _answer(review, convertedObjects=[]),
    "same-version": lambda review, _: _answer(
        review, convertedObjects=review["request"]["objects"]
    ),
    "wrong-kind": lambda review, _: _change(review, _set("kind", value="Pod")),
    "rename": lambda review, _: _change(review, _set("metadata", "name", value="other")),
    "other-uid": lambda review, _: _change(review, _set("metadata", "uid", value="other")),
    "move": lambda review, _: _change(review, _set("metadata", "namespace", value="other")),
    "no-metadata": lambda review, _: _change(review, _set("metadata", value=None)),
    "bad-label": lambda review, _: _change(review, _set("metadata", "labels", value={"a": 1})),
    "wrong-label": lambda review, _: _change(
        review, _set("metadata", "labels", value={"a": "not valid"})
    ),
    "no-object": lambda review, _: _answer(
        review, convertedObjects=[None for _ in review["request"]["objects"]]
    ),
    "no-list": lambda review, _: _answer(review, convertedObjects="all"),
    "unknown-field": lambda review, _: _change(review, _set("spec", "unknown", value=1)),
}


def answer(review: Review, behaviour: str, text: str) -> Review:
    """Returns the answer to a review of the behaviour that a path names."""
    return _ANSWERS[behaviour](review, text)

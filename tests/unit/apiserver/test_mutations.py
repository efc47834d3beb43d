"""Hostile bodies with random changes raise only errors of the API."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import ConfigMap, Pod
from kcm.apiextensions.schemas import structural
from kcm.apiserver.http.bodies import client_warnings, fieldvalidation, patches, reading
from kcm.apiserver.http_errors import WronglyTyped
from kcm.apiserver.objects import serverside
from kcm.kinds.validation import validate_create, validate_update
from kcm.testing.builders import START
from tests.integration.apiserver import hostile

PODS, MAPS = Pod.resource, ConfigMap.resource
POD = codec.decode(hostile.pod("a", 3), PODS)

VALID = hostile.encode(hostile.pod("a", 2))
SEEDS: list[bytes] = [
    b"kind: ConfigMap\nmetadata: &m {name: a, <<: {b: *m}}\nc: [0x1f, 1e400, .inf, 2001-01-01]\n",
    b"---\na: &a [b, *a]\n? {k: v}\n: !!binary YQ==\n",
    hostile.bomb()[:300],
    hostile.deep_config_map(105),
    hostile.build_add_patch(hostile.deep(90)),
    hostile.build_copy_patch(20),
    b'[{"op":"move","from":"/spec","path":"/spec/a"},{"op":"test","path":"","value":{}}]',
    hostile.encode(
        {
            "spec": {
                "$retainKeys": ["containers"],
                "containers": [
                    {"name": "c", "$setElementOrder/env": [{"name": "V1"}], "env": [{"name": "V0"}]}
                ],
                "volumes": [{"name": "v", "$patch": "delete"}],
            },
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": None},
        }
    ),
    VALID,
    hostile.encode(hostile.traps()),
    hostile.role()[:400],
    hostile.owners(3),
    hostile.empty_items(5),
    hostile.far_away(),
]
PIECES = [
    b"{", b"}", b"[", b"]", b'"', b"\\", b":", b",", b"*a", b"&a", b"null", b"{}", b"[]", b"-1",
    b"1e999", b'"$patch":', b"\\ud800", b"\xff", b"\x00", b"9" * 30, b"9" * 5_000, b'"replace"',
    b"NaN", b"true", b"<<: ",
]  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """Draws a body with pieces removed, repeated or inserted."""
    body = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.integers(0, 40)))
        piece = draw(st.sampled_from([*PIECES, b"", body[start:end] * 2]))
        body = body[:start] + piece + body[end:]
    return body


def read(body: bytes, content_type: str) -> None:
    """Decodes a body as a create does."""
    text = reading.to_json(content_type, body)
    sent = codec.decode(text, MAPS, keep_unknown=True)
    obj = client_warnings.prune(sent)
    fieldvalidation.check(sent, obj, text, "Warn")
    codec.decode(codec.encode(obj), MAPS)
    errors.Invalid(validate_create(obj))


def patch(body: bytes, content_type: str) -> None:
    """Patches a pod with a body."""
    new = patches.on_objects(patches.parse(content_type, body, PODS), PODS, body)(POD)
    patches.check_fields(new, client_warnings.prune(new), body, "Warn")
    validate_update(new, POD)
    codec.encode(new)


def apply(body: bytes, content_type: str) -> None:
    """Applies a body to a pod by server-side apply."""
    config = serverside.configuration(body, PODS)
    what = serverside.Application(PODS, config, "m", True, "", START)
    serverside.apply_to(what, POD)


def define(body: bytes, content_type: str) -> None:
    """Checks a body as the schema of a definition."""
    text = reading.to_json(content_type, body)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    list(structural.check(document, "schema"))


WAYS: list[tuple[Callable[[bytes, str], None], str]] = [
    (read, hostile.JSON),
    (read, hostile.YAML),
    (read, hostile.PROTOBUF),
    (patch, hostile.JSON_PATCH),
    (patch, hostile.MERGE),
    (patch, hostile.STRATEGIC),
    (apply, hostile.APPLY),
    (define, hostile.JSON),
]


@pytest.mark.parametrize(("way", "content_type"), WAYS)
@settings(max_examples=150, deadline=None)
@given(body=mutations())
@example(body=VALID)
def test_a_changed_hostile_body_gives_an_error_of_the_api_or_nothing(
    way: Callable[[bytes, str], None], content_type: str, body: bytes
) -> None:
    code = 0
    try:
        way(body, content_type)
    except WronglyTyped:
        return  # 500, as upstream
    except errors.ApiError as error:
        code = error.code
    assert code == 0 or 400 <= code < 500

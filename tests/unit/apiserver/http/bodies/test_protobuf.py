from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm import errors
from kcm.apiserver.http.bodies import fieldvalidation
from kcm.apiserver.http.bodies.protobuf import CONTENT_TYPE, decode
from kcm.apiserver.http.bodies.reading import to_json
from kcm.apiserver.http_errors import UnsupportedMediaType


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    meta = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\x00" + field(1, meta) + field(2, raw)


def decode_manifest(api_version: str, kind: str, raw: bytes) -> dict[str, Any]:
    obj = decode(body(api_version, kind, raw))
    assert (obj.pop("apiVersion"), obj.pop("kind")) == (api_version, kind)
    return obj


def test_metadata_with_maps_lists_and_times() -> None:
    label = field(11, field(1, b"a") + field(2, b"b"))
    owner = field(13, field(1, b"Pod") + field(6, 1))
    created = field(8, field(1, 60))
    meta = field(1, b"n") + label + owner + field(14, b"x") + field(14, b"y") + created
    assert decode_manifest("v1", "Namespace", field(1, meta)) == {
        "metadata": {
            "name": "n",
            "labels": {"a": "b"},
            "ownerReferences": [{"kind": "Pod", "controller": True}],
            "finalizers": ["x", "y"],
            "creationTimestamp": "1970-01-01T00:01:00Z",
        }
    }


def test_a_body_becomes_compact_json_in_which_no_repeated_field_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = body(
        "v1", "ConfigMap", field(1, field(1, b"n")) + field(2, field(1, b"a") + field(2, b"b"))
    )
    text = to_json(CONTENT_TYPE, sent)
    monkeypatch.setattr(fieldvalidation, "_load", None)
    assert fieldvalidation.duplicates(text) == []
    assert text.startswith(b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"}')


def test_the_zero_time_is_none_and_unknown_fields_are_skipped() -> None:
    meta = field(8, b"") + field(15, b"unknown") + field(7, 3)
    assert decode_manifest("v1", "Namespace", field(1, meta)) == {"metadata": {"generation": 3}}


def test_negative_numbers_come_out_negative() -> None:
    raw = b"\x08" + b"\xff" * 9 + b"\x01"
    assert decode_manifest("v1", "DeleteOptions", raw) == {"gracePeriodSeconds": -1}


def test_micro_times_keep_their_microseconds() -> None:
    renewed = field(4, field(1, 1) + b"\x10\xc0\x84\x3d")  # 1,000,000 ns
    raw = field(2, renewed)
    assert decode_manifest("coordination.k8s.io/v1", "Lease", raw) == {
        "spec": {"renewTime": "1970-01-01T00:00:01.001000Z"}
    }


def test_kinds_without_a_table_are_refused_in_clear_words() -> None:
    with pytest.raises(UnsupportedMediaType, match="Widget in example"):
        decode(body("example.com/v1", "Widget", b""))


@given(st.binary(max_size=60))
def test_rubbish_is_a_bad_request(rubbish: bytes) -> None:
    for data in (rubbish, b"k8s\x00" + rubbish, body("v1", "Event", b"")[:-1] + rubbish):
        try:
            decode(data)
        except (errors.BadRequest, UnsupportedMediaType):
            continue


def long(number: int, value: bytes) -> bytes:
    length, sign = b"", len(value)
    while sign > 127:
        length, sign = length + bytes([sign & 127 | 128]), sign >> 7
    return bytes([number << 3 | 2]) + length + bytes([sign]) + value


@pytest.mark.parametrize("number", [13, 14])  # owners and finalizers
def test_very_many_empty_items_are_refused_at_once(number: int) -> None:
    meta = long(1, field(1, b"n") + field(number, b"") * 1_400_000)
    raw = b"k8s\x00" + field(1, field(1, b"v1") + field(2, b"ConfigMap")) + long(2, meta)
    before = time.process_time()
    with pytest.raises(errors.BadRequest, match="more than 100000 items"):
        decode(raw)
    assert time.process_time() - before < 5


@pytest.mark.parametrize("seconds", [b"\xff" * 8 + b"\x7f", b"\x80" * 9 + b"\x01"])
def test_a_time_far_away_is_a_bad_request(seconds: bytes) -> None:
    meta = field(8, b"\x08" + seconds)
    with pytest.raises(errors.BadRequest, match="not valid protobuf"):
        decode(body("v1", "Namespace", field(1, meta)))

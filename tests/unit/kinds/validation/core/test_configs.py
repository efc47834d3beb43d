"""ConfigMaps and Secrets."""

import base64
from typing import Any

import pytest

from kcm.api import codec
from kcm.kinds.validation.core.configs import SIZE_LIMIT
from tests.samples import sample
from tests.unit.kinds.validation.outcomes import validate_changed, validate_new

IMMUTABLE = "Forbidden: field is immutable when `immutable` is set"


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"data": {"a.b-C_1": ""}}, []),
        ({"data": {"..": ""}}, ["data[..]: Invalid value: \"..\": must not be '..'"]),
        ({"data": {".": ""}}, ["data[.]: Invalid value: \".\": must not be '.'"]),
        ({"data": {"..a": ""}}, ["data[..a]: Invalid value: \"..a\": must not start with '..'"]),
        (
            {"data": {"k": "a"}, "binaryData": {"k": "AA=="}},
            ['data[k]: Invalid value: "k": duplicate of key present in binaryData'],
        ),
        (
            {"binaryData": {"k": "*"}},
            ['binaryData[k]: Invalid value: "<secret contents redacted>": illegal base64 data'],
        ),
    ],
)
def test_the_keys_of_a_config_map_are_file_names_and_its_bytes_base64(
    changes: dict[str, Any], expected: list[str]
) -> None:
    assert validate_new("configmaps", **changes) == expected


def test_a_key_with_other_characters_or_too_long_is_refused() -> None:
    [message] = validate_new("configmaps", data={"a b": ""})
    assert message.startswith('data[a b]: Invalid value: "a b": a valid config key must consist of')
    [message] = validate_new("configmaps", data={"k" * 254: ""})
    assert message.endswith("must be no more than 253 characters")


def test_a_config_map_holds_a_mebibyte_of_text_and_bytes_together() -> None:
    half = SIZE_LIMIT // 2
    fits = {"data": {"a": "x" * half}, "binaryData": {"b": encode("x" * half)}}
    assert validate_new("configmaps", **fits) == []
    over = {"data": {"a": "x" * (half + 1)}, "binaryData": {"b": encode("x" * half)}}
    assert validate_new("configmaps", **over) == [
        "[]: Too long: may not be more than 1048576 bytes"
    ]


@pytest.mark.parametrize("name", ["configmaps", "secrets"])
def test_what_is_immutable_stays_as_it_is(name: str) -> None:
    data = {"k": encode("a")}
    old = sample(name, data=data, immutable=True)
    assert validate_changed(old, old) == []
    assert validate_changed(old.replace(immutable=None), old) == [f"immutable: {IMMUTABLE}"]
    assert validate_changed(old.replace(data=None), old) == [f"data: {IMMUTABLE}"]
    free = old.replace(immutable=None)
    assert validate_changed(old.replace(data=None), free) == []


def test_the_bytes_of_an_immutable_config_map_stay_too() -> None:
    old = sample("configmaps", immutable=True)
    assert validate_changed(old.replace(binary_data={}), old) == [f"binaryData: {IMMUTABLE}"]


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("kubernetes.io/tls", {"tls.crt": "", "tls.key": ""}, []),
        (
            "kubernetes.io/tls",
            {},
            ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
        ),
        ("kubernetes.io/basic-auth", {"password": ""}, []),
        (
            "kubernetes.io/basic-auth",
            {},
            ["data[username]: Required value", "data[password]: Required value"],
        ),
        (
            "kubernetes.io/ssh-auth",
            {"ssh-privatekey": ""},
            ["data[ssh-privatekey]: Required value"],
        ),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": encode("{}")}, []),
        ("kubernetes.io/dockercfg", {}, ["data[.dockercfg]: Required value"]),
        (
            "kubernetes.io/dockercfg",
            {".dockercfg": encode("hunter2")},
            [
                'data[.dockercfg]: Invalid value: "<secret contents redacted>": '
                "must be a JSON object"
            ],
        ),
        (
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        ("example.com/mine", {"anything": ""}, []),
    ],
)
def test_each_type_of_secret_requires_its_keys(
    kind: str, data: dict[str, str], expected: list[str]
) -> None:
    assert validate_new("secrets", type=kind, data=data, stringData={}) == expected


def test_a_secret_holds_a_mebibyte() -> None:
    assert validate_new("secrets", stringData={"a": "x" * SIZE_LIMIT}) == []
    assert validate_new("secrets", stringData={"a": "x" * (SIZE_LIMIT + 1)}) == [
        "data: Too long: may not be more than 1048576 bytes"
    ]


def test_messages_about_secrets_hold_no_secrets() -> None:
    [message] = validate_new("secrets", data={"k": "hunter2!"}, stringData={})
    assert "hunter2" not in message


def test_the_type_of_a_secret_never_changes() -> None:
    old = sample("secrets")
    [message] = validate_changed(old.replace(type="example.com/mine"), old)
    assert message == 'type: Invalid value: "example.com/mine": field is immutable'


def test_plain_text_is_written_into_the_data_and_never_read() -> None:
    secret = sample("secrets", data={"a": encode("old"), "b": encode("b")}, stringData={"a": "new"})
    assert secret.data == {"a": encode("new"), "b": encode("b")}
    assert secret.type == "Opaque"
    assert "stringData" not in codec.to_dict(secret)

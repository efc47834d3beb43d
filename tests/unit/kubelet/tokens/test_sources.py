from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kcm import errors
from kcm.api.core_v1 import Node, ServiceAccount
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.helpers.serviceaccount import keys
from kcm.helpers.serviceaccount.issuing import Issuer
from kcm.kubelet.tokens.sources import NoTokens, RequestedTokens, SignedTokens
from kcm.store.objects import ObjectStore
from kcm.testing.builders import pod
from kcm.testing.clock import FakeClock
from tests.unit.helpers.serviceaccount.test_keys import pem_of

WEB = pod("web", node="n", service_account_name="robot")
KEY = keys.parse_signing_key(pem_of(ec.generate_private_key(ec.SECP256R1())))


class Objects:
    """A store of these objects."""

    def __init__(self, *objects: KubeObject) -> None:
        self.objects = {obj.key: obj for obj in objects}

    def get_all(self, wanted: Sequence[tuple[Resource, str]]) -> Sequence[KubeObject | None]:
        return [self.objects.get(key) for _, key in wanted]


def signed(*objects: KubeObject) -> SignedTokens:
    issuer = Issuer(KEY, "https://issuer", ("https://issuer",))
    return SignedTokens(cast("ObjectStore", Objects(*objects)), issuer, FakeClock())


ROBOT = ServiceAccount(metadata=ObjectMeta(name="robot", namespace=WEB.namespace, uid="uid-r"))
NODE = Node(metadata=ObjectMeta(name="n", uid="uid-n"))


def test_a_signed_token_is_bound_to_the_pod() -> None:
    token = signed(ROBOT, NODE).request(WEB, "", 3607)
    claims = jwt.decode(token.text, options={"verify_signature": False})
    assert claims["aud"] == ["https://issuer"]
    assert claims["kubernetes.io"]["pod"] == {"name": "web", "uid": WEB.uid}
    assert claims["kubernetes.io"]["node"] == {"name": "n", "uid": "uid-n"}
    assert claims["kubernetes.io"]["serviceaccount"] == {"name": "robot", "uid": "uid-r"}
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert (token.expires - FakeClock().now()).total_seconds() == token.seconds == 3607


def test_a_token_for_somebody_else_names_the_audience() -> None:
    token = signed(ROBOT).request(WEB, "vault", 600)
    claims = jwt.decode(token.text, options={"verify_signature": False})
    assert (claims["aud"], claims["exp"] - claims["iat"]) == (["vault"], 600)
    assert claims["kubernetes.io"]["node"] == {"name": "n"}


def test_an_account_that_is_missing_is_named() -> None:
    with pytest.raises(errors.NotFound, match='serviceaccounts "robot" not found'):
        signed().request(WEB, "", 600)


def test_a_request_names_the_pod() -> None:
    sent: list[tuple[str, Mapping[str, Any]]] = []

    def post(path: str, body: Mapping[str, Any]) -> bytes:
        sent.append((path, body))
        status = {"token": "t", "expirationTimestamp": "2026-01-01T01:00:00Z"}
        return json.dumps({"spec": {"expirationSeconds": 700}, "status": status}).encode()

    token = RequestedTokens(post).request(WEB, "vault", 600)
    assert (token.text, token.seconds) == ("t", 700)
    assert token.expires == datetime(2026, 1, 1, 1, tzinfo=UTC)
    ((path, body),) = sent
    assert path == f"/api/v1/namespaces/{WEB.namespace}/serviceaccounts/robot/token"
    assert body["spec"] == {
        "audiences": ["vault"],
        "expirationSeconds": 600,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": WEB.uid},
    }


@pytest.mark.parametrize("answer", [b"", b"[]", b"{}", b'{"spec": {}, "status": 7}'])
def test_an_answer_that_is_no_token_is_tried_again(answer: bytes) -> None:
    with pytest.raises(errors.StoreUnavailable, match="no TokenRequest"):
        RequestedTokens(lambda path, body: answer).request(WEB, "", 600)


def test_without_a_key_the_flags_are_named() -> None:
    with pytest.raises(errors.ContainerConfigError, match="--service-account-signing-key-file"):
        NoTokens().request(WEB, "", 600)

"""After TestTokenCachingAndExpiration, TestRequiresRefresh and TestCleanup of
pkg/kubelet/token/token_manager_test.go.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kcm import errors
from kcm.api.core_v1 import Node, Pod, ServiceAccount
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.helpers.serviceaccount import tokens
from kcm.helpers.serviceaccount.tokens import Issuer
from kcm.kubelet.tokens.manager import (
    IssuedToken,
    NoTokens,
    RequestedTokens,
    SignedTokens,
    TokenManager,
)
from kcm.store.objects import ObjectStore
from kcm.testing.builders import pod
from kcm.testing.clock import FakeClock
from tests.unit.helpers.serviceaccount.test_tokens import pem_of

WEB = pod("web", node="n", service_account_name="robot")
KEY = tokens.parse_signing_key(pem_of(ec.generate_private_key(ec.SECP256R1())))


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


HOUR = 3600


class Issuing:
    """A source of numbered tokens, or of the error that is set."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.asked: list[tuple[str, str, int]] = []
        self.error: Exception | None = None

    def request(self, pod: Pod, audience: str, seconds: int) -> IssuedToken:
        self.asked.append((pod.name, audience, seconds))
        if self.error is not None:
            raise self.error
        expires = self.clock.now() + timedelta(seconds=seconds)
        return IssuedToken(f"token-{len(self.asked)}", expires, seconds)


def setup() -> tuple[TokenManager, Issuing, FakeClock]:
    clock = FakeClock()
    source = Issuing(clock)
    return TokenManager(source, clock, random.Random(1)), source, clock


def test_a_token_is_kept_until_four_fifths_of_its_time_are_over() -> None:
    manager, _, clock = setup()
    web = pod("web")
    assert manager.token(web, "", HOUR) == "token-1"
    clock.step(0.8 * HOUR - 11)
    assert manager.token(web, "", HOUR) == "token-1"
    clock.step(12)
    assert manager.token(web, "", HOUR) == "token-2"


def test_a_long_token_is_renewed_after_a_day() -> None:
    manager, _, clock = setup()
    manager.token(pod("web"), "", 365 * 24 * HOUR)
    clock.step(24 * HOUR - 11)
    assert manager.token(pod("web"), "", 365 * 24 * HOUR) == "token-1"
    clock.step(12)
    assert manager.token(pod("web"), "", 365 * 24 * HOUR) == "token-2"


def test_pods_audiences_and_times_have_tokens_of_their_own() -> None:
    manager, source, _ = setup()
    for name, audience, seconds in (
        ("web", "", HOUR),
        ("db", "", HOUR),
        ("web", "vault", HOUR),
        ("web", "", 600),
        ("web", "", HOUR),
    ):
        manager.token(pod(name), audience, seconds)
    assert len(source.asked) == 4


def test_a_pod_of_the_same_name_gets_another_token() -> None:
    manager, _, _ = setup()
    manager.token(pod("web"), "", HOUR)
    assert manager.token(pod("web").with_metadata(uid="new"), "", HOUR) == "token-2"


def test_a_valid_token_is_used_while_none_is_issued() -> None:
    manager, source, clock = setup()
    manager.token(pod("web"), "", HOUR)
    source.error = errors.StoreUnavailable("away")
    clock.step(0.9 * HOUR)
    assert manager.token(pod("web"), "", HOUR) == "token-1"
    clock.step(0.2 * HOUR)
    with pytest.raises(errors.ContainerConfigError, match="failed to fetch token: away"):
        manager.token(pod("web"), "", HOUR)


@pytest.mark.parametrize("error", [errors.StoreUnavailable("away"), errors.Forbidden("no")])
def test_without_any_token_the_reason_is_said(error: Exception) -> None:
    manager, source, _ = setup()
    source.error = error
    with pytest.raises(errors.ContainerConfigError, match=r"failed to fetch token: (away|no)"):
        manager.token(pod("web"), "", HOUR)


def test_expired_tokens_are_forgotten() -> None:
    manager, _, clock = setup()
    manager.token(pod("gone"), "", 600)
    clock.step(601)
    manager.token(pod("web"), "", HOUR)
    assert len(manager._tokens) == 1


def test_a_token_is_in_no_repr() -> None:
    assert "secret" not in repr(IssuedToken("secret", FakeClock().now(), 1))

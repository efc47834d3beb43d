"""After TestTokenGenerateAndValidate of pkg/serviceaccount/jwt_test.go and
TestValidatePrivateClaims of claims_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kcm.api.core_v1 import Node, ObjectReference, Pod, Secret, ServiceAccount
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apiserver.auth.access import AccessRules
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.auth.authenticators import Credentials, Tokens
from kcm.apiserver.auth.service_accounts import ServiceAccountTokens, TokenOptions
from kcm.apiserver.auth.token_review import TokenReviewer
from kcm.apiserver.http_errors import Unauthorized
from kcm.helpers.serviceaccount import tokens
from kcm.helpers.serviceaccount.claims import (
    LEGACY_ISSUER,
    BoundObjects,
    bound_claims,
    legacy_claims,
)
from kcm.helpers.serviceaccount.tokens import InvalidToken, sign
from kcm.testing.clock import FakeClock
from tests.unit.helpers.serviceaccount.test_tokens import pem_of

KEY = tokens.parse_signing_key(pem_of(ec.generate_private_key(ec.SECP256R1())))
OPTIONS = TokenOptions(KEY, (KEY.verification,), ("https://issuer", "https://old"), ("api", "too"))
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:ns")


def meta(name: str, uid: str, **more: Any) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=more.pop("namespace", "ns"), uid=uid, **more)


ACCOUNT = ServiceAccount(metadata=meta("a", "uid-a"))
POD = Pod(metadata=meta("p", "uid-p"))
SECRET = Secret(metadata=meta("s", "uid-s"))
NODE = Node(metadata=ObjectMeta(name="n", uid="uid-n"))


class Cluster:
    """The objects of a cluster, and the authenticator that finds them."""

    def __init__(self, *objects: KubeObject) -> None:
        self.objects = {(type(obj), obj.key): obj for obj in objects}
        self.used: list[str] = []
        self.counted: list[str] = []
        self.clock = FakeClock()
        self.tokens = ServiceAccountTokens(
            OPTIONS,
            lambda model, key: self.objects.get((model, key)),
            lambda secret: self.used.append(secret.key),
            self.clock,
            count=self.counted.append,
        )

    def bound(self, issuer: str = "https://issuer", seconds: int = 600, **bound: Any) -> str:
        audiences = bound.pop("audiences", ["api"])
        claims = bound_claims(
            ACCOUNT, BoundObjects(**bound), audiences, self.clock.now(), seconds=seconds
        )
        return sign(KEY, issuer, {**claims, "jti": "7"})

    def user(self, token: str) -> User | None:
        return self.tokens.authenticate(Credentials(f"Bearer {token}"))

    def fault(self, token: str) -> str:
        with pytest.raises(Unauthorized):
            self.user(token)
        with pytest.raises(InvalidToken) as caught:
            self.tokens.check(token, OPTIONS.audiences)
        return caught.value.message


def test_a_token_is_its_account_in_its_groups() -> None:
    cluster = Cluster(ACCOUNT)
    extra = (("authentication.kubernetes.io/credential-id", ("JTI=7",)),)
    wanted = User("system:serviceaccount:ns:a", "uid-a", GROUPS, extra)
    assert cluster.user(cluster.bound()) == wanted
    assert cluster.user(cluster.bound("https://old")) == wanted
    assert cluster.user(cluster.bound("https://other")) is None
    assert cluster.user("a-token-of-a-file") is None


def test_the_token_of_a_pod_says_where_it_runs() -> None:
    cluster = Cluster(ACCOUNT, POD)
    user = cluster.user(cluster.bound(pod=POD, node=NODE))
    assert user is not None
    assert dict(user.extra) == {
        "authentication.kubernetes.io/credential-id": ("JTI=7",),
        "authentication.kubernetes.io/pod-name": ("p",),
        "authentication.kubernetes.io/pod-uid": ("uid-p",),
        "authentication.kubernetes.io/node-name": ("n",),
        "authentication.kubernetes.io/node-uid": ("uid-n",),
    }


@pytest.mark.parametrize(
    ("bound", "objects", "fault"),
    [
        ({}, [], 'serviceaccounts "a" not found'),
        (
            {},
            [ServiceAccount(metadata=meta("a", "new"))],
            "service account UID (new) does not match claim (uid-a)",
        ),
        ({"pod": POD}, [ACCOUNT], "service account token has been invalidated"),
        (
            {"pod": POD},
            [ACCOUNT, Pod(metadata=meta("p", "new"))],
            "pod UID (new) does not match service account pod ref claim (uid-p)",
        ),
        ({"secret": SECRET}, [ACCOUNT], "service account token has been invalidated"),
        (
            {"secret": SECRET},
            [ACCOUNT, Secret(metadata=meta("s", "new"))],
            "secret UID (new) does not match service account secret ref claim (uid-s)",
        ),
        ({"node": NODE}, [ACCOUNT], "service account token has been invalidated"),
        (
            {"node": NODE},
            [ACCOUNT, Node(metadata=ObjectMeta(name="n", uid="new"))],
            "node UID (new) does not match service account node ref claim (uid-n)",
        ),
        (
            {"audiences": ["elsewhere"]},
            [ACCOUNT],
            'token audiences ["elsewhere"] is invalid for the target audiences ["api" "too"]',
        ),
    ],
)
def test_a_token_ends_with_what_it_is_bound_to(
    bound: dict[str, Any], objects: list[KubeObject], fault: str
) -> None:
    cluster = Cluster(*objects)
    assert cluster.fault(cluster.bound(**bound)) == fault


def test_what_is_being_deleted_counts_for_another_minute() -> None:
    cluster = Cluster(ACCOUNT)
    for seconds, message in ((59, ""), (61, "service account token has been invalidated")):
        deleted = cluster.clock.now() - timedelta(seconds=seconds)
        leaving = POD.with_metadata(deletion_timestamp=deleted)
        cluster.objects[Pod, "ns/p"] = leaving
        token = cluster.bound(pod=POD)
        if message:
            assert cluster.fault(token) == message
        else:
            assert cluster.user(token) is not None


def test_a_token_expires() -> None:
    cluster = Cluster(ACCOUNT)
    token = cluster.bound(seconds=600)
    cluster.clock.step(659)
    assert cluster.user(token) is not None
    cluster.clock.step(2)
    assert cluster.fault(token) == "service account token has expired"


# --- tokens of Secrets


def legacy(**changed: str) -> str:
    return sign(KEY, LEGACY_ISSUER, {**legacy_claims(ACCOUNT, SECRET), **changed})


def holding(token: str, **more: Any) -> Secret:
    data = {"token": base64.b64encode(token.encode()).decode()}
    return Secret(metadata=meta("s", "uid-s", **more), data=data)


def test_the_token_of_a_secret_is_its_account() -> None:
    token = legacy()
    cluster = Cluster(ACCOUNT, holding(token))
    assert cluster.user(token) == User("system:serviceaccount:ns:a", "uid-a", GROUPS)
    assert cluster.used == ["ns/s"]


@pytest.mark.parametrize(
    ("objects", "fault"),
    [
        ([ACCOUNT], "Token has been invalidated"),
        (
            [ACCOUNT, holding("x", deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))],
            "Token has been invalidated",
        ),
        ([ACCOUNT, holding("another")], "Token does not match server's copy"),
    ],
)
def test_the_token_of_a_secret_ends_with_it(objects: list[KubeObject], fault: str) -> None:
    assert Cluster(*objects).fault(legacy()) == fault


def test_the_token_of_a_secret_ends_with_its_account() -> None:
    token = legacy()
    assert Cluster(holding(token)).fault(token) == 'serviceaccounts "a" not found'
    other = ServiceAccount(metadata=meta("a", "new"))
    message = "ServiceAccount UID (new) does not match claim (uid-a)"
    assert Cluster(holding(token), other).fault(token) == message


def test_a_token_that_was_marked_invalid_is_refused_and_its_use_seen() -> None:
    token = legacy()
    marked = holding(token, labels={"kubernetes.io/legacy-token-invalid-since": "2026-01-01"})
    cluster = Cluster(ACCOUNT, marked)
    assert cluster.fault(token).startswith(
        "the token in secret ns/s for service account ns/a has been marked invalid."
    )
    assert cluster.used


def test_claims_that_contradict_each_other_are_refused() -> None:
    for changed, fault in (
        ({"sub": ""}, "sub claim is missing"),
        ({"sub": "system:serviceaccount:ns:b"}, "sub claim is invalid"),
        ({"kubernetes.io/serviceaccount/secret.name": ""}, "secretName claim is missing"),
    ):
        assert Cluster(ACCOUNT).fault(legacy(**changed)) == fault


def test_uses_are_counted_as_upstream_counts_them() -> None:
    token = legacy()
    cluster = Cluster(ACCOUNT, holding(token))
    cluster.user(token)
    cluster.objects[ServiceAccount, "ns/a"] = ACCOUNT.replace(secrets=[ObjectReference(name="s")])
    cluster.user(token)
    marked = holding(token, labels={"kubernetes.io/legacy-token-invalid-since": "2026-01-01"})
    cluster.objects[Secret, "ns/s"] = marked
    cluster.fault(token)
    assert cluster.counted[:5] == [
        "legacy_tokens", "legacy_manual_token_uses",
        "legacy_tokens", "legacy_auto_token_uses",
        "legacy_tokens",
    ]  # fmt: skip
    assert cluster.counted[5] == "invalid_legacy_auto_token_uses"
    cluster.counted.clear()
    claims = bound_claims(
        ACCOUNT, BoundObjects(), ["api"], cluster.clock.now(), seconds=9999, warn_after=3607
    )
    mounted = sign(KEY, "https://issuer", claims)
    cluster.user(mounted)
    cluster.clock.step(3608)
    cluster.user(mounted)
    assert cluster.counted == ["valid_tokens", "stale_tokens"]


# --- reviews


def test_a_review_answers_for_all_kinds_of_tokens() -> None:
    cluster = Cluster(ACCOUNT)
    reviewer = TokenReviewer(Tokens({"hers": User("jane")}), cluster.tokens, OPTIONS.audiences)
    assert reviewer.review("hers", []) == (User("jane"), [])
    assert reviewer.review("hers", ["too", "other"])[1] == ["too"]
    token = cluster.bound(audiences=["vault"])
    assert reviewer.review(token, ["vault", "api"])[1] == ["vault"]
    for text, message in (
        ("none", "invalid bearer token"),
        (token, '[invalid bearer token, token audiences ["vault"] is invalid'),
    ):
        with pytest.raises(InvalidToken) as caught:
            reviewer.review(text, [])
        assert caught.value.message.startswith(message)


def test_accounts_are_authenticated_users_of_the_server() -> None:
    cluster = Cluster(ACCOUNT)
    access = replace(AccessRules("right"), further=(cluster.tokens,))
    from tests.unit.apiserver.auth.test_access import request

    user = access.user(request(authorization=f"Bearer {cluster.bound()}"))
    assert user is not None
    assert user.groups == (*GROUPS, "system:authenticated")
    with pytest.raises(Unauthorized):
        access.user(request(authorization=f"Bearer {cluster.bound(audiences=['x'])}"))

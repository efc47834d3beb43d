"""The bootstrap signer, after upstream's bootstrapsigner_test.go and jws_test.go."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.api.core_v1 import ConfigMap, Secret
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.controllers.bootstrap.bootstrapsigner import (
    CLUSTER_INFO,
    BootstrapSignerController,
    key_of_cluster_info,
)
from kcm.helpers.bootstrap_tokens import sign_detached
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Plan, Update
from kcm.testing.views import NOW, FakeView
from tests.unit.controllers.bootstrap_tokens import token_secret


def cluster_info(**data: str) -> ConfigMap:
    metadata = ObjectMeta(name="cluster-info", namespace="kube-public", uid="u1")
    return ConfigMap(metadata=metadata, data=data)


def reconcile(*objects: ConfigMap | Secret) -> Plan:
    controller = BootstrapSignerController()
    return controller.reconcile(CLUSTER_INFO, FakeView(*objects, controller=controller))


def read_data(plan: Plan) -> dict[str, str]:
    """Returns the data that a plan writes into cluster-info."""
    (write,) = plan.writes
    assert isinstance(write, Update)
    assert isinstance(write.new, ConfigMap)
    return dict(write.new.data or {})


def test_a_signature_is_that_of_upstreams_library() -> None:
    """The values are those of TestComputeDetachedSig in cluster-bootstrap/token/jws/jws_test.go."""
    signature = sign_detached("Hello from the other side. I must have called a thousand times.",
                              "joshua", "my voice is my passcode")  # fmt: skip
    assert signature == (
        "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"
    )


def test_nothing_is_signed_without_the_config_map_or_its_content() -> None:
    assert reconcile(token_secret()).writes == []
    assert reconcile(cluster_info(), token_secret()).writes == []


def test_each_token_signs_the_content() -> None:
    plan = reconcile(cluster_info(kubeconfig="payload"), token_secret(), token_secret("123456"))
    assert read_data(plan) == {
        "kubeconfig": "payload",
        "jws-kubeconfig-abcdef": sign_detached("payload", "abcdef", "0123456789abcdef"),
        "jws-kubeconfig-123456": sign_detached("payload", "123456", "0123456789abcdef"),
    }


def test_a_signature_that_is_right_is_not_written_again() -> None:
    signature = sign_detached("payload", "abcdef", "0123456789abcdef")
    info = cluster_info(kubeconfig="payload", **{"jws-kubeconfig-abcdef": signature})
    assert reconcile(info, token_secret()).writes == []


def test_the_signature_of_a_token_that_is_gone_is_removed() -> None:
    info = cluster_info(kubeconfig="payload", **{"jws-kubeconfig-abcdef": "old"})
    assert read_data(reconcile(info)) == {"kubeconfig": "payload"}


@pytest.mark.parametrize(
    "fields",
    [
        {"expiration": (NOW - timedelta(seconds=1)).isoformat()},
        {"usage_bootstrap_signing": "false"},
        {"token_secret": ""},
        {"token_id": "other1"},
    ],
)
def test_only_valid_tokens_for_signing_sign(fields: dict[str, str]) -> None:
    secret = token_secret(**{k: v for k, v in fields.items() if k != "token_id"})
    if "token_id" in fields:
        secret = secret.with_metadata(name="bootstrap-token-zzzzzz")
    assert reconcile(cluster_info(kubeconfig="payload"), secret).writes == []


def test_the_config_map_is_looked_at_again_when_a_token_expires() -> None:
    soon = token_secret(expiration=(NOW + timedelta(minutes=1)).isoformat())
    later = token_secret("123456", expiration=(NOW + timedelta(minutes=9)).isoformat())
    assert reconcile(cluster_info(kubeconfig="payload"), soon, later).requeue_after == 60


def test_changes_of_tokens_and_of_the_config_map_touch_the_one_key() -> None:
    view = FakeView()
    token, info = token_secret(), cluster_info()
    for change in (Change(None, token), Change(token, None), Change(None, info)):
        assert list(key_of_cluster_info(change, view)) == [CLUSTER_INFO]
    other = token.replace(type="Opaque")
    assert list(key_of_cluster_info(Change(None, other), view)) == []
    foreign = info.with_metadata(name="other")
    assert list(key_of_cluster_info(Change(None, foreign), view)) == []

"""Which tokens NodeRestriction lets a node request, after upstream's admission_test.go."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ServiceAccount,
)
from kcm.api.storage_v1 import CSIDriver
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.auth.authorizer import AlwaysAllow, AuthorizerDecision, Caller
from kcm.apiserver.auth.node.restriction import (
    WantedToken,
)
from tests.unit.apiserver.auth.node.node_writes import (
    MY_NODE,
    PODS,
    a_pod,
    check,
)


def token_request(pod: Pod | None, uid: str = "pod-uid", *audiences: str) -> WantedToken:
    if pod is None:
        return WantedToken(audiences=audiences)
    return WantedToken("v1", "Pod", pod.name, uid, audiences)


ACCOUNT = ServiceAccount(metadata=ObjectMeta(name="mysa", namespace="ns"))


def ask_token(body: WantedToken, *there: KubeObject, caller: Caller | None = None) -> str:
    return check("CREATE", ACCOUNT, subresource="token", token=body, there=there, caller=caller)


def projecting(audience: str) -> Pod:
    source = {"serviceAccountToken": {"path": "token", "audience": audience}}
    volume = {"name": "token", "projected": {"sources": [source]}}
    return a_pod("projecting", "mynode", volumes=[volume])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (token_request(None), "node requested token not bound to a pod"),
        (token_request(a_pod("nopod", None)), 'pods "nopod" not found'),
        (
            token_request(PODS["normal pod bound to self"], ""),
            "node requested token with a pod binding without a uid",
        ),
        (
            token_request(PODS["normal pod bound to self"], "other"),
            "the UID in the bound object reference (other) does not match the UID in record",
        ),
        (
            token_request(PODS["normal pod bound to another"]),
            "node requested token bound to a pod scheduled on a different node",
        ),
    ],
    ids=["unbound", "nonexistant pod", "without uid", "wrong uid", "another node"],
)
def test_forbid_create_of_token(body: WantedToken, why: str) -> None:
    assert why in ask_token(body)


def test_allow_create_of_token_when_audience_in_psat_volume() -> None:
    own, foo = projecting(""), projecting("foo")
    assert not ask_token(token_request(own), own)
    assert not ask_token(token_request(foo, "pod-uid", "foo"), foo)


def test_forbid_create_of_token_with_multiple_audiences() -> None:
    pod = projecting("foo")
    body = token_request(pod, "pod-uid", "foo", "bar")
    assert "node may only request 0 or 1 audiences" in ask_token(body, pod)


class _Asks(AlwaysAllow):
    """Allows everything, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        self.asked.append(asked)
        return super().authorize(user, asked)


def test_an_audience_that_is_not_in_the_pod_needs_a_right() -> None:
    body = token_request(PODS["normal pod bound to self"], "pod-uid", "foo")
    assert ask_token(body) == (
        'serviceaccounts "mysa" is forbidden: audience "foo" not found in pod spec volume, '
        "system:node:mynode is not authorized to request tokens for this audience"
    )
    asks = _Asks()
    assert not ask_token(body, caller=Caller(MY_NODE, asks))
    verb = "request-serviceaccounts-token-audience"
    assert asks.asked == [Attributes(verb, "", "v1", "foo", namespace="ns", name="mysa")]


def test_audiences_of_csi_drivers_count_inline_and_behind_claims() -> None:
    driver = CSIDriver.model_validate(
        {"metadata": {"name": "d"}, "spec": {"tokenRequests": [{"audience": "foo"}]}}
    )
    claim = PersistentVolumeClaim.model_validate(
        {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"volumeName": "pv"}}
    )
    volume = PersistentVolume.model_validate(
        {"metadata": {"name": "pv"}, "spec": {"csi": {"driver": "d", "volumeHandle": "h"}}}
    )
    inline = a_pod("inline", "mynode", volumes=[{"name": "v", "csi": {"driver": "d"}}])
    claimed = a_pod(
        "claimed", "mynode", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    )
    for pod in (inline, claimed):
        body = token_request(pod, "pod-uid", "foo")
        assert not ask_token(body, pod, driver, claim, volume)
        assert "not found in pod spec volume" in ask_token(body, pod, claim, volume)

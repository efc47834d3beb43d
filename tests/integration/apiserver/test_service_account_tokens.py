"""Tokens of service accounts: requested, used and reviewed, by clients and by kubectl."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import jwt
import pytest

from kcm.api.core_v1 import Secret, ServiceAccount
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apiserver.auth.token_tracking import LAST_USED, NAME
from kcm.helpers.serviceaccount.claims import legacy_claims
from kcm.helpers.serviceaccount.tokens import read_signing_key, sign
from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live

ISSUER = "https://kubernetes.default.svc.cluster.local"


@pytest.fixture
def namespace(api: Live, request: pytest.FixtureRequest) -> str:
    """Returns a namespace with the account `robot`."""
    name = f"tokens-{abs(hash(request.node.nodeid)) % 10**8}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    api.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "robot"}})
    return name


def ask(api: Live, namespace: str, spec: dict[str, Any], **metadata: str) -> httpx.Response:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/robot/token"
    return api.request("POST", path, {"metadata": metadata, "spec": spec})


def pod(api: Live, namespace: str, name: str = "p", account: str = "robot") -> Any:
    spec = {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]}
    path = f"/api/v1/namespaces/{namespace}/pods"
    return api.create(path, {"metadata": {"name": name}, "spec": spec})


def whoami(api: Live, token: str) -> httpx.Response:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with api.as_user(token) as client:
        return client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json=body)


def wait_until_refused(api: Live, token: str) -> None:
    until(lambda: whoami(api, token).status_code == 401, "the token's end")


def test_a_token_is_issued_and_is_the_account(api: Live, namespace: str) -> None:
    answer = ask(api, namespace, {"expirationSeconds": 700})
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert (found["kind"], found["metadata"]["name"]) == ("TokenRequest", "robot")
    assert found["spec"] == {"audiences": [ISSUER], "expirationSeconds": 700}
    claims = jwt.decode(found["status"]["token"], options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 700
    me = whoami(api, found["status"]["token"]).json()["status"]["userInfo"]
    assert me["username"] == f"system:serviceaccount:{namespace}:robot"
    assert me["uid"] == found["metadata"]["uid"]
    assert me["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    ]
    assert me["extra"] == {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}


def test_a_token_has_the_rights_of_its_account(api: Live, namespace: str) -> None:
    token = ask(api, namespace, {}).json()["status"]["token"]
    until(lambda: whoami(api, token).status_code == 201, "the account in the server's cache")
    path = f"/api/v1/namespaces/{namespace}/pods"
    with api.as_user(token) as client:
        assert client.get(path).status_code == 403
        binding = {
            "metadata": {"name": "robot"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}],
        }  # fmt: skip
        where = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        api.create(where, binding)
        until(lambda: client.get(path).status_code == 200, "the binding")


def test_a_dry_run_gives_a_token_as_upstream_does(api: Live, namespace: str) -> None:
    """TokenREST.Create of upstream looks at no options: the right to ask is the right to have."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/robot/token"
    asked = api.create(path, {"spec": {}}, dryRun="All")
    until(
        lambda: whoami(api, asked["status"]["token"]).status_code == 201,
        "the account in the server's cache",
    )


def test_the_token_of_a_pod_ends_with_the_pod(api: Live, namespace: str) -> None:
    uid = pod(api, namespace)["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}
    token = ask(api, namespace, {"boundObjectRef": reference}).json()["status"]["token"]
    until(lambda: whoami(api, token).status_code == 201, "the pod in the server's cache")
    extra = whoami(api, token).json()["status"]["userInfo"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [uid]
    api.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/p")
    wait_until_refused(api, token)


def test_a_token_ends_with_its_account(api: Live, namespace: str) -> None:
    token = ask(api, namespace, {}).json()["status"]["token"]
    until(lambda: whoami(api, token).status_code == 201, "the account in the server's cache")
    api.request("DELETE", f"/api/v1/namespaces/{namespace}/serviceaccounts/robot")
    wait_until_refused(api, token)


def test_a_token_that_admission_would_mount_is_valid_for_a_year(api: Live, namespace: str) -> None:
    pod(api, namespace)
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    spec = {"expirationSeconds": 3607, "boundObjectRef": reference}
    token = ask(api, namespace, spec).json()["status"]["token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607
    plain = ask(api, namespace, {"expirationSeconds": 3607}).json()["status"]["token"]
    claims = jwt.decode(plain, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 3607


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        (
            {"expirationSeconds": 599},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 599: may not specify a duration less than 10 minutes",
        ),
        (
            {"expirationSeconds": 2**32 + 1},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (
            {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "other"}},
            400,
            'cannot bind token for serviceaccount "robot" to pod running with different '
            "serviceaccount name.",
        ),
        (
            {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none"}},
            404,
            'pods "none" not found',
        ),
        (
            {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
        (
            {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": "x"}},
            409,
            'Operation cannot be fulfilled on Pod "mine": the UID in the bound object reference '
            "(x) does not match the UID in record. The object might have been deleted and then "
            "recreated",
        ),
    ],
)
def test_a_request_that_cannot_be_met_says_why(
    spec: dict[str, Any], code: int, message: str, api: Live, namespace: str
) -> None:
    pod(api, namespace, "other", "default")
    pod(api, namespace, "mine")
    answer = ask(api, namespace, spec)
    assert (answer.status_code, answer.json()["message"]) == (code, message)


def test_the_name_in_a_request_must_be_the_accounts(api: Live, namespace: str) -> None:
    answer = ask(api, namespace, {}, name="other")
    assert answer.status_code == 422
    assert answer.json()["message"].endswith(
        'metadata.name: Invalid value: "other": must match the service account name if specified'
    )


def test_reviews_know_the_audiences_of_tokens(api: Live, namespace: str) -> None:
    token = ask(api, namespace, {"audiences": ["vault"]}).json()["status"]["token"]
    assert whoami(api, token).status_code == 401

    def review(*audiences: str) -> Any:
        spec = {"token": token, "audiences": list(audiences)}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        return api.create(path, {"spec": spec})["status"]

    until(lambda: review("vault").get("authenticated"), "the account in the server's cache")
    found = review("vault", "other")
    assert found["audiences"] == ["vault"]
    assert found["user"]["username"] == f"system:serviceaccount:{namespace}:robot"
    assert review("other")["error"] == (
        '[invalid bearer token, token audiences ["vault"] is invalid for the target audiences '
        '["other"]]'
    )


def test_others_find_the_issuers_keys(api: Live, namespace: str) -> None:
    token = ask(api, namespace, {}).json()["status"]["token"]
    with api.as_user(token) as client:
        until(lambda: client.get("/openid/v1/jwks").status_code == 200, "the account's rights")
        found = client.get("/.well-known/openid-configuration")
        keys = client.get(found.json()["jwks_uri"])
    assert found.json()["issuer"] == ISSUER
    assert keys.headers["content-type"] == "application/jwk-set+json"
    assert keys.headers.get_list("cache-control") == ["public, max-age=3600"]
    key = jwt.PyJWKSet.from_dict(keys.json())[jwt.get_unverified_header(token)["kid"]]
    assert jwt.decode(token, key, ["ES256"], audience=ISSUER)["iss"] == ISSUER
    with api.as_user("janes-token") as jane:
        assert jane.get("/openid/v1/jwks").status_code == 403


def test_the_use_of_a_secrets_token_is_recorded(api: Live, namespace: str) -> None:
    account = api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/robot")["metadata"]
    meta = ObjectMeta(name="robot", namespace=namespace, uid=account["uid"])
    secret = Secret(metadata=ObjectMeta(name="robots", namespace=namespace))
    key = read_signing_key(api.settings.state_dir / "sa.key", "")
    claims = legacy_claims(ServiceAccount(metadata=meta), secret)
    token = sign(key, "kubernetes/serviceaccount", claims)
    body = {
        "metadata": {
            "name": "robots",
            "annotations": {"kubernetes.io/service-account.name": "robot"},
        },
        "type": "kubernetes.io/service-account-token",
        "data": {"token": base64.b64encode(token.encode()).decode()},
    }
    path = f"/api/v1/namespaces/{namespace}/secrets"
    api.create(path, body)
    until(lambda: whoami(api, token).status_code == 201, "the token in the server's cache")
    assert whoami(api, token).json()["status"]["userInfo"].get("extra") is None
    until(lambda: LAST_USED in api.get(f"{path}/robots")["metadata"].get("labels", {}), "the label")
    assert api.get(f"/api/v1/namespaces/kube-system/configmaps/{NAME}")["data"]["since"]
    api.request("DELETE", f"{path}/robots")
    wait_until_refused(api, token)


def test_kubectl_creates_tokens(api: Live, kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration", "20m").strip()
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 1200
    until(lambda: whoami(api, token).status_code == 201, "the account in the server's cache")
    kubectl("create", "secret", "generic", "s")
    bound = kubectl("create", "token", "robot", "--bound-object-kind", "Secret",
                    "--bound-object-name", "s", "--audience", "vault", "-o", "json")  # fmt: skip
    assert json.loads(bound)["spec"]["boundObjectRef"]["name"] == "s"
    assert "less than 10 minutes" in kubectl.run_failing(
        "create", "token", "robot", "--duration", "1m"
    )
    assert 'serviceaccounts "none" not found' in kubectl.run_failing("create", "token", "none")

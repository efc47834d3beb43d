"""CertificateSigningRequests over HTTP: who asked, who approves, who signs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from kcm.apimachinery.certificates import parse_request
from kcm.helpers.authority import load_authority
from tests.integration.apiserver.serving import Live
from tests.signing_requests import (
    build_pem_authority,
    build_pem_request,
    encode,
    write_authority,
)

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
SIGNER = "kubernetes.io/kube-apiserver-client"
MERGE = {"content-type": "application/merge-patch+json"}

As = Callable[..., httpx.Client]


@pytest.fixture
def as_user(api: Live) -> Iterator[As]:
    """Yields a function that returns clients by their tokens."""
    with ExitStack() as stack:
        yield lambda token, **headers: stack.enter_context(api.as_user(token, **headers))


def body(name: str, pem: bytes | None = None, **spec: Any) -> dict[str, Any]:
    pem = build_pem_request() if pem is None else pem
    fields = {"request": encode(pem), "signerName": SIGNER, "usages": ["client auth"], **spec}
    return {"metadata": {"name": name}, "spec": fields}


def condition(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": "Test", **fields}


def approve(client: Any, name: str, *conditions: dict[str, Any]) -> httpx.Response:
    """Sends conditions to the approval subresource, as kubectl does."""
    obj = client.get(f"{REQUESTS}/{name}").json()
    obj["status"] = {"conditions": list(conditions)}
    response: httpx.Response = client.put(f"{REQUESTS}/{name}/approval", json=obj)
    return response


def grant(api: Live, user: str, *rules: dict[str, Any]) -> None:
    """Grants a user rights in the whole cluster."""
    role = {"metadata": {"name": user}, "rules": list(rules)}
    api.create(ROLES, role)
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "ClusterRole", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": user}, "subjects": [subject], "roleRef": reference}
    api.create(BINDINGS, binding)
    api.get(ROLES)
    api.get(BINDINGS)


def test_the_server_says_who_asked_whatever_the_request_says(api: Live) -> None:
    forged = body("forged", username="root", groups=["system:masters"], uid="0")
    forged["status"] = {"conditions": [condition("Approved")]}
    made = api.create(REQUESTS, forged)
    assert made["spec"]["username"] == "kubernetes-admin"
    assert made["spec"]["groups"] == ["system:masters", "system:authenticated"]
    assert "uid" not in made["spec"]
    assert made["status"] == {}


def test_a_request_is_immutable_apart_from_its_metadata(api: Live) -> None:
    api.create(REQUESTS, body("fixed"))
    change = {"metadata": {"labels": {"a": "b"}}, "spec": {"signerName": "example.com/other"}}
    patched = api.client.patch(f"{REQUESTS}/fixed", json=change, headers=MERGE).json()
    assert patched["metadata"]["labels"] == {"a": "b"}
    assert patched["spec"]["signerName"] == SIGNER


def test_an_approval_sets_conditions_with_their_times_and_stays(api: Live) -> None:
    api.create(REQUESTS, body("decided"))
    assert approve(api.client, "decided", condition("Approved")).status_code == 200
    stored = api.get(f"{REQUESTS}/decided")["status"]["conditions"][0]
    assert stored["type"] == "Approved"
    assert stored["lastUpdateTime"] == stored["lastTransitionTime"] != ""
    taken_back = approve(api.client, "decided").json()
    assert 'updates may not remove a condition of type "Approved"' in taken_back["message"]
    both = approve(api.client, "decided", stored, condition("Denied")).json()
    assert "Approved and Denied conditions are mutually exclusive" in both["message"]
    falsified = approve(api.client, "decided", {**stored, "status": "False"}).json()
    assert 'Unsupported value: "False": supported values: "True"' in falsified["message"]


def test_a_patch_of_the_approval_changes_conditions_and_metadata_only(api: Live) -> None:
    api.create(REQUESTS, body("patched"))
    change = {
        "metadata": {"annotations": {"patched": "yes"}},
        "spec": {"signerName": "example.com/other"},
        "status": {"conditions": [condition("Denied")], "certificate": "QQ=="},
    }
    response = api.client.patch(f"{REQUESTS}/patched/approval", json=change, headers=MERGE)
    assert response.status_code == 200, response.text
    stored = api.get(f"{REQUESTS}/patched")
    assert [c["type"] for c in stored["status"]["conditions"]] == ["Denied"]
    assert stored["metadata"]["annotations"] == {"patched": "yes"}
    assert stored["spec"]["signerName"] == SIGNER
    assert "certificate" not in stored["status"]


def test_approving_and_signing_need_the_signer(api: Live, as_user: As) -> None:
    grant(
        api,
        "jane",
        {
            "verbs": ["get", "create", "update"],
            "apiGroups": ["certificates.k8s.io"],
            "resources": [
                "certificatesigningrequests",
                "certificatesigningrequests/approval",
                "certificatesigningrequests/status",
            ],
        },
    )
    jane = as_user("janes-token")
    api.create(REQUESTS, body("guarded"))
    refused = approve(jane, "guarded", condition("Approved"))
    assert refused.status_code == 403
    assert refused.json()["message"] == (
        'certificatesigningrequests.certificates.k8s.io "guarded" is forbidden: user not permitted '
        f'to approve requests with signerName "{SIGNER}"'
    )
    obj = api.get(f"{REQUESTS}/guarded")
    obj["status"] = {"conditions": [condition("Failed")]}
    refused = jane.put(f"{REQUESTS}/guarded/status", json=obj)
    assert refused.status_code == 403
    assert "user not permitted to sign requests with signerName" in refused.json()["message"]
    grant(
        api,
        "jane-2",
        {
            "verbs": ["approve"],
            "apiGroups": ["certificates.k8s.io"],
            "resources": ["signers"],
            "resourceNames": ["kubernetes.io/*"],
        },
    )
    subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    patch = {"subjects": [subject]}
    assert api.client.patch(f"{BINDINGS}/jane-2", json=patch, headers=MERGE).status_code == 200
    api.get(BINDINGS)
    assert approve(jane, "guarded", condition("Approved")).status_code == 200


def test_a_certificate_is_set_once_and_must_be_one(api: Live, tmp_path: Path) -> None:
    pem = build_pem_request()
    api.create(REQUESTS, body("signed", pem))
    now = datetime.now(UTC)
    authority = load_authority(*map(str, write_authority(tmp_path, now)))
    issued = authority.sign(parse_request(encode(pem)), ["client auth"], timedelta(hours=1), now)

    def set_certificate(text: bytes) -> httpx.Response:
        obj = api.get(f"{REQUESTS}/signed")
        obj["status"]["certificate"] = base64.b64encode(text).decode()
        return api.client.put(f"{REQUESTS}/signed/status", json=obj)

    rubbish = set_certificate(b"hello").json()["message"]
    assert "must contain at least one CERTIFICATE PEM block" in rubbish
    other = set_certificate(pem).json()["message"]
    assert 'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"' in other
    assert set_certificate(issued).status_code == 200
    assert (
        "updates may not modify existing certificate content"
        in set_certificate(issued + issued).json()["message"]
    )


def test_a_status_update_does_not_approve(api: Live) -> None:
    api.create(REQUESTS, body("sneaky"))
    obj = api.get(f"{REQUESTS}/sneaky")
    obj["status"] = {"conditions": [condition("Approved")]}
    refused = api.client.put(f"{REQUESTS}/sneaky/status", json=obj)
    assert refused.status_code == 422
    assert 'updates may not add a condition of type "Approved"' in refused.json()["message"]


def test_nobody_asks_for_a_certificate_of_the_masters(api: Live) -> None:
    pem = build_pem_request("root", ["system:masters"])
    refused = api.client.post(REQUESTS, json=body("masters", pem))
    assert refused.status_code == 403
    assert "signer with system:masters group is not allowed" in refused.json()["message"]
    assert (
        api.client.post(
            REQUESTS, json=body("elsewhere", pem, signerName="example.com/signer")
        ).status_code
        == 201
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"request": encode(b"hello")}, "PEM block type must be CERTIFICATE REQUEST"),
        ({"request": "%%%"}, "illegal base64 data"),
        ({"usages": []}, "spec.usages: Required value"),
        ({"usages": ["nonsense"]}, 'spec.usages[0]: Unsupported value: "nonsense"'),
        ({"usages": ["any", "any"]}, 'spec.usages[1]: Duplicate value: "any"'),
        ({"signerName": ""}, "spec.signerName: Required value"),
        ({"signerName": "nodomain"}, "must be a fully qualified domain and path of the form"),
        ({"signerName": "a/b"}, "should be a domain with at least two segments"),
        ({"signerName": "example.com/a/b"}, "must be a fully qualified domain and path"),
        (
            {"signerName": "kubernetes.io/legacy-unknown"},
            "the legacy signerName is not allowed via this API version",
        ),
        ({"expirationSeconds": 599}, "may not specify a duration less than 600 seconds"),
    ],
)
def test_a_wrong_request_is_refused_with_upstreams_words(
    api: Live, changes: dict[str, Any], message: str
) -> None:
    refused = api.client.post(REQUESTS, json=body("wrong", **changes))
    assert refused.status_code == 422
    assert message in refused.json()["message"]


def test_a_request_whose_signature_is_forged_is_refused(api: Live) -> None:
    head, *lines, end, _ = build_pem_request("alice").split(b"\n")
    der = bytearray(base64.b64decode(b"".join(lines)))
    der[-1] ^= 1  # the last byte of the signature
    forged = b"\n".join([head, base64.b64encode(bytes(der)), end, b""])
    refused = api.client.post(REQUESTS, json=body("forgery", forged))
    assert refused.status_code == 422
    assert "spec.request: Invalid value" in refused.json()["message"]


def test_a_bundle_of_a_signer_needs_the_right_to_attest(api: Live, as_user: As) -> None:
    path = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles"
    writer = {"apiGroups": ["certificates.k8s.io"], "resources": ["clustertrustbundles"]}
    grant(api, "bob", writer | {"verbs": ["create", "update", "get"]})
    text = build_pem_authority()[0].decode()
    own = {"metadata": {"name": "own"}, "spec": {"trustBundle": text}}
    signers = {
        "metadata": {"name": "example.com:a:b"},
        "spec": {"trustBundle": text, "signerName": "example.com/a"},
    }
    bob = as_user("bobs-token")
    assert bob.post(path, json=own).status_code == 201
    refused = bob.post(path, json=signers)
    assert refused.status_code == 403
    assert 'not permitted to attest for signerName "example.com/a"' in refused.json()["message"]
    made = api.create(path, signers)
    made["spec"]["trustBundle"] += build_pem_authority()[0].decode()
    assert bob.put(f"{path}/example.com:a:b", json=made).status_code == 403
    chosen = api.get(path, fieldSelector="spec.signerName=example.com/a")["items"]
    assert [item["metadata"]["name"] for item in chosen] == ["example.com:a:b"]

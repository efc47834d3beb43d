"""After TestTokenCreation of pkg/controller/serviceaccount/tokens_controller_test.go."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import jwt
import pytest

from kcm import errors
from kcm.api.core_v1 import ObjectReference, Secret, ServiceAccount
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.controllers.serviceaccounts.serviceaccounttoken import (
    SecretKey,
    ServiceAccountTokenController,
    ServiceAccountTokenOptions,
    key_of_token,
    tokens_of_lost_account,
)
from kcm.helpers.serviceaccount.tokens import ensure_key_file
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Delete, Patch, Plan, Update
from kcm.store import DeleteOptions
from kcm.store.writes.guards import Absent
from kcm.testing.views import FakeView

CA = "-----BEGIN CERTIFICATE-----\nCA Data\n-----END CERTIFICATE-----\n"
ANNOTATIONS = {
    "kubernetes.io/service-account.name": "default",
    "kubernetes.io/service-account.uid": "12345",
}


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FULL = {"token": encode("ABC"), "ca.crt": encode(CA), "namespace": encode("default")}


@pytest.fixture
def controller(tmp_path: Path) -> ServiceAccountTokenController:
    key, bundle = tmp_path / "sa.key", tmp_path / "ca.crt"
    ensure_key_file(key)
    bundle.write_text(CA)
    options = ServiceAccountTokenOptions(
        service_account_private_key_file=str(key), root_ca_file=str(bundle)
    )
    return ServiceAccountTokenController(options)


def account(*secrets: str, uid: str = "12345") -> ServiceAccount:
    references = [ObjectReference(name=name) for name in secrets]
    metadata = ObjectMeta(name="default", namespace="default", uid=uid, resource_version="1")
    return ServiceAccount(metadata=metadata, secrets=references or None)


def token_secret(
    data: dict[str, str] | None = None, *, type: str = "kubernetes.io/service-account-token",
    annotations: dict[str, str] = ANNOTATIONS, uid: str = "23456",
) -> Secret:  # fmt: skip
    metadata = ObjectMeta(
        name="token-secret-1", namespace="default", uid=uid, resource_version="1",
        annotations=annotations,
    )  # fmt: skip
    return Secret(metadata=metadata, type=type, data=FULL if data is None else data)


def plan_of(
    controller: ServiceAccountTokenController, secret: Secret, *objects: KubeObject
) -> Plan:
    return controller.reconcile(
        str(SecretKey.of(secret)), FakeView(*objects, controller=controller)
    )


def updated(plan: Plan) -> dict[str, str]:
    (write,) = plan.writes
    assert isinstance(write, Update)
    assert isinstance(write.new, Secret)
    return dict(write.new.data or {})


def test_a_secret_without_its_account_is_deleted(controller: ServiceAccountTokenController) -> None:
    secret = token_secret()
    assert plan_of(controller, secret, secret).writes == [
        Delete(secret, DeleteOptions(uid="23456"), (Absent("serviceaccounts", "default/default"),))
    ]


def test_a_secret_of_an_earlier_account_is_deleted(
    controller: ServiceAccountTokenController,
) -> None:
    secret = token_secret()
    assert plan_of(controller, secret, secret, account(uid="new")).writes == [
        Delete(secret, DeleteOptions(uid="23456"))
    ]


def test_a_full_secret_stays(controller: ServiceAccountTokenController) -> None:
    secret = token_secret()
    assert plan_of(controller, secret, secret, account("token-secret-1")).writes == []


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"ca.crt": None}, FULL),
        ({"ca.crt": encode("mismatched")}, FULL),
        ({"namespace": None}, FULL),
        ({"namespace": encode("custom"), "ca.crt": None}, FULL | {"namespace": encode("custom")}),
    ],
)
def test_what_a_secret_lacks_is_filled_in(
    changed: dict[str, Any], wanted: dict[str, str], controller: ServiceAccountTokenController
) -> None:
    data = {name: value for name, value in (FULL | changed).items() if value is not None}
    secret = token_secret(data)
    assert updated(plan_of(controller, secret, secret, account())) == wanted


def test_a_secret_with_a_namespace_of_its_own_stays(
    controller: ServiceAccountTokenController,
) -> None:
    secret = token_secret(FULL | {"namespace": encode("custom")})
    assert plan_of(controller, secret, secret, account()).writes == []


def test_a_secret_without_token_gets_one(controller: ServiceAccountTokenController) -> None:
    secret = token_secret({}, annotations={"kubernetes.io/service-account.name": "default"})
    plan = plan_of(controller, secret, secret, account())
    data = updated(plan)
    token = base64.b64decode(data.pop("token")).decode()
    assert data == {"ca.crt": FULL["ca.crt"], "namespace": FULL["namespace"]}
    assert jwt.decode(token, options={"verify_signature": False}) == {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:default:default",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "token-secret-1",
        "kubernetes.io/serviceaccount/service-account.name": "default",
        "kubernetes.io/serviceaccount/service-account.uid": "12345",
    }
    (write,) = plan.writes
    assert isinstance(write, Update)
    assert write.new.annotations == ANNOTATIONS


def test_a_deleted_secret_is_no_longer_referred_to(
    controller: ServiceAccountTokenController,
) -> None:
    owner = account("token-secret-1", "other")
    (write,) = plan_of(controller, token_secret(), owner).writes
    assert isinstance(write, Patch)
    changed = write.change(owner)
    assert isinstance(changed, ServiceAccount)
    assert [reference.name for reference in changed.secrets or ()] == ["other"]
    assert write.change(account("token-secret-1", uid="new")) == account(
        "token-secret-1", uid="new"
    )


@pytest.mark.parametrize(
    "objects",
    [
        (),  # no account either
        (account(),),  # no reference
        (account("token-secret-1", uid="new"),),  # another account
        (account("token-secret-1"), token_secret(uid="new")),  # another Secret of the name
    ],
)
def test_references_that_are_right_stay(
    objects: tuple[KubeObject, ...], controller: ServiceAccountTokenController
) -> None:
    assert plan_of(controller, token_secret(), *objects).writes == []


def test_a_secret_that_changed_its_account_waits_for_its_own_key(
    controller: ServiceAccountTokenController,
) -> None:
    before = token_secret({})
    after = token_secret({}, annotations={"kubernetes.io/service-account.name": "other"})
    assert plan_of(controller, before, after, account()).writes == []


@pytest.mark.parametrize("key", ["", "a/b", "default/token-secret-1/23456//"])
def test_a_key_that_names_no_account_does_nothing(
    key: str, controller: ServiceAccountTokenController
) -> None:
    view = FakeView(token_secret(), controller=controller)
    assert controller.reconcile(key, view).writes == []


def test_a_key_survives_names_of_strangers() -> None:
    odd = {"kubernetes.io/service-account.name": "a/b c", "kubernetes.io/service-account.uid": "/"}
    key = SecretKey.of(token_secret(annotations=odd))
    assert SecretKey.parse(str(key)) == key


def test_only_secrets_for_tokens_have_keys() -> None:
    view = FakeView()
    assert list(key_of_token(Change(None, token_secret(type="Opaque")), view)) == []
    assert list(key_of_token(Change(token_secret(), None), view)) == [
        "default/token-secret-1/23456/default/12345"
    ]


def test_the_secrets_of_a_lost_account_are_looked_at() -> None:
    opaque = token_secret(type="Opaque").with_metadata(name="plain")
    view = FakeView(token_secret(), opaque)
    keys = ["default/token-secret-1/23456/default/12345"]
    assert list(tokens_of_lost_account(Change(account(), None), view)) == keys
    assert list(tokens_of_lost_account(Change(account(), account(uid="new")), view)) == keys
    assert list(tokens_of_lost_account(Change(account(), account("s")), view)) == []
    assert list(tokens_of_lost_account(Change(None, account()), view)) == []


def test_without_a_key_it_does_not_run(controller: ServiceAccountTokenController) -> None:
    assert controller.missing_option() == ""
    bare = ServiceAccountTokenController()
    assert bare.missing_option() == "--service-account-private-key-file is not set"


def test_a_key_file_that_cannot_be_read_is_reported_at_once(tmp_path: Path) -> None:
    options = ServiceAccountTokenOptions(service_account_private_key_file=str(tmp_path / "none"))
    with pytest.raises(errors.ConfigurationError, match="--service-account-private-key-file"):
        ServiceAccountTokenController(options)

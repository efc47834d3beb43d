"""The token cleaner, after TestCleanerNoExpiration to TestCleanerExpiredAt of upstream's
tokencleaner_test.go.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.controllers.bootstrap.bootstrapsigner import BootstrapSignerController
from kcm.controllers.bootstrap.tokencleaner import TokenCleanerController, key_of_token
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Delete, Plan
from kcm.testing.views import NOW, FakeView
from tests.unit.controllers.bootstrap_tokens import token_secret


def reconcile(**fields: str) -> Plan:
    secret = token_secret(**fields)
    controller = TokenCleanerController()
    return controller.reconcile(secret.key, FakeView(secret, controller=controller))


def test_a_token_without_an_end_stays() -> None:
    assert reconcile() == Plan()


@pytest.mark.parametrize(
    "expiration", [(NOW - timedelta(hours=1)).isoformat(), NOW.isoformat(), "tomorrow"]
)
def test_a_token_that_has_expired_is_deleted(expiration: str) -> None:
    plan = reconcile(expiration=expiration)
    (write,) = plan.writes
    assert isinstance(write, Delete)
    assert write.options.uid == write.old.uid


def test_a_token_is_deleted_when_it_expires() -> None:
    plan = reconcile(expiration=(NOW + timedelta(hours=1)).isoformat())
    assert plan.writes == []
    assert plan.requeue_after == 3600


def test_other_secrets_are_left_alone() -> None:
    expired = (NOW - timedelta(hours=1)).isoformat()
    elsewhere = token_secret(expiration=expired).with_metadata(namespace="default")
    other = token_secret(expiration=expired).replace(type="Opaque")
    for secret in (elsewhere, other):
        assert list(key_of_token(Change(None, secret), FakeView())) == []
    token = token_secret()
    assert list(key_of_token(Change(None, token), FakeView())) == [token.key]
    assert list(key_of_token(Change(token, None), FakeView())) == []


def test_a_token_that_is_gone_or_being_deleted_is_left_alone() -> None:
    expired = token_secret(expiration=(NOW - timedelta(hours=1)).isoformat())
    controller = TokenCleanerController()
    going = expired.with_metadata(deletion_timestamp=NOW)
    for view in (FakeView(controller=controller), FakeView(going, controller=controller)):
        assert controller.reconcile(expired.key, view) == Plan()


def test_it_runs_only_where_it_is_asked_for() -> None:
    assert TokenCleanerController.disabled_by_default
    assert BootstrapSignerController.disabled_by_default

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Namespace, ServiceAccount
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.controllers.serviceaccounts.serviceaccount import (
    ServiceAccountController,
    namespace_of_lost_account,
)
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Create
from kcm.testing.builders import namespace
from kcm.testing.views import NOW, FakeView


def account(name: str = "default") -> ServiceAccount:
    return ServiceAccount(metadata=ObjectMeta(name=name, namespace="team"))


@pytest.mark.parametrize(
    ("objects", "exists"),
    [
        pytest.param([namespace("team")], True, id="a new namespace"),
        pytest.param([namespace("team"), account("robot")], True, id="another account"),
        pytest.param([namespace("team"), account()], False, id="it is there"),
        pytest.param([], False, id="no namespace"),
        pytest.param(
            [namespace("team", metadata={"deletion_timestamp": NOW})], False, id="terminating"
        ),
    ],
)
def test_a_namespace_has_its_default_account(
    objects: list[Namespace | ServiceAccount], exists: bool
) -> None:
    controller = ServiceAccountController()
    plan = controller.reconcile("team", FakeView(*objects, controller=controller))
    assert [write.obj.key for write in plan.writes if isinstance(write, Create)] == (
        ["team/default"] if exists else []
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(account(), None), ["team"]),
        (Change(account("robot"), None), []),
        (Change(None, account()), []),
    ],
)
def test_the_loss_of_the_default_account_wakes_its_namespace(
    change: Change, expected: list[str]
) -> None:
    assert list(namespace_of_lost_account(change, FakeView())) == expected

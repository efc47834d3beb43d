"""The table of controllers, against those of Kubernetes 1.36 (`controller_names.txt`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm.apiserver.auth.controller_policy import controller_roles
from kcm.apiserver.auth.namespace_policy import namespace_roles
from kcm.options.names import KNOWN, find_account
from kcm.reconcile.contract import Controller
from kcm.registry import controller_types


def test_every_controller_of_kubernetes_is_in_the_table_and_no_others_but_those_of_clouds() -> None:
    upstream = Path(__file__).with_name("controller_names.txt").read_text("utf-8").split()
    assert {known.name for known in KNOWN if not known.cloud} == set(upstream)


@pytest.mark.parametrize(
    "controller", [c for c in controller_types() if find_account(c.name)], ids=lambda c: c.name
)
def test_the_account_of_a_controller_has_one_of_the_bootstrap_roles(
    controller: type[Controller],
) -> None:
    roles = {role.name for role in (*controller_roles(), *namespace_roles())}
    assert f"system:controller:{find_account(controller.name)}" in roles

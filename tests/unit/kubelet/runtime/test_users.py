"""The user and groups that a container runs as."""

from __future__ import annotations

from kcm.kubelet.cri import ContainerConfig
from kcm.kubelet.runtime.process.users import Identity, identity_of

NO_ACCOUNT = 612_001


def test_who_asks_for_nothing_is_the_kubelets_own() -> None:
    assert identity_of(ContainerConfig("main")).own
    asked = ContainerConfig("main", run_as_user=NO_ACCOUNT, supplemental_groups=[7])
    assert identity_of(asked) == Identity(NO_ACCOUNT, NO_ACCOUNT, (7,))

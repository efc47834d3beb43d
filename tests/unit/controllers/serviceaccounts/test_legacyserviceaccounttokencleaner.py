"""After TestLegacyServiceAccountTokenCleanUp of
pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner_test.go.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kcm.api.core_v1 import (
    ConfigMap,
    ObjectReference,
    Pod,
    PodSpec,
    Secret,
    ServiceAccount,
    Volume,
)
from kcm.api.core_v1.volume_sources import SecretVolumeSource
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.controllers.serviceaccounts.legacyserviceaccounttokencleaner import (
    INVALID_SINCE,
    LAST_USED,
    LegacyServiceAccountTokenCleaner,
)
from kcm.helpers.pod_references import secret_names
from kcm.reconcile.plan import Delete, PassPlan, Patch
from kcm.store import DeleteOptions
from kcm.testing.builders import pod
from kcm.testing.views import FakeView

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
YEAR = timedelta(days=365)
LONG_AGO, LATELY = "2025-05-31", "2025-06-01"


def tracking(since: str = "2025-05-01") -> ConfigMap:
    name = "kube-apiserver-legacy-service-account-token-tracking"
    metadata = ObjectMeta(name=name, namespace="kube-system")
    return ConfigMap(metadata=metadata, data={"since": since})


def account(*secrets: str) -> ServiceAccount:
    metadata = ObjectMeta(name="default", namespace="ns", uid="12345")
    return ServiceAccount(
        metadata=metadata, secrets=[ObjectReference(name=name) for name in secrets]
    )


def token(
    labels: dict[str, str] | None = None,
    created: datetime = NOW - YEAR - timedelta(days=1),
    type: str = "kubernetes.io/service-account-token",
) -> Secret:
    metadata = ObjectMeta(
        name="s", namespace="ns", uid="uid-s", resource_version="7", labels=labels or {},
        creation_timestamp=created,
        annotations={
            "kubernetes.io/service-account.name": "default",
            "kubernetes.io/service-account.uid": "12345",
        },
    )  # fmt: skip
    return Secret(metadata=metadata, type=type)


def user_of(name: str) -> Pod:
    volume = Volume(name="v", secret=SecretVolumeSource(secret_name=name))
    return pod("p", namespace="ns").with_spec(PodSpec(containers=[], volumes=[volume]))


def plan_of(*objects: KubeObject) -> PassPlan:
    cleaner = LegacyServiceAccountTokenCleaner()
    return cleaner.clean(FakeView(*objects, now=NOW, controller=cleaner), {})


def test_a_forgotten_token_is_first_marked() -> None:
    secret = token()
    (write,) = plan_of(tracking(), account("s"), secret).writes
    assert isinstance(write, Patch)
    assert write.change(secret).labels == {INVALID_SINCE: "2026-06-01"}
    remade = secret.with_metadata(uid="new")
    assert write.change(remade) == remade


@pytest.mark.parametrize("labels", [{LAST_USED: LONG_AGO}, {INVALID_SINCE: "someday"}])
def test_a_token_whose_last_use_is_long_ago_is_marked(labels: dict[str, str]) -> None:
    secret = token(labels)
    (write,) = plan_of(tracking(), account("s"), secret).writes
    assert isinstance(write, Patch)
    assert write.change(secret).labels == labels | {INVALID_SINCE: "2026-06-01"}


def test_a_token_that_was_marked_a_period_ago_is_deleted() -> None:
    secret = token({INVALID_SINCE: LONG_AGO, LAST_USED: LONG_AGO})
    wanted = Delete(secret, DeleteOptions(resource_version="7"))
    assert plan_of(tracking(), account("s"), secret).writes == [wanted]


@pytest.mark.parametrize(
    "objects",
    [
        (account("s"), token()),  # uses are not tracked
        (tracking("nonsense"), account("s"), token()),
        (tracking(LONG_AGO), account("s"), token({LAST_USED: LATELY})),  # used
        (tracking(LATELY), account("s"), token()),  # not tracked long enough
        (tracking(), account("s"), token(created=NOW - YEAR)),  # too young
        (tracking(), account("s"), token({LAST_USED: "someday"})),  # unknown
        (tracking(), account("s"), token({INVALID_SINCE: LATELY})),  # not long enough
        (tracking(), account("s"), token(type="Opaque")),
        (tracking(), account("other"), token()),  # not generated
        (tracking(), token()),  # no account
        (tracking(), account("s"), token(), user_of("s")),  # mounted
        (tracking(), account("s"), token().with_metadata(deletion_timestamp=NOW)),
    ],
)
def test_other_secrets_stay(objects: tuple[KubeObject, ...]) -> None:
    assert plan_of(*objects).writes == []


def test_every_reference_of_a_pod_counts() -> None:
    spec = PodSpec.model_validate(
        {
            "imagePullSecrets": [{"name": "pull"}],
            "initContainers": [
                {"name": "i", "envFrom": [{"secretRef": {"name": "all"}}]},
            ],
            "containers": [
                {
                    "name": "c",
                    "env": [
                        {
                            "name": "E",
                            "valueFrom": {"secretKeyRef": {"name": "one", "key": "k"}},
                        }
                    ],
                }
            ],
            "volumes": [
                {"name": "v", "projected": {"sources": [{"secret": {"name": "part"}}]}},
                {"name": "w", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
            ],
        }
    )
    assert secret_names(Pod(spec=spec)) == {"pull", "one", "all", "part", "csi"}

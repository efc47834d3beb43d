"""After plugin/pkg/admission/serviceaccount/admission_test.go: TestAutomountsAPIToken,
TestAutomountIsBackwardsCompatible, TestRespectsExistingMount, TestAllowsReferencedImagePullSecrets
and TestDoNotAddImagePullSecrets.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import ConfigMap, Container, Pod, PodSpec, ServiceAccount, Volume
from kcm.api.core_v1.containers import VolumeMount
from kcm.api.core_v1.references import LocalObjectReference
from kcm.api.core_v1.volumes import TOKEN_VOLUME
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.store.admission import service_accounts
from kcm.store.admission.service_accounts import PUBLISHED
from kcm.store.admission.token_volume import MOUNT_PATH
from kcm.store.apply import annotate_last_applied, merge_applied
from kcm.store.reader import StoreReader
from kcm.testing.clock import FakeClock
from tests.unit.store.admission.passing import create


class Objects:
    """A reader of these objects, which counts what is read."""

    def __init__(self, *objects: KubeObject) -> None:
        self.objects = {obj.key: obj for obj in objects}
        self.reads: list[str] = []
        self.version = 1

    def find(self, resource: Resource, key: str) -> KubeObject | None:
        self.reads.append(key)
        return self.objects.get(key)

    def last_rvs(self, wanted: Sequence[Resource]) -> Mapping[Resource, int]:
        return dict.fromkeys(wanted, self.version)


def plugin_of(
    *objects: KubeObject,
) -> tuple[service_accounts.ServiceAccount, Objects, FakeClock]:
    reader, clock = Objects(*objects), FakeClock()
    rng = random.Random(1)
    return (
        service_accounts.ServiceAccount(cast("StoreReader", reader), clock, rng),
        reader,
        clock,
    )


namespace, _, name = PUBLISHED.partition("/")
ROOT_CA = ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace))


def account(name: str = "default", **fields: Any) -> ServiceAccount:
    return ServiceAccount(metadata=ObjectMeta(name=name, namespace="ns"), **fields)


def admit(
    objects: Sequence[KubeObject], spec: PodSpec, annotations: dict[str, str] | None = None
) -> PodSpec:
    metadata = ObjectMeta(name="p", namespace="ns", annotations=annotations or {})
    return create(plugin_of(*objects)[0], Pod(metadata=metadata, spec=spec)).spec


def spec(*mounts: VolumeMount, **fields: Any) -> PodSpec:
    container = Container(name="c", volume_mounts=list(mounts) or None)
    return PodSpec(containers=[container], **fields)


def mounts_of(container: Container) -> list[tuple[str, str, bool | None]]:
    return [(m.name, m.mount_path, m.read_only) for m in container.volume_mounts or ()]


def test_every_container_gets_the_token() -> None:
    init = [Container(name="i")]
    found = admit([ROOT_CA, account()], spec(init_containers=init))
    (volume,) = found.volumes or []
    assert volume.name.startswith("kube-api-access-")
    assert len(volume.name) == len("kube-api-access-") + 5
    assert volume.projected == TOKEN_VOLUME
    for container in (*found.containers, *(found.init_containers or ())):
        assert mounts_of(container) == [(volume.name, MOUNT_PATH, True)]
    assert found.service_account_name == "default"


def test_the_volume_is_upstreams() -> None:
    assert TOKEN_VOLUME.model_dump(by_alias=True, exclude_none=True) == {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {
                "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
    }


@pytest.mark.parametrize(
    ("of_account", "of_pod", "mounted"),
    [
        (None, None, True),
        (True, None, True),
        (False, None, False),
        (None, True, True),
        (False, True, True),
        (None, False, False),
        (True, False, False),
    ],
)
def test_account_and_pod_may_decline(
    of_account: bool | None, of_pod: bool | None, mounted: bool
) -> None:
    owner = account(automount_service_account_token=of_account)
    found = admit([ROOT_CA, owner], spec(automount_service_account_token=of_pod))
    assert bool(found.volumes) is mounted


def test_a_container_with_something_there_keeps_it() -> None:
    own = VolumeMount(name="own", mount_path=MOUNT_PATH)
    before = spec(own, service_account_name="default")
    assert admit([ROOT_CA, account()], before) == before


def test_a_volume_that_is_there_is_used_again() -> None:
    first = admit([ROOT_CA, account()], spec())
    bare = [Container(name="new")]
    again = admit([ROOT_CA, account()], first.replace(containers=[*first.containers, *bare]))
    assert again.volumes == first.volumes
    assert mounts_of(again.containers[1]) == mounts_of(again.containers[0])


def test_without_certificates_nothing_is_mounted() -> None:
    assert admit([account()], spec()).volumes is None


def test_a_missing_default_account_is_taken_for_granted() -> None:
    assert admit([ROOT_CA], spec()).volumes


def test_another_missing_account_is_refused() -> None:
    with pytest.raises(errors.Forbidden, match='serviceaccount "robot" not found'):
        admit([ROOT_CA], spec(service_account_name="robot"))


def test_a_mirror_pod_stays_as_it_is() -> None:
    assert admit([ROOT_CA], spec(), {"kubernetes.io/config.mirror": "x"}) == spec()


def test_pull_secrets_come_from_the_account_unless_the_pod_has_some() -> None:
    theirs, own = [LocalObjectReference(name="theirs")], [LocalObjectReference(name="own")]
    owner = account(image_pull_secrets=theirs)
    assert admit([owner], spec()).image_pull_secrets == theirs
    assert admit([owner], spec(image_pull_secrets=own)).image_pull_secrets == own


def test_an_account_is_read_once_until_accounts_are_written() -> None:
    plugin, reader, clock = plugin_of(ROOT_CA, account())
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns"), spec=spec())
    for seconds in (0.0, 0.5, 1.0, 1.5):
        clock.step(seconds)
        create(plugin, pod)
    assert reader.reads == ["ns/default", PUBLISHED]
    reader.version = 2
    clock.step(1.5)
    create(plugin, pod)
    assert reader.reads == ["ns/default", PUBLISHED, "ns/default"]


def test_certificates_that_come_later_are_found_within_a_second() -> None:
    plugin, reader, clock = plugin_of(account())
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns"), spec=spec())
    assert not create(plugin, pod).spec.volumes
    reader.objects[PUBLISHED] = ROOT_CA
    clock.step(0.9)
    assert not create(plugin, pod).spec.volumes
    clock.step(0.1)
    assert create(plugin, pod).spec.volumes


def test_a_pod_that_is_applied_again_keeps_its_token() -> None:
    old = Pod(metadata=ObjectMeta(name="p", namespace="ns"), spec=spec())
    current = old.with_spec(admit([ROOT_CA, account()], old.spec))
    merged = merge_applied(old, annotate_last_applied(current))
    assert isinstance(merged, Pod)
    assert merged.spec.containers == current.spec.containers
    assert merged.spec.volumes == current.spec.volumes
    plain = merge_applied(old, annotate_last_applied(old))
    assert isinstance(plain, Pod)
    assert not plain.spec.volumes


def test_stored_pods_share_the_volumes_source() -> None:
    stored = Pod(metadata=ObjectMeta(name="p", namespace="ns"), spec=admit([ROOT_CA], spec()))
    read = codec.decode_stored(codec.encode(stored), Pod.resource)
    assert isinstance(read, Pod)
    assert read == stored
    assert (read.spec.volumes or [])[0].projected is TOKEN_VOLUME
    other = TOKEN_VOLUME.replace(default_mode=0o600)
    changed = Pod(spec=PodSpec(containers=[], volumes=[Volume(name="v", projected=other)]))
    again = codec.decode_stored(codec.encode(changed), Pod.resource)
    assert isinstance(again, Pod)
    assert (again.spec.volumes or [])[0].projected == other

"""What pods and volumes refer to, after upstream's TestPodSecrets, TestPodConfigmaps and
TestPVSecrets.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import PersistentVolume, Pod
from kcm.helpers.pod_references import (
    config_map_names,
    node_secret_keys,
    secret_names,
    token_audiences,
)

LOCAL = ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
STRICT = ("cinder", "storageos")  # of which a Secret always has a namespace


def pod(**spec: Any) -> Pod:
    return Pod.model_validate({"spec": {"containers": [], **spec}})


def container(kind: str, name: str) -> dict[str, Any]:
    """Returns a container that refers to a Secret or ConfigMap in both ways."""
    value = {f"{kind}KeyRef": {"name": f"{name}.Env", "key": "k"}}
    return {
        "name": "c",
        "envFrom": [{f"{kind}Ref": {"name": f"{name}.EnvFrom"}}],
        "env": [{"name": "E", "valueFrom": value}],
    }


def test_every_secret_of_a_pod_is_found() -> None:
    volumes = [{"name": kind, kind: {"secretRef": {"name": f"volume.{kind}"}}} for kind in LOCAL]
    volumes += [
        {"name": "a", "azureFile": {"secretName": "volume.azureFile", "shareName": "s"}},
        {"name": "s", "secret": {"secretName": "volume.secret"}},
        {"name": "p", "projected": {"sources": [{"secret": {"name": "volume.projected"}}]}},
        {"name": "c", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "volume.csi"}}},
    ]
    found = secret_names(
        pod(
            imagePullSecrets=[{"name": "pull"}, {}],
            containers=[container("secret", "main")],
            initContainers=[container("secret", "init")],
            ephemeralContainers=[container("secret", "ephemeral")],
            volumes=volumes,
        )
    )
    kinds = (*LOCAL, "azureFile", "secret", "projected", "csi")
    users = ("main", "init", "ephemeral")
    assert found == {
        "pull",
        *(f"{user}.{way}" for user in users for way in ("Env", "EnvFrom")),
        *(f"volume.{kind}" for kind in kinds),
    }


def test_every_config_map_of_a_pod_is_found() -> None:
    found = config_map_names(
        pod(
            containers=[container("configMap", "main")],
            initContainers=[container("configMap", "init")],
            volumes=[
                {"name": "v", "configMap": {"name": "volume"}},
                {"name": "p", "projected": {"sources": [{"configMap": {"name": "part"}}]}},
            ],
        )
    )
    assert found == {"main.Env", "main.EnvFrom", "init.Env", "init.EnvFrom", "volume", "part"}


def test_audiences_are_those_of_projected_tokens() -> None:
    sources = [
        {"serviceAccountToken": {"path": "a"}},
        {"serviceAccountToken": {"path": "b", "audience": "vault"}},
    ]
    volumes = [{"name": "p", "projected": {"sources": sources}}, {"name": "e", "emptyDir": {}}]
    assert token_audiences(pod(volumes=volumes)) == {"", "vault"}


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        ({"azureFile": {"secretName": "a"}}, {"claimns/a"}),
        ({"azureFile": {"secretName": "a", "secretNamespace": "other"}}, {"other/a"}),
        *(
            ({kind: {"secretRef": {"name": "s"}}}, set() if kind in STRICT else {"claimns/s"})
            for kind in LOCAL
        ),
        *(
            ({kind: {"secretRef": {"name": "s", "namespace": "other"}}}, {"other/s"})
            for kind in LOCAL
        ),
        (
            {
                "csi": {
                    "driver": "d",
                    "controllerPublishSecretRef": {"name": "attach", "namespace": "csi"},
                    "controllerExpandSecretRef": {"name": "grow", "namespace": "csi"},
                    "nodePublishSecretRef": {"name": "publish", "namespace": "csi"},
                    "nodeStageSecretRef": {"name": "stage", "namespace": "csi"},
                    "nodeExpandSecretRef": {"name": "expand", "namespace": "csi"},
                }
            },
            {"csi/publish", "csi/stage", "csi/expand"},
        ),
        ({"nfs": {"server": "s"}}, set()),
    ],
)
def test_a_volume_names_the_secrets_that_its_node_needs(
    source: dict[str, Any], keys: set[str]
) -> None:
    claim = {"namespace": "claimns", "name": "claim"}
    volume = PersistentVolume.model_validate({"spec": {"claimRef": claim, **source}})
    assert node_secret_keys(volume) == keys

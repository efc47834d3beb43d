"""PersistentVolumes, StorageClasses and PodTemplates."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import validate_changed, validate_new, validate_new_spec

VOLUMES, CLASSES = "persistentvolumes", "storageclasses.storage.k8s.io"
TERMS = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "foo", "operator": "In", "values": ["bar"]}]}
    ]
}


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({}, []),
        ({"hostPath": None, "local": {"path": "/x"}, "nodeAffinity": {"required": TERMS}}, []),
        ({"hostPath": None, "csi": {"driver": "a.b", "volumeHandle": "v"}}, []),
        ({"capacity": None},
         ["spec.capacity: Required value"]),
        ({"capacity": {"storage": "-10G"}},
         ['spec.capacity[storage]: Invalid value: "-10G": must be greater than zero']),
        ({"accessModes": []}, ["spec.accessModes: Required value"]),
        ({"accessModes": ["x"]},
         ['spec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", '
          '"ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"']),
        ({"accessModes": ["ReadWriteOncePod", "ReadWriteMany"]},
         ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"]),
        ({"persistentVolumeReclaimPolicy": "x"},
         ['spec.persistentVolumeReclaimPolicy: Unsupported value: "x": supported values: '
          '"Delete", "Recycle", "Retain"']),
        ({"hostPath": None}, ["spec: Required value: must specify a volume type"]),
        ({"nfs": {"server": "s", "path": "/"}},
         ["spec.nfs: Forbidden: may not specify more than 1 volume type"]),
        ({"hostPath": {"path": "/a/.."}, "persistentVolumeReclaimPolicy": "Recycle"},
         ["spec.hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
          "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath "
          "mount of '/'"]),
        ({"hostPath": None, "local": {"path": "/x"}},
         ["spec.nodeAffinity: Required value: Local volume requires node affinity"]),
        ({"nodeAffinity": {}},
         ["spec.nodeAffinity.required: Required value: must specify required node "
          "constraints"]),
        ({"volumeMode": "x"},
         ['spec.volumeMode: Unsupported value: "x": supported values: "Block", "Filesystem"']),
        ({"hostPath": None, "csi": {"driver": "a.b", "volumeHandle": "",
                                    "controllerPublishSecretRef": {"name": "s"}}},
         ["spec.csi.volumeHandle: Required value",
          "spec.csi.controllerPublishSecretRef.namespace: Required value"]),
        ({"hostPath": None, "cinder": {"volumeID": "v", "secretRef": {"name": "s"}}},
         ["spec.cinder.secretRef.namespace: Required value"]),
    ],
)  # fmt: skip
def test_volumes(spec: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidatePersistentVolumes and TestValidateLocalVolumes."""
    assert validate_new_spec(VOLUMES, **spec) == faults


def test_the_source_of_a_volume_stays() -> None:
    """After upstream's TestValidatePersistentVolumeSourceUpdate."""
    new = with_spec(VOLUMES, hostPath={"path": "/other"})
    assert validate_changed(new, sample(VOLUMES)) == [
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after "
        "creation"
    ]


def test_a_secret_for_expansion_may_be_added() -> None:
    """After upstream's TestValidatePersistentVolumeSourceUpdate."""
    csi = {"driver": "a.b", "volumeHandle": "v"}
    secret = {"controllerExpandSecretRef": {"name": "s", "namespace": "n"}}
    old, new = (with_spec(VOLUMES, hostPath=None, csi=obj) for obj in (csi, csi | secret))
    assert validate_changed(new, old) == []
    assert len(validate_changed(old, new)) == 1


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({}, []),
        ({"reclaimPolicy": "Retain", "parameters": {"": "x"}},
         ['parameters: Invalid value: "": field can not be empty.']),
        ({"provisioner": ""}, ["provisioner: Required value"]),
        ({"reclaimPolicy": "Recycle"},
         ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"']),
        ({"volumeBindingMode": "x"},
         ['volumeBindingMode: Unsupported value: "x": supported values: "Immediate", '
          '"WaitForFirstConsumer"']),
        ({"allowedTopologies": [{"matchLabelExpressions": [{"key": "k", "values": []}]}]},
         ["allowedTopologies[0].matchLabelExpressions[0].values: Required value"]),
        ({"allowedTopologies": [{"matchLabelExpressions": [{"key": "k", "values": ["a", "a"]}]}]},
         ['allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"']),
        ({"allowedTopologies": [{}, {}]},
         ['allowedTopologies[0].matchLabelExpressions: Duplicate value: ""',
          'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""']),
    ],
)  # fmt: skip
def test_classes(changes: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidateStorageClass and TestValidateAllowedTopologies."""
    assert validate_new(CLASSES, **changes) == faults


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"allowVolumeExpansion": True}, []),
        ({"parameters": {"a": "b"}}, ["parameters: Forbidden: updates to parameters are "
                                      "forbidden."]),
        ({"provisioner": "a/b"}, ["provisioner: Forbidden: updates to provisioner are "
                                  "forbidden."]),
        ({"reclaimPolicy": "Retain"}, ["reclaimPolicy: Forbidden: updates to reclaimPolicy are "
                                       "forbidden."]),
        ({"volumeBindingMode": "WaitForFirstConsumer"},
         ['volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable']),
    ],
)  # fmt: skip
def test_what_a_class_keeps(changes: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestStorageClassUpdate and TestValidateVolumeBindingModeUpdate."""
    assert validate_changed(sample(CLASSES, **changes), sample(CLASSES)) == faults


def test_a_pod_template_is_checked_as_others_are() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i", "imagePullPolicy": "x"}]}}
    assert validate_new("podtemplates", template=template) == [
        'template.spec.containers[0].imagePullPolicy: Unsupported value: "x": supported values: '
        '"Always", "IfNotPresent", "Never"'
    ]


def test_a_secret_for_a_disk_over_iscsi_has_a_name() -> None:
    disk = {"targetPortal": "1.2.3.4:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0}
    given = {"hostPath": None, "iscsi": disk}
    assert validate_new_spec(VOLUMES, **given) == []
    for secret, faults in (({"name": "s"}, 0), ({}, 1)):
        given["iscsi"] = {**disk, "secretRef": secret}
        assert len(validate_new_spec(VOLUMES, **given)) == faults

"""Volumes of pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kinds.validation.podspec.faults import of_spec, of_volume

MODE = "must be a number between 0 and 0777 (octal), both inclusive"
BACKSTEPS = "must not contain '..'"
FIELD = {"fieldPath": "metadata.name"}
CPU = {"containerName": "c", "resource": "limits.cpu"}
IQN = "iqn.2015-02.example.com:test"


@pytest.mark.parametrize(
    "source",
    [
        {"emptyDir": {}},
        {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"hostPath": {"path": "/mnt/path", "type": "Directory"}},
        {"gcePersistentDisk": {"pdName": "my-PD", "fsType": "ext4", "partition": 1}},
        {"awsElasticBlockStore": {"volumeID": "my-PD", "partition": 1}},
        {"gitRepo": {"repository": "my-repo", "revision": "hashstring", "directory": "target"}},
        {"iscsi": {"targetPortal": "127.0.0.1", "iqn": IQN, "lun": 1, "fsType": "ext4"}},
        {"iscsi": {"targetPortal": "127.0.0.1", "iqn": "eui.0123456789ABCDEF", "lun": 1}},
        {"iscsi": {"targetPortal": "127.0.0.1", "iqn": f"naa.{'6' * 32}", "lun": 1}},
        {"secret": {"secretName": "s", "items": [{"key": "k", "path": "dir/f", "mode": 0o644}]}},
        {"secret": {"secretName": "s", "items": [{"key": "k", "path": "a..b"}]}},
        {"configMap": {"name": "c", "defaultMode": 0o777}},
        {"glusterfs": {"endpoints": "host1", "path": "path", "readOnly": False}},
        {"flocker": {"datasetName": "datasetName"}},
        {"rbd": {"monitors": ["foo"], "image": "bar", "fsType": "ext4"}},
        {"cinder": {"volumeID": "29ea5088", "secretRef": {"name": "s"}}},
        {"cephfs": {"monitors": ["foo"]}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {
            "fieldPath": "metadata.labels['key']"}}]}},
        {"downwardAPI": {"items": [{"path": "cpu", "resourceFieldRef": CPU}]}},
        {"fc": {"targetWWNs": ["some_wwn"], "lun": 1}},
        {"fc": {"wwids": ["some_wwid"]}},
        {"flexVolume": {"driver": "acme/disk", "options": {"key": "v", "io.foo/bar": "1"}}},
        {"azureFile": {"secretName": "key", "shareName": "share"}},
        {"azureDisk": {"diskName": "foo", "diskURI": "https://blob/vhds/bar.vhd"}},
        {"azureDisk": {"diskName": "foo", "kind": "Managed", "diskURI": "/subscriptions/x"}},
        {"quobyte": {"registry": "registry:7861,reg2:7861", "volume": "v"}},
        {"scaleIO": {"gateway": "http://a", "system": "sys", "volumeName": "v"}},
        {"storageos": {"volumeName": "v", "volumeNamespace": "ns"}},
        {"csi": {"driver": "test.csi.example.com", "nodePublishSecretRef": {"name": "s"}}},
        {"persistentVolumeClaim": {"claimName": "c"}},
        {"projected": {"sources": [
            {"secret": {"name": "s", "items": [{"key": "k", "path": "a"}]}},
            {"downwardAPI": {"items": [{"path": "b", "fieldRef": FIELD}]}},
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}]}},
        {"ephemeral": {"volumeClaimTemplate": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": "1Gi"}}}}}},
    ],
)  # fmt: skip
def test_volumes_that_are_right_pass(source: dict[str, Any]) -> None:
    """After upstream's TestValidateVolumes."""
    assert of_volume(**source) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ({"emptyDir": {"sizeLimit": "-1"}},
         "emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"),
        ({"hostPath": {"path": ""}}, "hostPath.path: Required value"),
        ({"hostPath": {"path": "/foo/../bar"}},
         f'hostPath.path: Invalid value: "/foo/../bar": {BACKSTEPS}'),
        ({"hostPath": {"path": "/foo", "type": "invalid"}},
         'hostPath.type: Unsupported value: "invalid": supported values: "", "BlockDevice", '
         '"CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"'),
        ({"gcePersistentDisk": {}}, "gcePersistentDisk.pdName: Required value"),
        ({"awsElasticBlockStore": {"volumeID": "v", "partition": 256}},
         "awsElasticBlockStore.partition: Invalid value: 256: must be between 1 and 255, "
         "inclusive"),
        ({"gitRepo": {"repository": "foo", "directory": "/repo"}},
         'gitRepo.directory: Invalid value: "/repo": must be a relative path'),
        ({"iscsi": {"targetPortal": "127.0.0.1", "iqn": "2015-02.example.com:test", "lun": 1}},
         'iscsi.iqn: Invalid value: "2015-02.example.com:test": must be valid format starting '
         "with iqn, eui, or naa"),
        ({"iscsi": {"targetPortal": "127.0.0.1", "iqn": "eui.0123456789ABCDEFGHIJ"}},
         'iscsi.iqn: Invalid value: "eui.0123456789ABCDEFGHIJ": must be valid format'),
        ({"iscsi": {"targetPortal": "127.0.0.1", "iqn": IQN, "chapAuthDiscovery": True}},
         "iscsi.secretRef: Required value"),
        ({"iscsi": {"targetPortal": "127.0.0.1", "iqn": IQN, "lun": 256}},
         "iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive"),
        ({"secret": {"name": "a"}}, "secret.secretName: Required value"),
        ({"secret": {"secretName": "s", "defaultMode": 0o1000}},
         f"secret.defaultMode: Invalid value: 512: {MODE}"),
        ({"configMap": {"name": "c", "items": [{"key": "k", "path": "filename", "mode": -1}]}},
         f"configMap.items[0].mode: Invalid value: -1: {MODE}"),
        ({"configMap": {"name": "c", "items": [{"key": "", "path": "filename"}]}},
         "configMap.items[0].key: Required value"),
        ({"configMap": {"name": "c", "items": [{"key": "k", "path": ""}]}},
         "configMap.items[0].path: Required value"),
        ({"configMap": {"name": "c", "items": [{"key": "k", "path": "dir/../f"}]}},
         f'configMap.items[0].path: Invalid value: "dir/../f": {BACKSTEPS}'),
        ({"configMap": {"name": "c", "items": [{"key": "k", "path": "..path"}]}},
         'configMap.items[0].path: Invalid value: "..path": must not start with \'..\''),
        ({"glusterfs": {"endpoints": "", "path": "p"}}, "glusterfs.endpoints: Required value"),
        ({"flocker": {}}, "flocker: Required value: one of datasetName and datasetUUID is "
         "required"),
        ({"flocker": {"datasetName": "foo/bar"}},
         'flocker.datasetName: Invalid value: "foo/bar": must not contain \'/\''),
        ({"rbd": {"monitors": ["foo"]}}, "rbd.image: Required value"),
        ({"cinder": {"volumeID": "v", "secretRef": {}}},
         "cinder.secretRef.name: Required value"),
        ({"cephfs": {}}, "cephfs.monitors: Required value"),
        ({"downwardAPI": {"items": [{"path": "x"}]}},
         "downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"),
        ({"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "spec.nodeName"}}]}},
         'downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: '
         '"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", '
         '"metadata.uid"'),
        ({"downwardAPI": {"items": [{"path": "x", "resourceFieldRef": {
            "resource": "limits.cpu"}}]}},
         "downwardAPI.resourceFieldRef.containerName: Required value"),
        ({"fc": {"targetWWNs": ["w"]}},
         "fc.lun: Required value: lun is required if targetWWNs is specified"),
        ({"fc": {}},
         "fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"),
        ({"flexVolume": {"driver": "a/b", "options": {"foo.kubernetes.io/x": "1"}}},
         'flexVolume.options[foo.kubernetes.io/x]: Invalid value: "foo.kubernetes.io/x": '
         "kubernetes.io and k8s.io namespaces are reserved"),
        ({"azureFile": {"secretName": "", "shareName": "s"}},
         "azureFile.secretName: Required value"),
        ({"azureDisk": {"diskName": "d", "diskURI": "blob/x"}},
         'azureDisk.diskURI: Unsupported value: "blob/x": supported values: '
         '"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"'),
        ({"quobyte": {"registry": "registry7861", "volume": "v"}},
         'quobyte.registry: Invalid value: "registry7861": must be a host:port pair or multiple '
         "pairs separated by commas"),
        ({"scaleIO": {"gateway": "g", "system": "s"}}, "scaleIO.volumeName: Required value"),
        ({"storageos": {"volumeName": "a", "secretRef": {}}},
         "storageos.secretRef.name: Required value"),
        ({"csi": {"driver": ""}}, "csi.driver: Required value"),
        ({"persistentVolumeClaim": {"name": "a"}},
         "persistentVolumeClaim.claimName: Required value"),
        ({"nfs": {"server": "s", "path": "p"}},
         'nfs.path: Invalid value: "p": must be an absolute path'),
        ({"projected": {"sources": [{"serviceAccountToken": {
            "path": "t", "expirationSeconds": 599}}]}},
         "projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may "
         "not specify a duration less than 10 minutes"),
        ({"projected": {"sources": [{"secret": {}}]}},
         "projected.sources[0].secret.name: Required value"),
        ({"projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}},
         "projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"),
        ({"projected": {"sources": [
            {"secret": {"name": "s", "items": [{"key": "k", "path": "a"}]}},
            {"configMap": {"name": "c", "items": [{"key": "k", "path": "a"}]}}]}},
         'projected: Invalid value: "c": conflicting duplicate paths'),
        ({"ephemeral": {}}, "ephemeral.volumeClaimTemplate: Required value"),
        ({"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "x"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}}},
         "ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set"),
        ({"image": {}}, "image.reference: Required value"),
        ({"image": {"reference": "i", "pullPolicy": "Often"}},
         'image.pullPolicy: Unsupported value: "Often": supported values: "Always", '
         '"IfNotPresent", "Never"'),
    ],
)  # fmt: skip
def test_a_wrong_volume_is_explained_in_upstreams_words(source: dict[str, Any], fault: str) -> None:
    """After upstream's TestValidateVolumes."""
    assert fault in of_volume(**source)


def test_a_claim_that_an_ephemeral_volume_makes_is_not_to_be_named() -> None:
    """After upstream's TestValidatePersistentVolumeClaimTemplate cases of ValidateVolumes."""
    template = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    volumes = [
        {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": template}}},
        {"name": "w", "persistentVolumeClaim": {"claimName": "a-v"}},
    ]
    assert of_spec(volumes=volumes) == [
        'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "a-v": must not '
        "reference a PVC that gets created for an ephemeral volume"
    ]


def test_a_token_needs_a_service_account() -> None:
    source = {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    assert of_spec(volumes=[{"name": "v"} | source]) == [
        "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be "
        "specified when serviceAccountName is not set"
    ]

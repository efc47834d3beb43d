"""The official Python client: typed, dynamic, watch, leader election, create_from_yaml."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import cast

import pytest
import yaml
from kubernetes import client, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException

from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live
from tests.integration.official_client import open_official_client


def v1_pod(name: str) -> client.V1Pod:
    """Returns the manifest of a pod. The client takes manifests as well as objects."""
    return cast("client.V1Pod", pod(name))


@pytest.fixture
def connection(api: Live) -> Iterator[client.ApiClient]:
    with open_official_client(api.kubeconfig) as api_client:
        yield api_client


def test_typed_objects_are_created_read_patched_listed_and_deleted(
    connection: client.ApiClient, namespace: str
) -> None:
    core = client.CoreV1Api(connection)
    meta = client.V1ObjectMeta(name="c", labels={"a": "b"})
    config_map = core.create_namespaced_config_map(
        namespace, client.V1ConfigMap(metadata=meta, data={"k": "v"})
    )
    assert config_map.metadata is not None
    assert config_map.metadata.creation_timestamp is not None
    assert config_map.metadata.creation_timestamp.tzinfo is not None
    core.patch_namespaced_config_map("c", namespace, {"data": {"l": "w"}})
    config_map = core.read_namespaced_config_map("c", namespace)
    assert config_map.data == {"k": "v", "l": "w"}
    config_map.data["k"] = "x"
    core.replace_namespaced_config_map("c", namespace, config_map)
    with pytest.raises(ApiException) as refused:
        core.replace_namespaced_config_map("c", namespace, config_map)
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    listed = core.list_namespaced_config_map(namespace, label_selector="a=b")
    assert [item.data for item in listed.items] == [{"k": "x", "l": "w"}]
    core.delete_namespaced_config_map("c", namespace)
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_config_map("c", namespace)
    assert missing.value.status == 404


def test_a_set_is_scaled_by_its_subresource(connection: client.ApiClient, namespace: str) -> None:
    apps = client.AppsV1Api(connection)
    apps.create_namespaced_replica_set(namespace, cast("client.V1ReplicaSet", replica_set("web")))
    apps.patch_namespaced_replica_set_scale("web", namespace, {"spec": {"replicas": 4}})
    assert apps.read_namespaced_replica_set("web", namespace).spec.replicas == 4
    scale = apps.read_namespaced_replica_set_scale("web", namespace)
    assert scale.spec is not None
    assert scale.spec.replicas == 4


def test_pages_are_followed_by_their_token(connection: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(connection)
    for number in range(5):
        core.create_namespaced_pod(namespace, v1_pod(f"p{number}"))
    names: list[str | None] = []
    token = None
    while token != "":
        page = core.list_namespaced_pod(namespace, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items if item.metadata is not None]
        assert page.metadata is not None
        token = page.metadata._continue or ""
    assert names == [f"p{number}" for number in range(5)]


def test_a_watch_tells_what_happens_from_a_list_on(
    connection: client.ApiClient, namespace: str
) -> None:
    core = client.CoreV1Api(connection)
    listed = core.list_namespaced_pod(namespace)
    core.create_namespaced_pod(namespace, v1_pod("a"))
    core.patch_namespaced_pod("a", namespace, {"metadata": {"labels": {"x": "y"}}})
    core.delete_namespaced_pod("a", namespace)
    assert listed.metadata is not None
    stream = watch.Watch().stream(
        core.list_namespaced_pod,
        namespace,
        resource_version=listed.metadata.resource_version,
        timeout_seconds=2,
    )
    seen = [(event["type"], event["object"].metadata.name) for event in stream]
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_the_dynamic_client_discovers_applies_and_watches(
    connection: client.ApiClient, namespace: str
) -> None:
    stored = dynamic.DynamicClient(connection).resources.get(
        api_version="apps/v1", kind="ReplicaSet"
    )
    body = replica_set("web") | {"metadata": {"name": "web", "namespace": namespace}}
    updated = stored.server_side_apply(body=body, namespace=namespace, field_manager="test")
    assert updated.metadata.managedFields[0].manager == "test"
    assert stored.get(name="web", namespace=namespace).spec.replicas == body["spec"]["replicas"]
    first = next(iter(stored.watch(namespace=namespace, timeout=2)))
    assert (first["type"], first["object"].metadata.name) == ("ADDED", "web")


def test_manifests_of_several_kinds_are_created_from_yaml(
    connection: client.ApiClient, namespace: str
) -> None:
    documents = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        pod("p"),
        replica_set("r"),
    ]
    text = yaml.safe_dump_all(documents)
    utils.create_from_yaml(connection, yaml_objects=yaml.safe_load_all(text), namespace=namespace)
    assert client.AppsV1Api(connection).read_namespaced_replica_set("r", namespace)
    with pytest.raises(utils.FailToCreateError, match="AlreadyExists"):
        utils.create_from_yaml(
            connection, yaml_objects=yaml.safe_load_all(text), namespace=namespace
        )


LEADER = """
import sys
from kubernetes import config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

config.load_kube_config(sys.argv[1])
election = electionconfig.Config(
    ConfigMapLock("lock", sys.argv[2], "me"),
    lease_duration=3,
    renew_deadline=2,
    retry_period=1,
    onstarted_leading=lambda: print("leading", flush=True),
    onstopped_leading=None,
)
leaderelection.LeaderElection(election).run()
"""


def test_its_leader_election_holds_a_lock_that_others_see(api: Live, namespace: str) -> None:
    # In a process of its own, for there is no way to end it.
    arguments = [sys.executable, "-c", LEADER, str(api.kubeconfig), namespace]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert any("leading" in line for line in process.stdout)
            lock = api.get(f"/api/v1/namespaces/{namespace}/configmaps/lock")
        finally:
            process.kill()
    record = lock["metadata"]["annotations"]["control-plane.alpha.kubernetes.io/leader"]
    assert json.loads(record)["holderIdentity"] == "me"

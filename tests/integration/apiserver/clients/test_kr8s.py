"""kr8s: objects with verbs of their own, discovery, watches."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import kr8s
import pytest
from kr8s.objects import ConfigMap, Deployment, Pod

from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live

# It knows versions up to 1.35.
pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported")


@pytest.fixture
def kr8s_api(api: Live, namespace: str) -> Iterator[kr8s.Api]:
    yield kr8s.api(kubeconfig=str(api.kubeconfig), namespace=namespace)
    # kr8s leaves its connections to the garbage collector, whose complaint would
    # else fail whichever test it meets.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for _ in range(3):
            gc.collect()


def within(manifest: dict[str, object], namespace: str) -> dict[str, object]:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return manifest | {"metadata": metadata | {"namespace": namespace}}


def test_objects_are_created_labelled_patched_and_deleted(
    kr8s_api: kr8s.Api, namespace: str
) -> None:
    new_pod = Pod(within(pod("p"), namespace), api=kr8s_api)
    new_pod.create()
    assert new_pod.exists()
    new_pod.label({"a": "b"})
    new_pod.annotate({"c": "d"})
    [listed] = kr8s_api.get("pods", namespace=namespace, label_selector={"a": "b"})
    assert isinstance(listed, Pod)
    assert (listed.name, listed.annotations["c"]) == ("p", "d")
    new_pod.delete()
    assert not new_pod.exists()


def test_a_deployment_is_scaled(kr8s_api: kr8s.Api, namespace: str) -> None:
    body = within(replica_set("web"), namespace) | {"kind": "Deployment"}
    deployment = Deployment(body, api=kr8s_api)
    deployment.create()
    deployment.patch({"spec": {"replicas": 3}})
    assert deployment.replicas == 3
    assert kr8s_api.get("deployments.apps", "web", namespace=namespace)


def test_kinds_are_discovered_and_their_version_known(kr8s_api: kr8s.Api) -> None:
    assert kr8s_api.version()["minor"] == "36"
    kinds = {resource["kind"] for resource in kr8s_api.api_resources()}
    assert {"Pod", "Deployment", "Lease", "CustomResourceDefinition"} <= kinds


def test_a_watch_tells_what_happens(kr8s_api: kr8s.Api, namespace: str) -> None:
    config_map = ConfigMap(
        {"metadata": {"name": "c", "namespace": namespace}, "data": {"a": "b"}}, api=kr8s_api
    )
    config_map.create()
    kind, seen = next(iter(kr8s_api.watch("configmaps", namespace=namespace)))
    assert (kind, seen.name) == ("ADDED", "c")

"""Control planes in one process, whose definitions of one kind differ."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.testing import ApiError, ControlPlane
from tests.integration.apiserver.kubectl import VERSIONS, Kubectl, find
from tests.integration.official_client import open_official_client

KUBECTL = find(VERSIONS[-1])
VERSION = {"one": "v1", "other": "v1alpha1"}
SIZE = {"one": 3, "other": "large"}
TYPE = {"one": "integer", "other": "string"}
EXPECTED = {"one": "numeric", "other": "string"}
AGGREGATED = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
OPERATOR = """
import kopf

@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False

@kopf.on.create("crontabs")
def mark(patch, **_):
    patch.metadata.annotations["example.com/seen"] = "yes"
"""


def define(plane: str) -> dict[str, Any]:
    """Returns the definition of CronTabs of a plane."""
    spec = {"type": "object", "properties": {"size": {"type": TYPE[plane]}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    version = {
        "name": VERSION[plane],
        "served": True,
        "storage": True,
        "subresources": {"scale": paths},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def crontab(plane: str, name: str, size: Any = None) -> dict[str, Any]:
    return {
        "apiVersion": f"example.com/{VERSION[plane]}",
        "kind": "CronTab",
        "metadata": {"name": name},
        "spec": {"size": SIZE[plane] if size is None else size},
    }


def ask(plane: ControlPlane, path: str, **headers: str) -> Any:
    """Returns the answer of a plane's API server, without the helpers of ControlPlane, which look
    kinds up.
    """
    return plane.objects.client.get(path, headers=headers)


def list_codes(plane: ControlPlane) -> list[int]:
    """Returns the codes with which a plane answers for CronTabs in both versions."""
    group = "/apis/example.com/{}/namespaces/default/crontabs"
    return [ask(plane, group.format(version)).status_code for version in VERSION.values()]


@pytest.fixture(scope="module")
def planes() -> Iterator[dict[str, ControlPlane]]:
    with ControlPlane(nodes=0) as one, ControlPlane(nodes=0) as other:
        planes = {"one": one, "other": other}
        for name, plane in planes.items():
            plane.apply(define(name))
            assert 200 in list_codes(plane)  # the kind is served once its scheme has it
        yield planes


every_plane = pytest.mark.parametrize("name", VERSION)


def test_a_plane_that_comes_and_goes_takes_nothing_from_another() -> None:
    with ControlPlane(nodes=0) as one:
        one.apply(define("one"))
        one.apply(crontab("one", "a"))
        assert list_codes(one) == [200, 404]
        with ControlPlane(nodes=0) as other:
            assert list_codes(other) == [404, 404]
            assert list_codes(one) == [200, 404]
            other.apply(define("other"))
            assert list_codes(other) == [404, 200]
            assert list_codes(one) == [200, 404]
        assert list_codes(one) == [200, 404]
        assert one.get("crontab/a")["spec"] == {"size": 3}


def test_a_plane_after_another_has_its_own_kinds_only() -> None:
    for name, codes in (("one", [200, 404]), ("other", [404, 200]), ("one", [200, 404])):
        with ControlPlane(nodes=0) as plane:
            assert list_codes(plane) == [404, 404]
            plane.apply(define(name))
            assert list_codes(plane) == codes


def test_their_schemes_have_equal_generations(planes: dict[str, ControlPlane]) -> None:
    """Otherwise a cache that is keyed by a generation would pass the tests below by chance."""
    generations = {plane._engine.scheme.generation() for plane in planes.values()}
    assert generations == {1}


@every_plane
def test_objects_fit_the_schema_of_their_own_plane(
    planes: dict[str, ControlPlane], name: str
) -> None:
    planes[name].apply(crontab(name, "fits"))
    (wrong,) = (size for plane, size in SIZE.items() if plane != name)
    with pytest.raises(ApiError, match=f"spec.size: expected {EXPECTED[name]}"):
        planes[name].apply(crontab(name, "fits-not", wrong))


@every_plane
def test_documents_describe_the_kinds_of_their_own_plane(
    planes: dict[str, ControlPlane], name: str
) -> None:
    plane, version = planes[name], VERSION[name]
    group = ask(plane, "/apis/example.com").json()
    assert [one["version"] for one in group["versions"]] == [version]
    items = ask(plane, "/apis", **AGGREGATED).json()["items"]
    [found] = [item for item in items if item["metadata"].get("name") == "example.com"]
    assert [one["version"] for one in found["versions"]] == [version]
    paths = ask(plane, "/openapi/v3").json()["paths"]
    assert [path for path in paths if "example.com" in path] == [f"apis/example.com/{version}"]
    document = ask(plane, f"/openapi/v3/apis/example.com/{version}").json()
    schema = document["components"]["schemas"][f"com.example.{version}.CronTab"]
    assert schema["properties"]["spec"]["properties"]["size"] == {"type": TYPE[name]}
    definitions = ask(plane, "/openapi/v2").json()["definitions"]
    tabs = [one for one in definitions if one.endswith(".CronTab")]
    assert tabs == [f"com.example.{version}.CronTab"]


@every_plane
def test_controllers_know_the_kinds_of_their_own_plane(
    planes: dict[str, ControlPlane], name: str
) -> None:
    plane = planes[name]
    [owner] = plane.apply(crontab(name, "owner"))
    reference = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference |= {key: owner[key] for key in ("apiVersion", "kind")}
    metadata = {"name": "dependent", "ownerReferences": [reference]}
    plane.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    plane.settle()
    assert plane.get("configmap/dependent")
    plane.delete("crontab/owner")

    def is_collected() -> bool:
        return "dependent" not in [one["metadata"]["name"] for one in plane.list("configmaps")]

    plane.eventually(is_collected)


@every_plane
@pytest.mark.skipif(not KUBECTL, reason="needs kubectl, see KCM_KUBECTL_DIR")
def test_kubectl_finds_the_kind_on_both(
    planes: dict[str, ControlPlane], name: str, tmp_path: Path
) -> None:
    assert KUBECTL is not None
    kubectl = Kubectl(KUBECTL, planes[name].kubeconfig, "default", tmp_path)
    kubectl("apply", "-f", "-", stdin=crontab(name, "by-kubectl"))
    version = kubectl("get", "crontab", "by-kubectl", "-o", "jsonpath={.apiVersion}")
    assert version == f"example.com/{VERSION[name]}"
    assert f"<{TYPE[name]}>" in kubectl("explain", "crontab.spec.size")


@every_plane
def test_the_official_client_lists_the_kind_on_both(
    planes: dict[str, ControlPlane], name: str
) -> None:
    from kubernetes import client

    plane = planes[name]
    plane.apply(crontab(name, "by-client"))
    with open_official_client(plane.kubeconfig) as connection:
        custom = client.CustomObjectsApi(connection)
        listed: Any = custom.list_namespaced_custom_object(
            "example.com", VERSION[name], "default", "crontabs"
        )
    assert "by-client" in [one["metadata"]["name"] for one in listed["items"]]


@contextmanager
def run_operator(plane: ControlPlane, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Runs an operator of kopf that marks CronTabs, in a process of its own."""
    file = folder / "operator.py"
    file.write_text(OPERATOR)
    with subprocess.Popen(
        [sys.executable, "-m", "kopf", "run", "-A", "--standalone", str(file)],
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def is_marked(plane: ControlPlane, name: str) -> bool:
    annotations = plane.get(f"crontab/{name}")["metadata"].get("annotations") or {}
    return annotations.get("example.com/seen") == "yes"


def test_operators_on_both_live_on_when_a_third_plane_comes_and_goes(
    planes: dict[str, ControlPlane], tmp_path: Path
) -> None:
    one, other = planes.values()
    with run_operator(one, tmp_path) as first, run_operator(other, tmp_path) as second:
        for name, plane in planes.items():
            plane.apply(crontab(name, "before"))
            plane.eventually(partial(is_marked, plane, "before"), within="60s")
        with ControlPlane(nodes=0) as third:
            assert list_codes(third) == [404, 404]
        for name, plane in planes.items():
            plane.apply(crontab(name, "after"))
            plane.eventually(partial(is_marked, plane, "after"), within="60s")
        assert (first.poll(), second.poll()) == (None, None)


def use_a_kind() -> weakref.ref[type[KubeObject]]:
    """Returns the class of a custom kind of a plane that has stopped since."""
    with ControlPlane(nodes=0) as plane:
        plane.apply(define("one"))
        quota = {"spec": {"hard": {"count/crontabs.example.com": 2}}, "metadata": {"name": "few"}}
        plane.apply({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
        plane.apply(crontab("one", "a"))
        scale = "/apis/example.com/v1/namespaces/default/crontabs/a/scale"
        assert ask(plane, scale).json()["spec"] == {"replicas": 3}
        assert ask(plane, "/openapi/v2").is_success
        plane.eventually(lambda: plane.get("resourcequota/few")["status"].get("used"))
        return weakref.ref(plane._engine.scheme.by_name("crontabs.example.com").model)


def test_the_classes_of_its_custom_kinds_go_with_a_plane() -> None:
    model = use_a_kind()
    gc.collect()
    assert model() is None


MEMORY = """
import gc

import psutil

from tests.integration.testing.test_two_planes import use_a_kind


def measure() -> int:
    gc.collect()
    return psutil.Process().memory_full_info().uss


sizes = []
for count in range(COUNT):
    use_a_kind()
    if count in (FIRST - 1, COUNT - 1):
        sizes.append(measure())
print(*sizes)
"""


@pytest.mark.parametrize(("first", "count"), [(3, 6), pytest.param(5, 50, marks=pytest.mark.long)])
def test_planes_after_each_other_leave_no_memory(first: int, count: int) -> None:
    program = MEMORY.replace("FIRST", str(first)).replace("COUNT", str(count))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=250, check=True
    )
    before, after = map(int, done.stdout.split())
    # Its caches of texts and times fill in the first ten or so, with some 5 MiB in all.
    assert after - before < 10 * 2**20

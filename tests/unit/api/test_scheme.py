"""The registry of kinds."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from kcm import errors
from kcm.api import scheme
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN, Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.testing import builders


class Widget(KubeObject):
    """A custom kind for these tests."""

    api_version: str = "example.com/v1"
    kind: str = "Widget"


@pytest.mark.parametrize("word", ["rs", "replicaset", "replicasets", "replicasets.apps", "RS"])
def test_a_kind_is_found_by_every_word_that_people_type(word: str) -> None:
    assert BUILT_IN.lookup(word).model is ReplicaSet


def test_names_and_versions_are_those_of_the_redis_keys() -> None:
    pods, sets = BUILT_IN.by_name("pods"), BUILT_IN.by_name("replicasets.apps")
    assert (pods.name, pods.api_version, pods.singular) == ("pods", "v1", "pod")
    assert (sets.name, sets.api_version, sets.group) == ("replicasets.apps", "apps/v1", "apps")
    assert str(BUILT_IN.by_name("leases.coordination.k8s.io")) == "leases.coordination.k8s.io"


@pytest.mark.parametrize("resource", BUILT_IN.resources(), ids=str)
def test_every_kind_is_found_by_name_version_and_model(resource: Resource) -> None:
    assert BUILT_IN.by_name(resource.name) is resource
    assert BUILT_IN.by_gvk(resource.api_version, resource.kind) is resource
    assert resource.model.resource is resource
    assert resource.model().resource is resource
    assert BUILT_IN.lookup(resource.kind) is resource


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("cm", "configmaps"),
        ("csr", "certificatesigningrequests.certificates.k8s.io"),
        ("svc", "services"),
        ("sa", "serviceaccounts"),
        ("ep", "endpoints"),
        ("endpoints", "endpoints"),
        ("deploy", "deployments.apps"),
        ("pdb", "poddisruptionbudgets.policy"),
        ("pc", "priorityclasses.scheduling.k8s.io"),
        ("pv", "persistentvolumes"),
        ("sc", "storageclasses.storage.k8s.io"),
        ("vac", "volumeattributesclasses.storage.k8s.io"),
        ("ing", "ingresses.networking.k8s.io"),
        ("netpol", "networkpolicies.networking.k8s.io"),
        ("crd", "customresourcedefinitions.apiextensions.k8s.io"),
        ("crds", "customresourcedefinitions.apiextensions.k8s.io"),
        ("EndpointSlice", "endpointslices.discovery.k8s.io"),
    ],
)
def test_short_names_are_those_of_upstream(word: str, name: str) -> None:
    assert BUILT_IN.lookup(word).name == name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BUILT_IN.lookup("pots"), "did you mean pod"),
        (lambda: BUILT_IN.by_name("replicaset.apps"), r"did you mean replicasets\.apps"),
        (lambda: BUILT_IN.by_gvk("v1", "ReplicaSet"), "did you mean ReplicaSet in apps/v1"),
        (lambda: BUILT_IN.lookup("zzz"), """doesn't have a resource type "zzz"$"""),
    ],
)
def test_an_unknown_kind_is_an_error_with_suggestions(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(errors.UnknownKind, match=message):
        call()


def test_a_resource_equals_only_itself() -> None:
    pods = BUILT_IN.by_name("pods")
    assert pods == Pod.resource
    assert pods != scheme.kind(Pod, "pods")
    assert repr(pods) == "Resource('pods')"


def test_registering_a_kind_takes_one_line() -> None:
    resource = scheme.kind(Widget, "widgets", short="wd")
    own = scheme.Kinds([resource])
    assert own.lookup("wd") is own.lookup("widgets.example.com") is resource
    assert own.by_name("widgets.example.com").kind == "Widget"


def test_what_is_registered_already_is_refused() -> None:
    with pytest.raises(ValueError, match="registered already"):
        scheme.Kinds([Pod.resource, scheme.kind(Pod, "capsules")])


def test_the_uid_of_a_built_object_is_stable() -> None:
    assert builders.pod("a").uid == builders.pod("a").uid != builders.pod("b").uid


_INCOMPLETE = """
from kcm.api.scheme import BUILT_IN, build_schemas
build_schemas()
kinds = (resource.model for resource in BUILT_IN.resources())
print(*(kind.__name__ for kind in kinds if not kind.__pydantic_complete__))
"""


def test_a_process_that_forks_has_built_the_schemas_of_all_kinds() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", _INCOMPLETE], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == []

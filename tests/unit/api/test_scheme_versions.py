"""Resources that share stored objects, and resources that are added and removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.scheme import Resource, Scheme, kind
from kcm.apimachinery.meta_v1 import KubeObject


def version(
    of: str, kind_name: str = "Event", group: str = "events.k8s.io", **changes: Any
) -> Resource:
    """Returns the resource of a new class."""
    fields = {"__annotations__": {"api_version": str, "kind": str}, "__module__": __name__}
    values = {"api_version": f"{group}/v1".lstrip("/"), "kind": kind_name}
    model: type[KubeObject] = type(kind_name, (KubeObject,), fields | values)
    return replace(kind(model, of), name=of, **changes)


def test_a_version_is_served_and_not_stored() -> None:
    scheme = Scheme([Pod.resource])
    other = scheme.add_version(version("pods"))
    assert scheme.resources() == (scheme.by_name("pods"),)
    assert scheme.served() == scheme.versions("pods") == (scheme.by_name("pods"), other)
    assert scheme.at("events.k8s.io", "v1", "pods") is other
    assert scheme.by_name("pods").model is Pod


def test_a_version_of_nothing_and_one_that_is_there_already_are_refused() -> None:
    scheme = Scheme([Pod.resource])
    with pytest.raises(ValueError, match="no kind is stored as events"):
        scheme.add_version(version("events"))
    scheme.add_version(version("pods"))
    with pytest.raises(ValueError, match="registered already"):
        scheme.add_version(version("pods"))


def test_versions_are_replaced_together_and_forgotten() -> None:
    scheme = Scheme([Pod.resource])
    scheme.replace_versions("maps", [version("maps", "ConfigMap", "", short_names=("m",))])
    before = scheme.generation()
    new = version("maps", "ConfigMap", "", served=False)
    scheme.replace_versions("maps", [new])
    assert scheme.generation() > before
    assert scheme.by_gvk("v1", "ConfigMap") is new
    assert new not in scheme.served()
    with pytest.raises(errors.UnknownKind):
        scheme.lookup("m")
    scheme.replace_versions("maps")
    with pytest.raises(errors.UnknownKind):
        scheme.by_gvk("v1", "ConfigMap")
    assert scheme.resources() == (scheme.by_name("pods"),)


def test_a_kind_of_another_name_cannot_be_replaced() -> None:
    scheme = Scheme([Pod.resource])
    with pytest.raises(ValueError, match="registered already, as pods"):
        scheme.replace_versions(
            "others", [version("others", "ConfigMap", ""), version("others", "Pod", "")]
        )
    assert scheme.versions("others") == ()

"""Resources that share stored objects, and resources that are added and removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN, Kinds, Resource, Scheme, kind
from kcm.apimachinery.meta_v1 import KubeObject


def version(
    of: str, kind_name: str = "Occurrence", group: str = "events.k8s.io", **changes: Any
) -> Resource:
    """Returns the resource of a new class."""
    fields = {"__annotations__": {"api_version": str, "kind": str}, "__module__": __name__}
    values = {"api_version": f"{group}/v1".lstrip("/"), "kind": kind_name}
    model: type[KubeObject] = type(kind_name, (KubeObject,), fields | values)
    return replace(kind(model, of), name=of, **changes)


def test_a_version_is_served_and_not_stored() -> None:
    other = version("pods")
    kinds = Kinds([Pod.resource, other])
    assert kinds.resources() == (Pod.resource,)
    assert kinds.served() == kinds.versions("pods") == (Pod.resource, other)
    assert kinds.at("events.k8s.io", "v1", "pods") is other
    assert kinds.by_name("pods").model is Pod


def test_versions_are_replaced_together_and_removed() -> None:
    scheme = Scheme()
    scheme.replace_versions("maps", [version("maps", "Map", "example.com", short_names=("m",))])
    before = scheme.generation()
    new = version("maps", "Map", "example.com", served=False)
    scheme.replace_versions("maps", [new])
    assert scheme.generation() > before
    assert scheme.by_gvk("example.com/v1", "Map") is new
    assert new not in scheme.served()
    with pytest.raises(errors.UnknownKind):
        scheme.lookup("m")
    scheme.replace_versions("maps")
    with pytest.raises(errors.UnknownKind):
        scheme.by_gvk("example.com/v1", "Map")
    assert scheme.resources() == BUILT_IN.resources()


def test_a_kind_of_another_name_cannot_be_replaced() -> None:
    scheme = Scheme()
    with pytest.raises(ValueError, match="registered already, as pods"):
        scheme.replace_versions("others", [version("others"), version("others", "Pod", "")])
    assert scheme.versions("others") == ()


def test_a_built_in_kind_cannot_be_replaced() -> None:
    scheme = Scheme()
    with pytest.raises(ValueError, match="pods is a built-in kind"):
        scheme.replace_versions("pods", [version("pods")])
    assert scheme.by_name("pods") is Pod.resource


def test_schemes_share_the_built_in_kinds_and_nothing_else() -> None:
    one, other = Scheme(), Scheme()
    one.replace_versions("maps", [version("maps", "Map", "example.com")])
    assert one.generation() == 1
    assert other.generation() == 0
    assert other.versions("maps") == BUILT_IN.versions("maps") == ()
    assert one.by_name("pods") is other.by_name("pods") is Pod.resource

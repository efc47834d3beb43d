"""After TestAdmission of plugin/pkg/admission/network/defaultingressclass/admission_test.go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from kcm.api.networking_v1 import Ingress, IngressClass
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.store.admission.ingress_classes import (
    CLASS_ANNOTATION,
    IS_DEFAULT,
    DefaultIngressClass,
)
from kcm.store.reader import StoreReader
from kcm.testing.clock import FakeClock
from tests.unit.store.admission.passing import create

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Classes:
    """A reader of these classes."""

    items: Sequence[KubeObject]
    version: int = 1

    def list(self, resource: Resource) -> Classes:
        return self

    def last_rvs(self, wanted: Sequence[Resource]) -> Mapping[Resource, int]:
        return dict.fromkeys(wanted, self.version)


def plugin_for(classes: Classes, clock: FakeClock | None = None) -> DefaultIngressClass:
    return DefaultIngressClass(cast("StoreReader", classes), clock or FakeClock())


def a_class(name: str, mark: str = "true", age: int = 0) -> IngressClass:
    made = NOW - timedelta(seconds=age)
    metadata = ObjectMeta(name=name, annotations={IS_DEFAULT: mark}, creation_timestamp=made)
    return IngressClass(metadata=metadata)


def ingress(name: str | None = None, **annotations: str) -> Ingress:
    made = Ingress(metadata=ObjectMeta(name="a", namespace="x", annotations=annotations))
    spec: Any = made.spec.replace(ingress_class_name=name)
    return made.with_spec(spec)


def class_of(obj: KubeObject) -> str | None:
    assert isinstance(obj, Ingress)
    return obj.spec.ingress_class_name


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([], None),
        ([a_class("plain", "false")], None),
        ([a_class("plain", "false"), a_class("one")], "one"),
        ([a_class("old", age=10), a_class("new")], "new"),
        ([a_class("b"), a_class("a")], "a"),
    ],
)
def test_an_ingress_without_a_class_gets_the_default(
    classes: list[IngressClass], expected: str | None
) -> None:
    assert class_of(create(plugin_for(Classes(classes)), ingress())) == expected


@pytest.mark.parametrize(
    "given", [ingress("mine"), ingress(""), ingress(None, **{CLASS_ANNOTATION: "mine"})]
)
def test_an_ingress_that_names_a_class_keeps_it(given: Ingress) -> None:
    assert create(plugin_for(Classes([a_class("one")])), given) is given


def test_a_class_that_is_written_here_counts_at_once() -> None:
    classes, clock, new = Classes([]), FakeClock(), a_class("new")
    plugin = plugin_for(classes, clock)
    create(plugin, ingress())
    classes.items, classes.version = [new], 2
    clock.step(0.1)
    assert class_of(create(plugin, ingress())) is None
    create(plugin, new)
    assert class_of(create(plugin, ingress())) == "new"

"""core/v1: the structs by which objects refer to other objects.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import ClassVar

from kcm.apimachinery.base import Model


class LocalObjectReference(Model):
    """The name of an object in the same namespace. The field's description says of which kind."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None


class SecretReference(Model):
    """The name and namespace of a Secret."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    namespace: str | None = None


class TypedLocalObjectReference(Model):
    """The kind and name of an object in the same namespace."""

    kubernetes_atomic: ClassVar[bool] = True

    api_group: str | None = None
    kind: str = ""
    name: str = ""


class TypedObjectReference(Model):
    """The kind and name of an object, and its namespace if that is another one."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None

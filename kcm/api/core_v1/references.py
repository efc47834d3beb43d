"""core/v1: how objects name other objects.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import ClassVar

from kcm.apimachinery.base import Model


class LocalObjectReference(Model):
    """A name in the same namespace."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None


class SecretReference(Model):
    """A Secret of any namespace."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    namespace: str | None = None


class TypedLocalObjectReference(Model):
    """An object of the same namespace."""

    kubernetes_atomic: ClassVar[bool] = True

    api_group: str | None = None
    kind: str = ""
    name: str = ""


class TypedObjectReference(Model):
    """An object, perhaps of another namespace."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None

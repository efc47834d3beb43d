"""apiextensions.k8s.io/v1: CustomResourceDefinition.

Schemas, conversion webhooks and subresources stay loosely typed.
Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.apimachinery.base import Bool, JsonObject, MergeKey, Model
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.times import Time


class CustomResourceDefinitionNames(Model):
    """How the kind is called."""

    plural: str = ""
    singular: str | None = None
    short_names: list[str] | None = None
    kind: str = ""
    list_kind: str | None = None
    categories: list[str] | None = None


class CustomResourceColumnDefinition(Model):
    """A column that `kubectl get` shows."""

    name: str = ""
    type: str = ""
    format: str | None = None
    description: str | None = None
    priority: int | None = None
    json_path: str = Field(default="", alias="jsonPath")


class CustomResourceDefinitionVersion(Model):
    """One version of the kind."""

    name: str = ""
    served: Bool = False
    storage: Bool = False
    deprecated: Bool | None = None
    deprecation_warning: str | None = None
    schema_: JsonObject | None = Field(default=None, alias="schema")
    subresources: JsonObject | None = None
    additional_printer_columns: list[CustomResourceColumnDefinition] | None = None
    selectable_fields: list[JsonObject] | None = None


class CustomResourceConversion(Model):
    """How objects are turned from one version into another."""

    strategy: str = ""
    webhook: JsonObject | None = None


class CustomResourceDefinitionSpec(Model):
    """The kind: its names, scope and versions."""

    group: str = ""
    names: CustomResourceDefinitionNames = Field(default_factory=CustomResourceDefinitionNames)
    scope: str = ""
    versions: list[CustomResourceDefinitionVersion] = Field(default_factory=list)
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: Bool | None = None


class CustomResourceDefinitionCondition(Model):
    """One aspect of a definition's state."""

    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class CustomResourceDefinitionStatus(Model):
    """Which names were accepted, and in which versions objects may be stored."""

    conditions: Annotated[list[CustomResourceDefinitionCondition] | None, MergeKey("type")] = None
    accepted_names: CustomResourceDefinitionNames | None = None
    stored_versions: list[str] | None = None


class CustomResourceDefinition(KubeObject):
    """A kind that a user adds to the API."""

    api_version: str = "apiextensions.k8s.io/v1"
    kind: str = "CustomResourceDefinition"
    spec: CustomResourceDefinitionSpec = Field(default_factory=CustomResourceDefinitionSpec)
    status: CustomResourceDefinitionStatus = Field(default_factory=CustomResourceDefinitionStatus)

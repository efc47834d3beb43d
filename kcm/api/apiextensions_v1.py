"""apiextensions.k8s.io/v1: CustomResourceDefinition.

Schemas and subresources stay loosely typed.
Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api import admissionregistration_v1
from kcm.apimachinery.base import Bool, Int32, Int64, JsonObject, MergeKey, Model
from kcm.apimachinery.meta_v1 import KubeObject, Time


class CustomResourceDefinitionNames(Model):
    """The names under which a custom kind is served, and the names of its objects and lists."""

    plural: str = ""
    singular: str | None = None
    short_names: list[str] | None = None
    kind: str = ""
    list_kind: str | None = None
    categories: list[str] | None = None


class CustomResourceColumnDefinition(Model):
    """A column of the table that `kubectl get` prints for a custom kind."""

    name: str = ""
    type: str = ""
    format: str | None = None
    description: str | None = None
    priority: Int32 | None = None
    json_path: str = Field(default="", alias="jsonPath")


class SelectableField(Model):
    """A field of a custom kind that field selectors may use."""

    json_path: str = ""


class CustomResourceDefinitionVersion(Model):
    """One version of a custom kind: its schema, subresources and columns."""

    name: str = ""
    served: Bool = False
    storage: Bool = False
    deprecated: Bool | None = None
    deprecation_warning: str | None = None
    schema_: JsonObject | None = Field(default=None, alias="schema")
    subresources: JsonObject | None = None
    additional_printer_columns: list[CustomResourceColumnDefinition] | None = None
    selectable_fields: list[SelectableField] | None = None


class ServiceReference(admissionregistration_v1.ServiceReference):
    """The Service behind which a conversion webhook's server listens."""


class WebhookClientConfig(admissionregistration_v1.WebhookClientConfig):
    """Where a conversion webhook's server is, and which authority signed its certificate."""

    service: ServiceReference | None = None


class WebhookConversion(Model):
    """A server that converts custom objects, and the versions of ConversionReview that it reads."""

    client_config: WebhookClientConfig | None = None
    conversion_review_versions: list[str] | None = None


class CustomResourceConversion(Model):
    """How custom objects are converted between versions."""

    strategy: str = ""
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionSpec(Model):
    """The names, scope and versions of a custom kind."""

    group: str = ""
    names: CustomResourceDefinitionNames = Field(default_factory=CustomResourceDefinitionNames)
    scope: str = ""
    versions: list[CustomResourceDefinitionVersion] = Field(default_factory=list)
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: Bool | None = None


class CustomResourceDefinitionCondition(Model):
    """One aspect of the state of a CustomResourceDefinition."""

    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None
    observed_generation: Int64 | None = None


class CustomResourceDefinitionStatus(Model):
    """The names that the API server accepted, and the versions in which objects may be stored."""

    observed_generation: Int64 | None = None
    conditions: Annotated[
        list[CustomResourceDefinitionCondition] | None, MergeKey("type", patches=False)
    ] = None
    accepted_names: CustomResourceDefinitionNames | None = None
    stored_versions: list[str] | None = None


class CustomResourceDefinition(KubeObject):
    """Defines a custom kind, whose objects the API server serves as it does built-in kinds."""

    api_version: str = "apiextensions.k8s.io/v1"
    kind: str = "CustomResourceDefinition"
    spec: CustomResourceDefinitionSpec = Field(default_factory=CustomResourceDefinitionSpec)
    status: CustomResourceDefinitionStatus = Field(default_factory=CustomResourceDefinitionStatus)

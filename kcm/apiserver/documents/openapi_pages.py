"""The OpenAPI operations of what is no resource: discovery, the version, the keys of tokens.

Source: pkg/routes and staging/src/k8s.io/apiserver/pkg/endpoints/discovery, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kcm.apiserver.documents.openapi_machinery import (
    API_GROUP,
    API_GROUPS,
    API_RESOURCES,
    API_VERSIONS,
    VERSION,
)
from kcm.apiserver.documents.openapi_schemas import Dialect, Schema


class Page(NamedTuple):
    """A page, and the operation that reads it."""

    place: str  # its path, without the first slash
    tag: str
    operation: str  # its id
    description: str
    schema: str  # the name of that of the answer, "" for a string


_ALWAYS: tuple[Page, ...] = (
    Page(".well-known/openid-configuration", "WellKnown",
         "getServiceAccountIssuerOpenIDConfiguration",
         "Returns the configuration of the issuer of service accounts' tokens.", ""),
    Page("api", "core", "getCoreAPIVersions", "Returns the versions of the core group.",
         API_VERSIONS),
    Page("apis", "apis", "getAPIVersions", "Returns the API groups.", API_GROUPS),
    Page("openid/v1/jwks", "openid", "getServiceAccountIssuerOpenIDKeyset",
         "Returns the public keys of service accounts' tokens.", ""),
    Page("version", "version", "getCodeVersion", "Returns the version of this server.", VERSION),
)  # fmt: skip


def list_pages(groups: Iterable[str], versions: Iterable[tuple[str, str]]) -> Iterator[Page]:
    """Yields all pages of a server that serves these groups, and these versions of groups."""
    yield from _ALWAYS
    for group in groups:
        name = f"get{camel(group)}APIGroup"
        words = "Returns the versions of the group."
        yield Page(f"apis/{group}", tag(group), name, words, API_GROUP)
    for group, version in versions:
        place = f"apis/{group}/{version}" if group else f"api/{version}"
        name = f"get{camel(group or 'core')}{version.capitalize()}APIResources"
        yield Page(
            place,
            tag(group or "core", version),
            name,
            "Returns the resources of the version.",
            API_RESOURCES,
        )


def describe_page(page: Page, dialect: Dialect) -> dict[str, Any]:
    """Returns the path of a page with its operation."""
    schema: Schema = dialect.ref(page.schema) if page.schema else {"type": "string"}
    media = "application/jwk-set+json" if page.place.endswith("jwks") else "application/json"
    shown: Schema = {"content": {media: {"schema": schema}}}
    produces: Schema = {}
    if dialect.body_parameter:
        shown, produces = {"schema": schema}, {"produces": [media]}
    responses = {"200": {"description": "OK"} | shown, "401": {"description": "Unauthorized"}}
    operation = {
        "operationId": page.operation,
        "description": page.description,
        "tags": [page.tag],
        "responses": responses,
    }
    return {f"/{page.place}/": {"get": operation | produces}}


def camel(group: str) -> str:
    """Returns the name of an API group as operations have it, such as RbacAuthorization."""
    return "".join(part.title() for part in group.removesuffix(".k8s.io").split("."))


def tag(group: str, version: str = "") -> str:
    """Returns the tag of a group's operations, such as rbacAuthorization_v1."""
    name = camel(group)
    return name[:1].lower() + name[1:] + (f"_{version}" if version else "")

"""The audit policy: which requests are in the audit log, and how much of them.

Source: staging/src/k8s.io/apiserver/pkg/audit/policy (checker.go, reader.go) and
pkg/apis/audit/validation, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kcm import errors
from kcm.apimachinery.names import subdomain_faults
from kcm.apiserver.auth.attributes import Attributes, User

Level = Literal["None", "Metadata", "Request", "RequestResponse"]
Stage = Literal["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]
_LEVELS: Sequence[Level] = get_args(Level)  # the more, the later


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GroupResources(_Part):
    """Resources of an API group."""

    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = Field(default=(), alias="resourceNames")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.group not in ("", "*") and (faults := subdomain_faults(self.group)):
            raise ValueError(f"group {self.group!r}: {'; '.join(faults)}")
        if self.resource_names and not self.resources:
            raise ValueError("using resourceNames requires at least one resource")
        return self

    def matches(self, asked: Attributes) -> bool:
        """Reports whether a request is for one of them."""
        if self.group not in (asked.group, "*"):
            return False
        if not self.resources:
            return True
        if self.resource_names and asked.name not in self.resource_names:
            return False
        patterns = {asked.full_resource, "*", f"{asked.resource}/*"}
        patterns |= {f"*/{asked.subresource}"} if asked.subresource else set()
        return not patterns.isdisjoint(self.resources)


class Rule(_Part):
    """The level of the requests that it matches."""

    level: Level
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = Field(default=(), alias="userGroups")
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = Field(default=(), alias="nonResourceURLs")
    omit_stages: tuple[Stage, ...] = Field(default=(), alias="omitStages")
    omit_managed_fields: bool | None = Field(default=None, alias="omitManagedFields")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.non_resource_urls and (self.resources or self.namespaces):
            raise ValueError("a rule is about resources or about nonResourceURLs, not about both")
        for url in self.non_resource_urls:
            if url != "*" and (not url.startswith("/") or "*" in url[:-1]):
                raise ValueError(f"nonResourceURLs: {url!r} must begin with / and may end with *")
        return self

    def matches(self, asked: Attributes, user: User) -> bool:
        """Reports whether the rule is about a request."""
        if self.users and user.name not in self.users:
            return False
        if self.user_groups and set(self.user_groups).isdisjoint(user.groups):
            return False
        if self.verbs and asked.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._matches_resource(asked)
        if self.non_resource_urls:
            return bool(asked.path) and any(
                asked.path == url or (url.endswith("*") and asked.path.startswith(url.rstrip("*")))
                for url in self.non_resource_urls
            )
        return True

    def _matches_resource(self, asked: Attributes) -> bool:
        if asked.path or (self.namespaces and asked.namespace not in self.namespaces):
            return False
        return not self.resources or any(one.matches(asked) for one in self.resources)


class Policy(_Part):
    """The rules, of which the first that matches decides; without one, nothing is logged."""

    api_version: Literal["audit.k8s.io/v1"] = Field(alias="apiVersion")
    kind: Literal["Policy"]
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    rules: tuple[Rule, ...] = Field(min_length=1)
    omit_stages: tuple[Stage, ...] = Field(default=(), alias="omitStages")
    omit_managed_fields: bool = Field(default=False, alias="omitManagedFields")

    def find(self, asked: Attributes, user: User) -> Rule | None:
        """Returns the rule for a request, None if it is not logged."""
        rule = next((rule for rule in self.rules if rule.matches(asked, user)), None)
        return rule if rule is not None and rule.level != "None" else None

    def omits(self, rule: Rule, stage: Stage) -> bool:
        """Reports whether requests of a rule have no event at a stage."""
        return stage in self.omit_stages or stage in rule.omit_stages

    def omits_managed_fields(self, rule: Rule) -> bool:
        """Reports whether objects are logged without their managed fields."""
        chosen = rule.omit_managed_fields
        return self.omit_managed_fields if chosen is None else chosen


def reaches(rule: Rule, level: Level) -> bool:
    """Reports whether a rule asks for what belongs to a level."""
    return _LEVELS.index(rule.level) >= _LEVELS.index(level)


def load(path: Path) -> Policy:
    """Reads a policy. Raises ConfigurationError."""
    try:
        return Policy.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except (OSError, UnicodeError, yaml.YAMLError, ValidationError) as error:
        raise errors.ConfigurationError(f"--audit-policy-file {path}: {error}") from error

"""Whether the rules and selectors of a policy, binding or webhook match a write.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/matching/matching.go and
plugin/webhook/predicates, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kcm import errors
from kcm.api.admissionregistration_v1 import (
    CLUSTER,
    EQUIVALENT,
    NAMESPACED,
    MatchResources,
    NamedRuleWithOperations,
)
from kcm.api.scheme import Kinds, Resource
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.helpers.admission_rules import has_value, names_request

Labels = Mapping[str, str]
_Sort = tuple[Resource, str, str, bool]  # with subresource, operation, and whether in a namespace
_MOST_KNOWN = 256  # sorts of writes that a matcher remembers


class Matcher:
    """The rules and selectors of a policy or of a binding, prepared once."""

    def __init__(self, matching: MatchResources | None, served: Kinds) -> None:
        self._served = served
        self._rules: Sequence[NamedRuleWithOperations] = ()
        self._excluded: Sequence[NamedRuleWithOperations] = ()
        self._equivalent = True
        self._namespaces = self._objects = Selector.parse("")
        if matching is not None:
            self._rules = matching.resource_rules or ()
            self._excluded = matching.exclude_resource_rules or ()
            self._equivalent = matching.match_policy in (None, EQUIVALENT)
            if matching.namespace_selector is not None:
                self._namespaces = Selector.from_label_selector(matching.namespace_selector)
            if matching.object_selector is not None:
                self._objects = Selector.from_label_selector(matching.object_selector)
        # Rules without names match all writes of a sort, or none.
        self._names_no_object = not any(rule.resource_names for rule in self._rules)
        self._matched: set[_Sort] = set()  # sorts that the rules match in the request's version
        selectors = (self._namespaces, self._objects)
        self._selects = not all(selector.empty for selector in selectors)
        self._is_narrow = self._selects or bool(self._rules or self._excluded)

    def may_match(self, resource: Resource, subresource: str, operation: str) -> bool:
        """Reports whether some rule is about such requests, in whatever version.

        Without rules it is, as in bindings that do not narrow their policy.
        """
        kinds = self._served.versions(resource.name) if self._equivalent else ()
        return not self._rules or any(
            names_request(rule, kind.group, kind.plural, subresource, operation)
            for rule in self._rules
            for kind in (resource, *kinds)
        )

    def match(
        self, write: WriteAttributes, namespace_labels: Callable[[], Labels]
    ) -> Resource | None:
        """Returns the version in which the write matches, or None if it does not.

        `namespace_labels` returns the labels of its namespace.
        """
        if not self._is_narrow:
            return write.resource
        if self._selects and not self._match_selectors(write, namespace_labels):
            return None
        if self._excluded and self._find_version(self._excluded, write) is not None:
            return None
        return self._match_rules(write) if self._rules else write.resource

    def _match_rules(self, write: WriteAttributes) -> Resource | None:
        if not self._names_no_object:
            return self._find_version(self._rules, write)
        sort = (write.resource, write.subresource, write.operation, bool(write.namespace_name))
        if sort in self._matched:
            return write.resource
        version = self._find_version(self._rules, write)
        if version is write.resource:  # in other versions that depends on which are served
            if len(self._matched) >= _MOST_KNOWN:
                self._matched.clear()
            self._matched.add(sort)
        return version

    def _find_version(
        self, rules: Sequence[NamedRuleWithOperations], write: WriteAttributes
    ) -> Resource | None:
        """Returns the version of the written kind that a rule matches, that of the request
        first.
        """
        if any(_matches(rule, write, write.resource) for rule in rules):
            return write.resource
        if not self._equivalent:
            return None
        for version in self._served.versions(write.resource.name):
            is_other = version.served and version is not write.resource
            if is_other and any(_matches(rule, write, version) for rule in rules):
                return version
        return None

    def _match_selectors(
        self, write: WriteAttributes, namespace_labels: Callable[[], Labels]
    ) -> bool:
        if not self._namespaces.empty and not self._match_namespace(write, namespace_labels):
            return False
        return self._objects.empty or self._match_objects(write)

    def _match_namespace(
        self, write: WriteAttributes, namespace_labels: Callable[[], Labels]
    ) -> bool:
        if write.is_namespace:
            obj = write.new or write.old
            return obj is not None and self._namespaces.matches(obj.metadata.labels)
        if not write.namespace:
            return True  # as upstream: objects without a namespace are never left out
        return self._namespaces.matches(namespace_labels())

    def _match_objects(self, write: WriteAttributes) -> bool:
        objects: Iterable[KubeObject | None] = (write.new, write.old)
        return any(self._objects.matches(o.metadata.labels) for o in objects if o is not None)


def _matches(rule: NamedRuleWithOperations, write: WriteAttributes, version: Resource) -> bool:
    names = rule.resource_names
    return (
        names_request(rule, version.group, version.plural, write.subresource, write.operation)
        and has_value(rule.api_versions, version.version)
        and _in_scope(rule, write)
        and (not names or write.name in names)
    )


def _in_scope(rule: NamedRuleWithOperations, write: WriteAttributes) -> bool:
    if rule.scope == NAMESPACED:
        return bool(write.namespace_name)
    if rule.scope == CLUSTER:
        return not write.namespace_name
    return True


def prepare_matcher(matching: MatchResources | None, served: Kinds) -> tuple[Matcher, str]:
    """Returns the matcher, and what is wrong with its selectors, "" if nothing is.

    With wrong selectors, the matcher has none, so that the failure policy decides about all
    requests that the rules name.
    """
    try:
        return Matcher(matching, served), ""
    except errors.BadRequest as error:
        assert matching is not None
        bare = matching.replace(namespace_selector=None, object_selector=None)
        return Matcher(bare, served), error.message

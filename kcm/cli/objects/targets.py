"""Parses which objects a command is about: `rs,pods`, `pod web-1 web-2`, `rs/web pod/x`,
selectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from kcm import errors
from kcm.api.scheme import Kinds, Resource
from kcm.apiextensions.field_selectors import FieldSelector
from kcm.apimachinery.labels import Selector

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class NamedObjects:
    """Objects of one kind by their names, or all of them if there are no names."""

    resource: Resource
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class CommandSelection:
    """The namespace and the selectors of a command."""

    namespace: str | None  # None stands for all namespaces
    labels: Selector | None = None
    fields: FieldSelector | None = None

    def key(self, resource: Resource, name: str) -> str:
        """Returns the key of the object with this name."""
        return f"{self.namespace or DEFAULT_NAMESPACE}/{name}" if resource.namespaced else name

    def scope(self, resource: Resource) -> str | None:
        """Returns the namespace to list, None for all and for kinds without namespaces."""
        return self.namespace if resource.namespaced else None


def parse_targets(words: Sequence[str], kinds: Kinds) -> list[NamedObjects]:
    """Parses kubectl's notations for objects of these kinds.

    Raises UnknownKind, and click.UsageError for words that do not go together.
    """
    if not words:
        raise click.UsageError("You must specify the type of resource, for example: pods")
    if any("/" in word for word in words):
        return [_parse_slashed(word, kinds) for word in words]
    resources = list(
        dict.fromkeys(r for kind in words[0].split(",") for r in _find_kinds(kind, kinds))
    )
    names = tuple(words[1:])
    return [NamedObjects(resource, names) for resource in resources]


def _parse_slashed(word: str, kinds: Kinds) -> NamedObjects:
    kind, slash, name = word.partition("/")
    if not slash or not kind or not name or "/" in name:
        raise click.UsageError(
            f"forms cannot be mixed: write KIND/NAME for each object, not {word!r}"
        )
    return NamedObjects(kinds.lookup(kind), (name,))


def _find_kinds(word: str, kinds: Kinds) -> list[Resource]:
    in_category = [r for r in kinds.resources() if word.lower() in r.categories]
    return in_category or [kinds.lookup(word)]


def namespace_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options `-n` and `-A` to a command."""
    command = click.option("-A", "--all-namespaces", is_flag=True, help="Use all namespaces.")(
        command
    )
    return namespace_option(command)


def namespace_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the option `-n` to a command."""
    return click.option(
        "-n", "--namespace", metavar="NS", default="", help="The namespace; default if not given."
    )(command)


def selector_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options `-l` and `--field-selector` to a command."""
    command = click.option(
        "--field-selector",
        metavar="FIELDS",
        default="",
        help="Only objects with these fields: status.phase!=Running,spec.nodeName=n1.",
    )(command)
    return click.option(
        "-l",
        "--selector",
        metavar="LABELS",
        default="",
        help="Only objects with these labels: app=web,tier in (a,b),!canary.",
    )(command)


def selection(
    namespace: str, all_namespaces: bool, selector: str, field_selector: str
) -> CommandSelection:
    """Returns the selection for a command's options. Raises BadRequest for an invalid selector."""
    return CommandSelection(
        namespace=None if all_namespaces else namespace or DEFAULT_NAMESPACE,
        labels=Selector.parse(selector) if selector else None,
        fields=FieldSelector.parse(field_selector) if field_selector else None,
    )


def require_names_alone(targets: Sequence[NamedObjects], chosen: CommandSelection) -> None:
    """Raises BadRequest for names together with a selector, as kubectl does."""
    if (chosen.labels or chosen.fields) and any(target.names for target in targets):
        raise errors.BadRequest("name cannot be provided when a selector is specified")

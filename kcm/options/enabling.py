"""Decides which controllers `--controllers` enables, by upstream's rules.

Source: IsControllerEnabled in staging/src/k8s.io/controller-manager/app/helper.go,
options/generic.go (names, aliases, unknown ones), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kcm import errors
from kcm.options.names import BY_NAME, KNOWN
from kcm.reconcile.contract import Controller

Types = Sequence[type[Controller]]


def known_controllers(types: Types) -> tuple[str, ...]:
    """Returns the names of all controllers: upstream's, and those of a user's own controllers."""
    own = [kind.name for kind in types if kind.name not in BY_NAME]
    return (*BY_NAME, *own)


def controller_aliases(types: Types) -> Mapping[str, str]:
    """Returns the controllers' names by their older and short names."""
    aliases = {known.alias: known.name for known in KNOWN if known.alias}
    aliases.update((kind.short_name, kind.name) for kind in types if kind.short_name != kind.name)
    return aliases


def controllers_disabled_by_default(types: Types) -> frozenset[str]:
    """Returns the names of the controllers that `*` does not enable."""
    theirs = {known.name for known in KNOWN if known.disabled_by_default}
    return frozenset(theirs | {kind.name for kind in types if kind.disabled_by_default})


def is_controller_enabled(
    name: str, disabled_by_default: Collection[str], controllers: Sequence[str]
) -> bool:
    """Reports whether the list enables `name`.

    The first entry with the name decides, then `*`; otherwise it is disabled.
    """
    for entry in controllers:
        if entry == name:
            return True
        if entry == f"-{name}":
            return False
    return "*" in controllers and name not in disabled_by_default


def resolve_names(controllers: Sequence[str], types: Types) -> tuple[str, ...]:
    """Returns the list with names in place of aliases.

    Raises ConfigurationError for unknown names, and for a controller of upstream that is enabled by
    name but not part of kcm.
    """
    aliases, known = controller_aliases(types), known_controllers(types)
    built = {kind.name for kind in types}
    resolved, faults = [], []
    for entry in controllers or ("*",):
        sign, name = ("-", entry[1:]) if entry.startswith("-") else ("", entry)
        name = aliases.get(name, name)
        resolved.append(sign + name)
        if name == "*" and not sign:
            continue
        if name not in known:
            faults.append(f'"{name}" is not in the list of known controllers')
        elif not sign and name not in built and not BY_NAME[name].cloud:
            faults.append(f'"{name}" is a controller of Kubernetes that kcm does not have yet')
    if faults:
        raise errors.ConfigurationError(f"--controllers: {'; '.join(faults)}\n{_listing(types)}")
    return tuple(resolved)


def _listing(types: Types) -> str:
    names = sorted(f"{kind.name} ({kind.short_name})" for kind in types)
    return f"controllers of this kcm: {', '.join(names) or '(none)'}"

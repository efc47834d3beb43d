"""The named formats of Kubernetes: `format.dns1123Label().validate(name)`.

Functions of ours cannot return optionals. They return a list of one value or none instead, whose
first item, if there is one, `spelling` takes as the optional.

Source: staging/src/k8s.io/apiserver/pkg/cel/library/format.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kcm.apiextensions.cel.library import network
from kcm.apiextensions.cel.library.tagged import NAMED_FORMAT, tag, untag
from kcm.apiextensions.patterns import has_format
from kcm.apimachinery import names

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LONGEST = 10_000_000  # characters of a text that is checked


def named(name: str) -> list[dict[str, Any]]:
    """Returns a list of the format with this name, an empty one if there is none."""
    return [tag(NAMED_FORMAT, name)] if name in FORMATS else []


def validate(value: Any, text: str) -> list[list[str]]:
    """Returns a list of what is wrong with a text, all of it as one item; an empty one if nothing
    is. Raises ValueError if `value` is no format.
    """
    check = FORMATS.get(str(untag(value, NAMED_FORMAT)))
    if check is None or len(text) > _LONGEST:
        raise ValueError("no such overload")
    faults = check(text)
    return [faults] if faults else []


def _before_suffix(check: names.NameFaults) -> names.NameFaults:
    """Returns the check of a name that ends where generated characters follow."""

    def run(text: str) -> list[str]:
        is_open = len(text) > 1 and text.endswith("-")
        return check(f"{text[:-2]}a" if is_open else text)

    return run


def _uri(text: str) -> list[str]:
    if not text:
        return ['parse "": empty url']
    return [] if network.is_url(text) else [f'parse "{text}": invalid URI for request']


def _by(message: str, fits: Callable[[str], bool]) -> names.NameFaults:
    return lambda text: [] if fits(text) else [message]


FORMATS: Mapping[str, names.NameFaults] = {
    "dns1123Label": names.label_faults,
    "dns1123Subdomain": names.subdomain_faults,
    "dns1035Label": names.label_1035_faults,
    "qualifiedName": names.qualified_name_faults,
    "dns1123LabelPrefix": _before_suffix(names.label_faults),
    "dns1123SubdomainPrefix": _before_suffix(names.subdomain_faults),
    "dns1035LabelPrefix": _before_suffix(names.label_1035_faults),
    "labelValue": names.label_value_faults,
    "uri": _uri,
    "uuid": _by("does not match the UUID format", lambda text: has_format("uuid", text)),
    "byte": _by("invalid base64", lambda text: text != "" and has_format("byte", text)),
    "date": _by(
        "invalid date", lambda text: bool(_DATE.fullmatch(text)) and has_format("date", text)
    ),
    "datetime": _by("invalid datetime", lambda text: has_format("datetime", text)),
}
"""What each named format says is wrong with a text, by its name."""

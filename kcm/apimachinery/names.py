"""The grammars of names, labels and keys, with upstream's messages.

Each `*_faults` function returns a message for each fault of a text, none for a valid one.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go and
staging/src/k8s.io/apiserver/pkg/storage/names/generate.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED})?"
_PORT_NAME = r"[-a-z0-9]+"

_LABEL_RE = re.compile(_LABEL)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)
_LABEL_UNDERSCORE = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_UNDERSCORE_RE = re.compile(rf"{_LABEL_UNDERSCORE}(\.{_LABEL_UNDERSCORE})*")
_LABEL_1035_RE = re.compile(_LABEL_1035)
_QUALIFIED_RE = re.compile(_QUALIFIED)
_LABEL_VALUE_RE = re.compile(_LABEL_VALUE)
_PORT_NAME_RE = re.compile(_PORT_NAME)

LABEL_MAX = 63
SUBDOMAIN_MAX = 253
_LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
    "or '.', and must start and end with an alphanumeric character"
)
_WILDCARD_MESSAGE = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
    "which must consist of lower case alphanumeric characters, '-' or '.' and end with an "
    "alphanumeric character"
)
_LABEL_1035_MESSAGE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_QUALIFIED_MESSAGE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character"
)
_LABEL_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
    "or '.', and must start and end with an alphanumeric character"
)

NameFaults = Callable[[str], list[str]]


def label_faults(text: str) -> list[str]:
    """Checks an RFC 1123 label, such as a namespace or a container name."""
    return _faults(text, _LABEL_RE, LABEL_MAX, _LABEL_MESSAGE, _LABEL, "my-name", "123-abc")


def subdomain_faults(text: str) -> list[str]:
    """Checks an RFC 1123 subdomain, such as the name of most objects."""
    return _faults(
        text, _SUBDOMAIN_RE, SUBDOMAIN_MAX, _SUBDOMAIN_MESSAGE, _SUBDOMAIN, "example.com"
    )


def subdomain_with_underscore_faults(text: str) -> list[str]:
    """Checks a subdomain that may have underscores, such as a DNS search domain."""
    faults = [max_length(SUBDOMAIN_MAX)] if len(text) > SUBDOMAIN_MAX else []
    if not _SUBDOMAIN_UNDERSCORE_RE.fullmatch(text):
        message = _SUBDOMAIN_MESSAGE.replace("'-' or '.'", "'_', '-' or '.'")
        faults.append(_regex_message(message, _SUBDOMAIN, "example.com"))
    return faults


def wildcard_subdomain_faults(text: str) -> list[str]:
    """Checks a subdomain whose first label is an asterisk: *.example.com."""
    faults = [max_length(SUBDOMAIN_MAX)] if len(text) > SUBDOMAIN_MAX else []
    if not (text.startswith("*.") and _SUBDOMAIN_RE.fullmatch(text[2:])):
        pattern = rf"\*\.{_SUBDOMAIN}"
        faults.append(_regex_message(_WILDCARD_MESSAGE, pattern, "*.example.com"))
    return faults


def label_1035_faults(text: str) -> list[str]:
    """Checks an RFC 1035 label, such as the name of a service."""
    return _faults(
        text, _LABEL_1035_RE, LABEL_MAX, _LABEL_1035_MESSAGE, _LABEL_1035, "my-name", "abc-123"
    )


def label_value_faults(text: str) -> list[str]:
    """Checks the value of a label, which may be empty."""
    return _faults(
        text,
        _LABEL_VALUE_RE,
        LABEL_MAX,
        _LABEL_VALUE_MESSAGE,
        _LABEL_VALUE,
        "MyValue",
        "my_value",
        "12345",
    )


def qualified_name_faults(text: str) -> list[str]:
    """Checks the key of a label, annotation, taint or finalizer: `name` or `prefix/name`."""
    faults = []
    prefix, slash, name = text.rpartition("/")
    if prefix.count("/"):
        return [
            "a qualified name "
            + _regex_message(_QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if slash:
        faults += ["prefix part must be non-empty"] if not prefix else []
        faults += [f"prefix part {fault}" for fault in subdomain_faults(prefix)] if prefix else []
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > LABEL_MAX:
        faults.append("name part " + max_length(LABEL_MAX))
    if not _QUALIFIED_RE.fullmatch(name):
        faults.append(
            "name part "
            + _regex_message(_QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc")
        )
    return faults


def port_name_faults(text: str) -> list[str]:
    """Checks an IANA service name, such as the name of a container port."""
    faults = []
    if len(text) > 15:
        faults.append(max_length(15))
    if not _PORT_NAME_RE.fullmatch(text):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        faults.append("must contain at least one letter (a-z)")
    if "--" in text:
        faults.append("must not contain consecutive hyphens")
    if text[:1] == "-" or text[-1:] == "-":
        faults.append("must not begin or end with a hyphen")
    return faults


def env_var_faults(text: str) -> list[str]:
    """Checks the name of an environment variable: printable ASCII characters except "=".

    These are the rules of RelaxedEnvironmentVariableValidation.
    """
    faults = []
    if not text:
        faults.append("environment variable name must be non-empty")
    if any(not " " <= char <= "~" or char == "=" for char in text):
        faults.append(
            "a valid environment variable name must consist only of printable ASCII "
            "characters other than '='"
        )
    return faults


_CONFIG_MAP_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_CONFIG_MAP_KEY_MESSAGE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def config_map_key_faults(text: str) -> list[str]:
    """Checks a key in the data of a ConfigMap or Secret."""
    faults = []
    if len(text) > SUBDOMAIN_MAX:
        faults.append(max_length(SUBDOMAIN_MAX))
    if not _CONFIG_MAP_KEY.fullmatch(text):
        faults.append(_CONFIG_MAP_KEY_MESSAGE)
    elif text == ".":
        faults.append("must not be '.'")
    elif text == "..":
        faults.append("must not be '..'")
    elif text.startswith(".."):
        faults.append("must not start with '..'")
    return faults


def path_segment_faults(text: str) -> list[str]:
    """Checks a name that has to be a segment of a URL path: not `.` or `..`, no `/` and `%`."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in text]


def max_length(length: int) -> str:
    return f"must be no more than {length} characters"


def _faults(
    text: str, regex: re.Pattern[str], longest: int, message: str, pattern: str, *examples: str
) -> list[str]:
    faults = []
    if len(text) > longest:
        faults.append(max_length(longest))
    if not regex.fullmatch(text):
        faults.append(_regex_message(message, pattern, *examples))
    return faults


def _regex_message(message: str, pattern: str, *examples: str) -> str:
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{pattern}')"


_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so that no words result by chance
_SUFFIX_LENGTH = 5
_PREFIX_MAX = LABEL_MAX - _SUFFIX_LENGTH


def generate_name(prefix: str, rng: random.Random) -> str:
    """Returns the prefix, cut to 58 characters, followed by five random characters."""
    return prefix[:_PREFIX_MAX] + "".join(rng.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))


def safe_encode(text: str) -> str:
    """Returns the text with each character mapped to one of generated names (SafeEncodeString)."""
    return "".join(_SUFFIX_ALPHABET[ord(char) % len(_SUFFIX_ALPHABET)] for char in text)

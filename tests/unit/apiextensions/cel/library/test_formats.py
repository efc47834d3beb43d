"""Named formats in expressions.

The cases follow TestFormat in staging/src/k8s.io/apiserver/pkg/cel/library/format_test.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import itertools

import pytest

from kcm.apiextensions.cel.library.formats import FORMATS
from tests.unit.apiextensions.cel.library.test_functions import value_of

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    "call",
    [
        'dns1123Label().validate("my-label-name")',
        'dns1123Subdomain().validate("apiextensions.k8s.io")',
        'qualifiedName().validate("apiextensions.k8s.io/v1beta1")',
        'dns1123LabelPrefix().validate("my-label-prefix-")',
        'dns1123SubdomainPrefix().validate("mysubdomain.prefix.-")',
        'dns1035LabelPrefix().validate("my-label-prefix-")',
        'uri().validate("http://example.com")',
        'uuid().validate("123e4567-e89b-12d3-a456-426614174000")',
        'byte().validate("aGVsbG8=")',
        'date().validate("2021-01-01")',
        'datetime().validate("2021-01-01T00:00:00Z")',
        'dns1123Subdomain().validate("example.com")',
        'dns1035Label().validate("my-label-name")',
        'qualifiedName().validate("my.name")',
        'labelValue().validate("my-cool-label-Value")',
    ],
)
def test_what_fits_has_no_value(call: str) -> None:
    assert value_of(f"format.{call}.hasValue()") is False


@pytest.mark.parametrize(
    ("call", "faults"),
    [
        ('dns1123Label().validate("contains a space")', [LABEL]),
        ('dns1123LabelPrefix().validate("-")', [LABEL]),
        ('dns1123Subdomain().validate("contains a space")', [SUBDOMAIN]),
        ('dns1035Label().validate("contains a space")', [LABEL_1035]),
        ('qualifiedName().validate("contains a space")', [QUALIFIED]),
        ('dns1123LabelPrefix().validate("contains a space-")', [LABEL]),
        ('dns1123SubdomainPrefix().validate("contains a space-")', [SUBDOMAIN]),
        ('dns1035LabelPrefix().validate("contains a space-")', [LABEL_1035]),
        ('labelValue().validate("my-cool-label-Value!!\\n\\n!!!")', [LABEL_VALUE]),
        ('uri().validate("no uri")', ['parse "no uri": invalid URI for request']),
        ('uri().validate("")', ['parse "": empty url']),
        ('uuid().validate("x")', ["does not match the UUID format"]),
        ('byte().validate("aGVsbG8")', ["invalid base64"]),
        ('date().validate("2020-01-32")', ["invalid date"]),
        ('date().validate("20200101")', ["invalid date"]),
        ('datetime().validate("2020-01-32T00:00:00Z")', ["invalid datetime"]),
    ],
)
def test_what_does_not_fit_is_told_in_upstreams_words(call: str, faults: list[str]) -> None:
    assert value_of(f"format.{call}.value()") == faults


def test_formats_are_found_by_their_names_and_compared() -> None:
    assert value_of('format.named("unknown").hasValue()') is False
    for name in FORMATS:
        assert value_of(f'format.named("{name}").hasValue()') is True
        assert value_of(f'format.named("{name}").value() == format.{name}()') is True
    for left, right in itertools.permutations(FORMATS, 2):
        assert value_of(f"format.{left}() == format.{right}()") is False


def test_results_are_optionals_like_others() -> None:
    named = 'format.named("dns1123Label")'
    assert value_of(f'{named}.optMap(f, f.validate("A").hasValue()).orValue(false)') is True
    assert value_of('format.byte().validate("x").value().join("|")') == "invalid base64"
    assert value_of('format.byte().validate("").orValue([])') == ["invalid base64"]

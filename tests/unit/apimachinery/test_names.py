"""The grammars of names."""

import random

import pytest

from kcm.apimachinery import names


@pytest.mark.parametrize("name", ["a", "web-1", "0", "a" * 63])
def test_good_labels(name: str) -> None:
    assert names.label_faults(name) == []


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a_b", "a\n", "é", "a" * 64])
def test_bad_labels(name: str) -> None:
    assert names.label_faults(name)


def test_a_bad_label_is_explained_in_upstreams_words() -> None:
    assert names.label_faults("Web") == [
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
        "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    ]


@pytest.mark.parametrize("name", ["a.b", "web-1.example.com", "1.2", "a" * 253])
def test_good_subdomains(name: str) -> None:
    assert names.subdomain_faults(name) == []


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "A.b", "a/b", "a" * 254])
def test_bad_subdomains(name: str) -> None:
    assert names.subdomain_faults(name)


def test_a_bad_subdomain_is_explained_in_upstreams_words() -> None:
    assert names.subdomain_faults("Web_1") == [
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
        r"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*"
        "[a-z0-9])?)*')"
    ]


# TestIsWildcardDNS1123Subdomain of apimachinery's util/validation
@pytest.mark.parametrize(
    ("name", "is_good"),
    [
        *((name, True) for name in ("*.example.com", "*.bar.com", "*.foo.bar.com")),
        *((name, False) for name in ("*.*.bar.com", "*.foo.*.com", "*bar.com", "f*.bar.com", "*")),
        ("foo.bar.com", False),
        ("*." + "a." * 125 + "a", True),
        ("*." + "a." * 125 + "aa", False),
    ],
)
def test_the_first_label_of_a_wildcard_is_an_asterisk(name: str, is_good: bool) -> None:
    assert (names.wildcard_subdomain_faults(name) == []) is is_good


def test_a_service_name_may_not_begin_with_a_digit() -> None:
    assert names.label_1035_faults("a1") == []
    assert names.label_1035_faults("1a")


@pytest.mark.parametrize(
    "name", ["a", "A.b_c-d", "example.com/name", "kubernetes.io/metadata.name"]
)
def test_good_qualified_names(name: str) -> None:
    assert names.qualified_name_faults(name) == []


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "name part must be non-empty"),
        ("/name", "prefix part must be non-empty"),
        ("example.com/", "name part must be non-empty"),
        ("A/name", "prefix part a lowercase RFC 1123 subdomain"),
        ("a/b/c", "with an optional DNS subdomain prefix and '/'"),
        ("-a", "name part must consist of alphanumeric"),
        ("a" * 64, "name part must be no more than 63"),
    ],
)
def test_bad_qualified_names(name: str, complaint: str) -> None:
    assert any(complaint in fault for fault in names.qualified_name_faults(name))


def test_label_values_may_be_empty() -> None:
    assert names.label_value_faults("") == []
    assert names.label_value_faults("My_value.1") == []
    assert names.label_value_faults("a b")
    assert names.label_value_faults("-")


@pytest.mark.parametrize("name", ["http", "a1", "web-http"])
def test_good_port_names(name: str) -> None:
    assert names.port_name_faults(name) == []


@pytest.mark.parametrize("name", ["HTTP", "80", "a--b", "-a", "a-", "a" * 16])
def test_bad_port_names(name: str) -> None:
    assert names.port_name_faults(name)


def test_environment_variables_are_printable_ascii_without_an_equals_sign() -> None:
    assert names.env_var_faults("my var:1") == []
    assert names.env_var_faults("a=b")
    assert names.env_var_faults("é")
    assert names.env_var_faults("")


def test_path_segments_leave_room_for_a_path() -> None:
    assert names.path_segment_faults("Any Thing.1") == []
    assert names.path_segment_faults("..") == ["may not be '..'"]
    assert names.path_segment_faults("a/b%") == ["may not contain '/'", "may not contain '%'"]


def test_a_generated_name_adds_five_characters_to_at_most_58() -> None:
    rng = random.Random(1)
    name = names.generate_name("web-", rng)
    assert name.startswith("web-")
    assert len(name) == 9
    assert set(name[4:]) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert len(names.generate_name("x" * 80, rng)) == 63
    assert names.generate_name("a-", random.Random(7)) == names.generate_name(
        "a-", random.Random(7)
    )

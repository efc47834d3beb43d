"""The functions of Kubernetes' libraries in expressions.

The cases follow quantity_test.go, semver_test.go, ip_test.go, cidr_test.go and urls_test.go of
staging/src/k8s.io/apiserver/pkg/cel/library, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.apiextensions.cel.expressions import evaluate


def value_of(text: str) -> Any:
    result = evaluate(text, {"self": {}})
    assert result.error == "", result.error
    return result.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('quantity("12Mi") == quantity("12582912")', True),
        ('isQuantity("20Mi")', True),
        ('isQuantity("20Mo")', False),
        ('quantity("50M").isGreaterThan(quantity("50Mi"))', False),
        ('quantity("50M").isLessThan(quantity("50Mi"))', True),
        ('quantity("200M").compareTo(quantity("0.2G"))', 0),
        ('quantity("50k").add(quantity("20")) == quantity("50020")', True),
        ('quantity("50k").sub(20) == quantity("49980")', True),
        ('quantity("50k").asInteger()', 50000),
        ('quantity("0.5").isInteger()', False),
        ('quantity("50.703k").asApproximateFloat()', 50703.0),
        ('quantity("-1").sign()', -1),
        ('semver("1.2.3").isLessThan(semver("1.10.0"))', True),
        ('semver("1.0.0-alpha.1").isLessThan(semver("1.0.0-alpha.beta"))', True),
        ('semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))', True),
        ('semver("1.2.3").compareTo(semver("1.2.3"))', 0),
        ('[semver("1.2.3").major(), semver("1.2.3").minor(), semver("1.2.3").patch()]', [1, 2, 3]),
        ('isSemver("v1.0")', False),
        ('isSemver("v1.0", true)', True),
        ('isSemver("01.0.0")', False),
        ('isSemver("1.0.0-01")', False),
        ('semver("v01.01", true) == semver("1.1.0")', True),
    ],
)
def test_quantities_and_versions(text: str, expected: Any) -> None:
    assert value_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('ip("192.168.0.1") == ip("192.168.0.1")', True),
        ('isIP("192.168.0.1.0")', False),
        ('isIP("::ffff:192.168.0.1")', False),
        ('isIP("fe80::1%en0")', False),
        ('ip.isCanonical("2001:db8::abcd")', True),
        ('ip.isCanonical("2001:DB8::ABCD")', False),
        ('ip("2001:db8::68").family()', 6),
        ('ip("0.0.0.0").isUnspecified()', True),
        ('ip("127.0.0.1").isLoopback()', True),
        ('ip("224.0.0.1").isLinkLocalMulticast()', True),
        ('ip("224.0.1.1").isLinkLocalMulticast()', False),
        ('ip("ff02::1").isLinkLocalMulticast()', True),
        ('ip("169.254.169.254").isLinkLocalUnicast()', True),
        ('ip("192.168.0.1").isGlobalUnicast()', True),
        ('ip("255.255.255.255").isGlobalUnicast()', False),
        ('cidr("192.168.0.0/24").containsIP("192.168.0.1")', True),
        ('cidr("192.168.0.0/24").containsIP(ip("192.168.1.1"))', False),
        ('cidr("192.168.0.0/24").containsCIDR("192.168.0.0/25")', True),
        ('cidr("192.168.0.0/24").containsCIDR(cidr("192.168.0.0/23"))', False),
        ('cidr("192.168.0.0/24").containsCIDR("::/0")', False),
        ('cidr("192.168.1.5/24").ip() == ip("192.168.1.5")', True),
        ('cidr("192.168.1.5/24").masked() == cidr("192.168.1.0/24")', True),
        ('cidr("2001:db8::/32").prefixLength()', 32),
        ('isCIDR("192.168.0.0/33")', False),
        ('isCIDR("192.168.0.0")', False),
        ('url("https://u:p@example.com:80/a").getHost()', "example.com:80"),
        ('url("https://[::1]:80/").getHostname()', "::1"),
        ('url("https://example.com/").getPort()', ""),
        ('url("https://example.com/path with").getScheme()', "https"),
        ('url("https://example.com/ä").getEscapedPath()', "/%C3%A4"),
        ('url("/path?k=a&k=b&l=")["x"] == 1', None),
        ('url("/path?k=a&k=b&l=").getQuery()', {"k": ["a", "b"], "l": [""]}),
        ('isURL("../relative-path")', False),
        ('isURL("https://a:b:c/")', False),
    ],
)
def test_addresses_and_urls(text: str, expected: Any) -> None:
    result = evaluate(text, {"self": {}})
    if expected is None:
        assert result.error
    else:
        assert (result.value, result.error) == (expected, "")


@pytest.mark.parametrize(
    "text",
    [
        'quantity("Three")',
        'quantity("1").isLessThan(semver("1.0.0"))',
        'self.isLessThan(quantity("1"))',
        'quantity("0.5").asInteger()',
        'semver("v1.0")',
        'ip("example.com")',
        'cidr("10.0.0.0/8").family()',
        "self.allowed()",
    ],
)
def test_a_value_of_another_type_is_an_error(text: str) -> None:
    assert evaluate(text, {"self": {}}).error

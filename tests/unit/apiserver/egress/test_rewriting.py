"""Which links of a proxied page lead back through the proxy."""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Callable

import pytest

from kcm.apiserver.egress.rewriting import MOST_HTML, Origin, join, rewrite_html, rewrite_page

NODE1 = "/proxy/node/node1:10250"
PLAIN = '<pre><a href="kubelet.log">kubelet.log</a><a href="/google.log">google.log</a></pre>'


def origin(
    scheme: str = "http", address: str = "foo.com", prefix: str = NODE1, host: str = "mynode.com",
    asked: str = "mynode.com",
) -> Origin:  # fmt: skip
    return Origin(host, asked, prefix, scheme, address)


# after TestProxyTransport in staging/src/k8s.io/apimachinery/pkg/util/proxy/transport_test.go
@pytest.mark.parametrize(
    ("page", "expected", "where"),
    [
        (PLAIN, PLAIN.replace('"/google', f'"http://foo.com{NODE1}/google'), origin()),
        (
            f"<html><header></header><body>{PLAIN}</body></html>",
            f"<html><header></header><body>{PLAIN}</body></html>".replace(
                '"/google', f'"http://foo.com{NODE1}/google'
            ),
            origin(),
        ),
        ('<a href="/google.log/">', f'<a href="http://foo.com{NODE1}/google.log/">', origin()),
        (
            '<a href="k.log">k</a><a href="/google.log">g</a>',
            '<a href="k.log">k</a><a href="https://foo.com/proxy/node/node1:8080/google.log">g</a>',
            origin("https", prefix="/proxy/node/node1:8080"),
        ),
        (
            '<img src="kubernetes.jpg"/><img src="/kubernetes_abs.jpg"/>',
            f'<img src="kubernetes.jpg"/><img src="http://foo.com{NODE1}/kubernetes_abs.jpg"/>',
            origin(),
        ),
        (
            '<script src="http://google.com/kubernetes.js"/>',
            '<script src="http://google.com/kubernetes.js"/>', origin(),
        ),
        (
            '<script src="http://mynode.com/kubernetes.js"/>',
            f'<script src="http://foo.com{NODE1}/kubernetes.js"/>', origin(),
        ),
        (
            f'<a href="http://foo.com{NODE1}/google.log">', f'<a href="http://foo.com{NODE1}/google.log">',
            origin(host="foo.com", asked="foo.com"),
        ),
        ("<html></html>", "<html></html>", origin("https", "")),
        ("<html></html>", "<html></html>", origin("")),
    ],
)  # fmt: skip
def test_absolute_links_of_the_server_lead_through_the_proxy(
    page: str, expected: str, where: Origin
) -> None:
    assert rewrite_html(page, where.rewrite) == expected


# the redirects of the same table
@pytest.mark.parametrize(
    ("location", "expected", "where"),
    [
        ("/redirected/target/", f"http://foo.com{NODE1}/redirected/target/", origin()),
        ("http://mynode.com/redirected/", f"http://foo.com{NODE1}/redirected/", origin()),
        ("http://example.com/redirected/", "http://example.com/redirected/", origin()),
        (
            "http://10.0.0.1:8001/redirected/target/",
            f"http://10.0.0.1:8001{NODE1}/redirected/target/",
            origin("", "", asked="10.0.0.1:8001"),
        ),
        ("http://mynode.com/x?a=b#c", f"{NODE1}/x?a=b#c", origin("", "", asked="other")),
        ("relative", "relative", origin()),
        ("http://[", "http://[", origin()),
        ("javascript:alert(1)", "javascript:alert(1)", origin()),
    ],
)
def test_redirects_of_the_server_lead_through_the_proxy(
    location: str, expected: str, where: Origin
) -> None:
    assert where.rewrite(location) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<A HREF='/x'>", "<A HREF='/p/x'>"),
        ("<a href=/x>", "<a href=/p/x>"),
        ('<a class="c" href = "/x?a&amp;b" id=i>', '<a class="c" href = "/p/x?a&amp;b" id=i>'),
        ('<!-- <a href="/x"> --><a href="/y">', '<!-- <a href="/x"> --><a href="/p/y">'),
        ('<script>if (a<b) "<a href=\\"/x\\">"</script><a href="/y">',
         '<script>if (a<b) "<a href=\\"/x\\">"</script><a href="/p/y">'),
        ('<textarea><a href="/x"></textarea >', '<textarea><a href="/x"></textarea >'),
        ('<a title="<a href=/x>" href="/y">', '<a title="<a href=/x>" href="/p/y">'),
        ('<a href="/x', '<a href="/x'),
        ('<p href="/x">1 < 2</p>', '<p href="/x">1 < 2</p>'),
        ('<a href="">', '<a href="">'),
        ("<!-- open", "<!-- open"),
        ('</a title="<a href=/x>"', '</a title="<a href=/x>"'),
    ],
)  # fmt: skip
def test_a_page_is_read_as_a_browser_reads_it(page: str, expected: str) -> None:
    assert rewrite_html(page, Origin("h", "h", "/p").rewrite) == expected


@pytest.mark.parametrize(
    "page", ["<", "<a ", '<a "', "<!--", "<script>", '<a href="', "<a/", "<a =", "<a b=", "< a"]
)
def test_no_page_takes_longer_than_its_size(page: str) -> None:
    before = time.process_time()
    rewrite_html(page * (200_000 // len(page)), Origin("h", "h", "/p").rewrite)
    assert time.process_time() - before < 5  # 0.1 s; minutes if it took the square of the size


_PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "deflate": lambda data: zlib.compress(data, wbits=-15),
}
_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.decompress,
    "deflate": lambda data: zlib.decompress(data, wbits=-15),
}


# after TestRewriteResponse in the same file
@pytest.mark.parametrize("text", ["short body test", "long body test" * 4097])
@pytest.mark.parametrize("encoding", ["", "gzip", "deflate"])
def test_a_page_keeps_its_encoding(text: str, encoding: str) -> None:
    unpack = _UNPACK[encoding]
    packed = _PACK[encoding](text.encode())
    assert unpack(packed) == text.encode()
    page = rewrite_page(packed, encoding, origin())
    assert page is not None
    assert unpack(page) == text.encode()


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(b"x", "br"), (b"no gzip", "gzip"), (gzip.compress(bytes(MOST_HTML + 1)), "gzip")],
)
def test_a_page_that_cannot_be_read_is_passed_on_as_it_is(body: bytes, encoding: str) -> None:
    assert rewrite_page(body, encoding, origin()) is None


def test_bytes_that_are_no_text_are_kept() -> None:
    body = bytes(range(256)).replace(b"<", b"")
    assert rewrite_page(body, "", origin()) == body


# after TestJoinPreservingTrailingSlash in staging/src/k8s.io/apimachinery/pkg/util/net/http_test.go
@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("", "/", "/"), ("", "/a", "/a"), ("", "/a/", "/a/"), ("/a", "/b", "/a/b"),
        ("/a/", "/b/", "/a/b/"), ("", "/a/../../b", "/b"), ("", "//a//b", "/a/b"),
        ("/a", "/", "/a/"),
    ],
)  # fmt: skip
def test_paths_are_joined_with_one_slash(base: str, path: str, expected: str) -> None:
    assert join(base, path) == expected

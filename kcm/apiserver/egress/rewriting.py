"""Leads the links of a proxied page, and redirects, back through the proxy.

Source: staging/src/k8s.io/apimachinery/pkg/util/proxy/transport.go, Kubernetes 1.33. Departures:
only the values that change are written anew, where upstream writes the whole tag; a page of more
than MOST_HTML bytes is passed on as it is.
"""

from __future__ import annotations

import html
import posixpath
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

MOST_HTML = 2 * 1024 * 1024  # bytes of a page whose links are rewritten, decompressed too

# The attributes of each element that hold URLs.
_LINKS = {
    "a": {"href"}, "applet": {"codebase"}, "area": {"href"}, "audio": {"src"}, "base": {"href"},
    "blockquote": {"cite"}, "body": {"background"}, "button": {"formaction"},
    "command": {"icon"}, "del": {"cite"}, "embed": {"src"}, "form": {"action"},
    "frame": {"longdesc", "src"}, "head": {"profile"}, "html": {"manifest"},
    "iframe": {"longdesc", "src"}, "img": {"longdesc", "src", "usemap"},
    "input": {"src", "usemap", "formaction"}, "ins": {"cite"}, "link": {"href"},
    "object": {"classid", "codebase", "data", "usemap"}, "q": {"cite"}, "script": {"src"},
    "source": {"src"}, "video": {"poster", "src"},
}  # fmt: skip
# Elements whose content has no tags.
_RAW = frozenset(
    {"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea",
     "title", "xmp"}
)  # fmt: skip
_WINDOW_BITS = {"gzip": 31, "deflate": -15}


@dataclass(frozen=True)
class Origin:
    """Where a response comes from, and under which path clients know it.

    `host` is the server's host and port, `asked_host` the client's Host header. `scheme` and
    `address` of the proxy are "" if rewritten links name no host.
    """

    host: str
    asked_host: str
    prefix: str
    scheme: str = ""
    address: str = ""

    def rewrite(self, link: str) -> str:
        """Returns a link through the proxy if it is an absolute path or URL of the server.

        Any other link is returned unchanged.
        """
        try:
            parts = urlsplit(link)
        except ValueError:
            return link
        if parts.netloc not in {"", self.host, self.asked_host} or parts.path[:1] != "/":
            return link
        keeps_host = parts.netloc == self.asked_host and not self.scheme and not self.address
        if not keeps_host:
            parts = parts._replace(scheme=self.scheme, netloc=self.address)
        if not parts.path.startswith(self.prefix):
            parts = parts._replace(path=join(self.prefix, parts.path))
        return urlunsplit(parts)


def join(base: str, path: str) -> str:
    """Returns the path below another, with `.`, `..` and repeated slashes resolved.

    A slash at the end is kept. The result never leaves `base` if that is "".
    """
    joined = posixpath.normpath(f"{base}/{path}")
    joined = "/" + joined.lstrip("/")
    return joined + "/" if path.endswith("/") and joined != "/" else joined


def rewrite_page(body: bytes, encoding: str, origin: Origin) -> bytes | None:
    """Returns the page with its links rewritten, in the same encoding.

    Returns None if it is to be passed on as it is: its encoding is unknown or damaged, or it is too
    large.
    """
    bits = _WINDOW_BITS.get(encoding)
    if bits is None and encoding:
        return None
    text = body if bits is None else _decompress(body, bits)
    if text is None or len(text) > MOST_HTML:
        return None
    page = rewrite_html(text.decode("latin-1"), origin.rewrite)
    changed = page.encode("latin-1", "xmlcharrefreplace")
    if bits is None:
        return changed
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(changed) + packer.flush()


def _decompress(body: bytes, bits: int) -> bytes | None:
    try:
        return zlib.decompressobj(wbits=bits).decompress(body, MOST_HTML + 1)
    except zlib.error:
        return None


_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_SPACE = re.compile(r"[\s/]*")
_ATTRIBUTE = re.compile(r"[^\s/>][^\s/>=]*")
_EQUALS = re.compile(r"\s*=\s*")
_BARE = re.compile(r"[^\s>]*")


def rewrite_html(page: str, rewrite: Callable[[str], str]) -> str:
    """Returns a page whose links are what `rewrite` returns for them.

    The time is linear in the page's length, whatever it contains.
    """
    pieces, done = [], 0
    for start, end in _links(page):
        link = html.unescape(page[start:end])
        changed = rewrite(link)
        if changed != link:
            pieces += [page[done:start], html.escape(changed)]
            done = end
    return "".join([*pieces, page[done:]])


def _links(page: str) -> Iterator[tuple[int, int]]:
    """Yields where the values of attributes with links begin and end."""
    at = 0
    while (at := page.find("<", at)) >= 0:
        if page.startswith("<!--", at):
            at = page.find("-->", at + 4)
        elif page.startswith(("<!", "<?", "</"), at):
            at = page.find(">", at)
        elif (name := _NAME.match(page, at + 1)) is not None:
            element = name[0].lower()
            attributes, end = _attributes(page, name.end())
            if end < 0:
                return
            wanted = _LINKS.get(element, set())
            yield from ((s, e) for attribute, s, e in attributes if attribute in wanted)
            is_empty = page[end - 1] == "/"
            at = _skip_raw(page, end, element) if element in _RAW and not is_empty else end
        else:
            at += 1
        if at < 0:
            return


def _attributes(page: str, at: int) -> tuple[list[tuple[str, int, int]], int]:
    """Returns a tag's attributes, each with the place of its value, and where its `>` is.

    The place is -1 if the tag does not end.
    """
    found: list[tuple[str, int, int]] = []
    while True:
        space = _SPACE.match(page, at)
        at = space.end() if space else at
        if at >= len(page):
            return found, -1
        if page[at] == ">":
            return found, at
        name = _ATTRIBUTE.match(page, at)
        assert name is not None
        at = name.end()
        equals = _EQUALS.match(page, at)
        if equals is None:
            continue
        start = equals.end()
        quote = page[start : start + 1]
        if quote and quote in "\"'":
            start += 1
            at = page.find(quote, start)
            if at < 0:
                return found, -1
            found.append((name[0].lower(), start, at))
            at += 1
        else:
            bare = _BARE.match(page, start)
            at = bare.end() if bare else start
            found.append((name[0].lower(), start, at))


def _skip_raw(page: str, at: int, element: str) -> int:
    """Returns where the content of an element without tags ends, -1 if it does not."""
    end = re.compile(rf"</{element}[\s/>]", re.IGNORECASE).search(page, at)
    return end.start() if end else -1

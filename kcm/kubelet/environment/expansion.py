"""Expands references like `$(NAME)` in values, commands and arguments.

`$$` is a dollar, a reference to an unknown name stays as it is, and nothing is expanded twice.

Source: third_party/forked/golang/expansion, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kcm.errors import ContainerConfigError


def expand(text: str, lookup: Callable[[str], str | None]) -> str:
    """Returns the text with its references replaced. `lookup` returns None for an unknown name."""
    out: list[str] = []
    at = 0
    while at < len(text):
        dollar = text.find("$", at)
        if dollar < 0 or dollar == len(text) - 1:
            out.append(text[at:])
            break
        out.append(text[at:dollar])
        following = text[dollar + 1]
        close = text.find(")", dollar + 2) if following == "(" else -1
        if close >= 0:
            value = lookup(text[dollar + 2 : close])
            out.append(text[dollar : close + 1] if value is None else value)
            at = close + 1
        else:
            out.append("$" if following == "$" else f"${following}")
            at = dollar + 2
    return "".join(out)


def expand_all(texts: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    """Returns the texts with references to the container's environment variables replaced."""
    return [expand(text, environment.get) for text in texts]


def expand_strictly(text: str, environment: Mapping[str, str]) -> str:
    """Returns the text with its references replaced, for subPathExpr.

    Raises ContainerConfigError for an unknown name.
    """

    def lookup(name: str) -> str:
        if name not in environment:
            raise ContainerConfigError(f'missing value for "{name}"')
        return environment[name]

    return expand(text, lookup)

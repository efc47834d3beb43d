from __future__ import annotations

from typing import Any

import pytest

from kcm.apiextensions.jsonpath import BadPathError, find, parse

BODY = {
    "a": {"b": [1, 2], "x.y": "dotted"},
    "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}],
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".a.b[0]", [1]),
        (".a.b[-1]", [2]),
        (".a.b[*]", [1, 2]),
        (".a['x.y']", ["dotted"]),
        (r".a.x\.y", ["dotted"]),
        (".nothing.here", []),
        (".a.", []),
        ("...", []),
        (".a.b[-1:]", [2]),
        (".a.b[0:1]", [1]),
        (".a.b[0:2]", [1, 2]),
        (".a.b[::2]", [1]),
        (".a.b[:]", [1, 2]),
        ("..type", ["Ready", "Other"]),
        (".conditions..status", ["True", "False"]),
        ("..b[0]", [1]),
        ('.conditions[?(@.type=="Ready")].status', ["True"]),
        (".conditions[?(@.type!='Ready')].status", ["False"]),
        (".a.b[?(@>1)]", [2]),
        (".a.b[?(@>=1)]", [1, 2]),
        (".a.b[?(@<2)]", [1]),
        (".a.b[?(@<=1)]", [1]),
        (".a.b[?(@<=2)]", [1, 2]),
    ],
)
def test_paths_lead_to_values(path: str, values: list[Any]) -> None:
    assert find(path, BODY) == values


@pytest.mark.parametrize(
    "path",
    [
        ".a[",
        ".a[x]",
        ".a..",
        "..a..b",
        ".a[" + "9" * 5_000 + "]",
        ".a[-1:" + "9" * 30 + "]",
        ".a" * 1_000,
        "[?(@.a==" + " " * 100_000,
        ".a[٣]",
    ],
)
def test_paths_that_are_not_simple_are_refused(path: str) -> None:
    with pytest.raises(BadPathError):
        parse(path)

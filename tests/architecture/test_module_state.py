"""No module collects what belongs to a store: it would outlive the store, and mix two of them.

See docs/designs/0049-a-scheme-for-each-store.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted([*(ROOT / "kcm").rglob("*.py"), *(ROOT / "workers").rglob("*.py")])
COLLECTIONS = frozenset(
    {"dict", "list", "set", "deque", "defaultdict", "OrderedDict", "WeakSet",
     "WeakKeyDictionary", "WeakValueDictionary"}
)  # fmt: skip
ALLOWED = {
    "_FIELDS",  # of kcm.apimachinery.base: sets of field names, of which there are few
}


def _is_empty_collection(value: ast.expr | None) -> bool:
    match value:
        case ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in COLLECTIONS
    return False


def _find_collectors(tree: ast.Module) -> Iterator[str]:
    """Yields the names of a module's collections that are empty at first, and its globals that
    functions set. An empty Mapping cannot be filled.
    """
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                if _is_empty_collection(value) and not ast.unparse(kind).startswith("Mapping["):
                    yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if _is_empty_collection(value):
                    yield name
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Global):
            yield from inner.names


@pytest.mark.parametrize("text", ["A = {}", "A: dict[str, int] = dict()", "A = weakref.WeakSet()"])
def test_a_collection_that_begins_empty_is_found(text: str) -> None:
    assert list(_find_collectors(ast.parse(text))) == ["A"]


def test_no_module_collects_anything() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        for name in _find_collectors(ast.parse(path.read_text()))
        if name not in ALLOWED and name != "__all__"
    }
    assert found == set()

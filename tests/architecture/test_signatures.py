"""Tests that no signature takes more than seven parameters, the receiver not counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kcm

ROOT = Path(kcm.__file__).parent
MOST = 7

# Commands, whose parameters are their flags.
COMMANDS = {
    "apiserver/command.py read_options",
    "cli/kubelet/command.py kubelet",
    "cli/objects/delete.py delete",
    "cli/objects/get.py get",
    "cli/token/command.py create",
    "cli/up/command.py up",
}
# Builders of tests, whose parameters are fields of the object, each with a default.
BUILDERS = {f"testing/builders.py {name}" for name in ("deployment", "node", "pod", "replica_set")}
# Those that are still to be bundled into types. None may be added.
TO_BUNDLE = {
    "informers/reflector.py __init__",
    "kubelet/eviction/manager.py __init__",
    "kubelet/kuberuntime/manager.py __init__",
    "kubelet/kuberuntime/starting.py __init__",
    "kubelet/loop/cleanup.py __init__",
    "kubelet/loop/handlers.py __init__",
    "kubelet/node/manager.py __init__",
    "kubelet/pod_workers/pod_workers.py __init__",
    "kubelet/pod_workers/syncer.py __init__",
    "kubelet/prober/manager.py __init__",
    "store/store.py modify",
    "testing/control_plane/plane.py __init__",
    "testing/faults/faults.py api",
    "testing/views.py __init__",
}


def count_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns the number of parameters, without `self` and `cls`."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    more = sum(argument is not None for argument in (arguments.vararg, arguments.kwarg))
    return len(names) - (names[:1] in (["self"], ["cls"])) + more


def list_long_signatures() -> Iterator[str]:
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if count_parameters(node) > MOST:
                yield f"{path.relative_to(ROOT)} {node.name}"


def test_signatures_are_short_and_what_was_bundled_is_off_the_list() -> None:
    assert set(list_long_signatures()) == COMMANDS | BUILDERS | TO_BUNDLE


def test_receivers_are_not_counted() -> None:
    (method,) = ast.parse("class A:\n def f(self, a, /, b, *c, d, **e): ...").body[0].body  # type: ignore[attr-defined] # a class
    assert count_parameters(method) == 5

"""Validation of paths in volumes and containers.

Source: validateLocalDescendingPath, validatePathNoBacksteps and ValidateLocalNonReservedPath in
pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apimachinery.field_errors import Faults, invalid

_FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def no_backsteps(target: str, path: str) -> Faults:
    """Checks that a path has no `..` elements."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending(target: str, path: str) -> Faults:
    """Checks that a path is relative and has no `..` elements."""
    absolute = [invalid(path, target, "must be a relative path")] if target[:1] == "/" else []
    return absolute + no_backsteps(target, path)


def not_reserved(target: str, path: str) -> Faults:
    """Checks that a path is descending and does not begin with `..`, which volumes reserve."""
    faults = descending(target, path)
    if target.startswith("..") and not target.startswith("../"):
        faults.append(invalid(path, target, "must not start with '..'"))
    return faults


def file_mode(mode: int | None, path: str) -> Faults:
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(path, mode, _FILE_MODE)]

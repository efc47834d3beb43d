"""Cases of custom kinds: definitions, and rules in CEL."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.upstream import cases
from tests.upstream.accepted import Differences
from tests.upstream.adapter import custom

_PER_VERSION = "subresources|selectableFields|additionalPrinterColumns"
_ENOUGH = 1_000_000  # steps: below, a case is about the budget, which kcm counts in seconds


def compare_definitions() -> Differences:
    """Returns where the verdict on a definition differs, and where only fields of its faults do.

    The cases with objects of v1beta1 are left out.
    """
    verdicts: dict[int, str] = {}
    fields: dict[int, str] = {}
    for number, case in cases.read("definitions"):
        new, old = case["new"], case["old"]
        if not new or _preserves_unknown_fields(new) or _preserves_unknown_fields(old):
            continue
        got = custom.judge_definition(new, old)
        wanted, gotten = {_path(field) for field, *_ in case["errs"]}, set(map(_path, got.fields))
        words = f"upstream: {case['errs']}"[:400] + f"; kcm: {got.words}"[:400]
        if bool(wanted) == got.accepted:
            verdicts[number] = words
        elif wanted != gotten:
            fields[number] = f"missing {wanted - gotten}, extra {gotten - wanted}; {words}"
    return {"definitions: verdicts": verdicts, "definitions: fields": fields}


def compare_rules() -> Differences:
    """Returns where the rules of a schema accept what upstream refuses, or the reverse.

    Cases with a budget or with ratcheting of the test's own are left out.
    """
    differing: dict[int, str] = {}
    for number, case in cases.read("rules"):
        if case["opts"] or case["budget"] < _ENOUGH:
            continue
        schema, obj, old = case["schema"], case["obj"], case["old"]
        if not case["root"]:
            schema = {"type": "object", "properties": {"root": schema}}
            obj, old = {"root": obj}, {"root": old} if old is not None else None
        got = custom.check_rules(schema, obj, old)
        if bool(case["errs"]) != bool(got):
            rule = json.dumps(case["schema"].get("x-kubernetes-validations") or "nested")
            differing[number] = f"{rule[:200]}: wanted {case['errs'][:1]}, got {got[:1]}"
    return {"rules": differing}


def compare_costs() -> Differences:
    """Returns where the estimated costs of a schema's rules differ."""
    differing: dict[int, str] = {}
    for number, case in cases.read("costs"):
        schema = case["schema"]
        if not case["root"]:
            schema = {"type": "object", "properties": {"root": schema}}
        got = custom.estimate_costs(schema)
        for path, index, *want in case["costs"]:
            where = path if case["root"] else f".root{path}"
            if got.get((where, index)) != tuple(want):
                rules = json.dumps(schema)[:200]
                differing[number] = f"{rules}: wanted {want}, got {got.get((where, index))}"
    return {"costs": differing}


def compare_pruning() -> Differences:
    """Returns where other fields are dropped from a value, or others are reported."""
    differing: dict[int, str] = {}
    for number, case in cases.read("pruning"):
        got, paths = custom.prune(case["schema"], case["given"], is_root=case["root"])
        wanted = case["paths"] if case["paths"] is not None else []
        if (got, paths) != (case["want"], wanted):
            differing[number] = f"wanted {case['want']} {wanted}, got {got} {paths}"
    return {"pruning": differing}


def compare_defaulting() -> Differences:
    """Returns where a value gets other defaults from its schema."""
    differing: dict[int, str] = {}
    for number, case in cases.read("defaulting"):
        got = custom.fill_defaults(case["schema"], case["given"])
        if got != case["want"]:
            differing[number] = f"wanted {case['want']}, got {got}"
    return {"defaulting": differing}


def _preserves_unknown_fields(obj: Any) -> bool:
    return bool(((obj or {}).get("spec") or {}).get("preserveUnknownFields"))


def _path(field: str) -> str:
    """Returns a field as the internal version, which has one schema for all versions, names it."""
    plain = re.sub(r"\s", "", field or "")
    shared = re.sub(rf"^spec\.versions\[\d+\]\.({_PER_VERSION})", r"spec.\1", plain)
    return re.sub(r"^spec\.(?:versions\[\d+\]\.)?(?:validation|schema)\b", "schema", shared)

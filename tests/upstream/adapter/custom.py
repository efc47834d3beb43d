"""Where upstream's cases of custom kinds call kcm."""

from __future__ import annotations

from kcm import errors
from kcm.api.custom import structural_schema
from kcm.apiextensions import defaulting, pruning
from kcm.apiextensions.cel import rules as cel_rules
from kcm.apiextensions.cel.rule_types import RuleTypes
from kcm.apiextensions.schemas import rule_checks
from kcm.kinds import defaults, validation
from tests.upstream.adapter import Json, Verdict, decode


def judge_definition(new: Json, old: Json) -> Verdict:
    """Returns kcm's verdict on a CustomResourceDefinition, and on the change from `old`."""
    try:
        definition = defaults.apply(decode(new))
        faults = (
            validation.validate_update(definition, defaults.apply(decode(old)))
            if old
            else validation.validate_create(definition)
        )
    except errors.KcmError as error:
        return Verdict(False, frozenset({"decode"}), str(error))
    fields = frozenset(fault.field for fault in faults)
    return Verdict(not faults, fields, "; ".join(map(str, faults)))


def check_rules(schema: Json, obj: Json, old: Json) -> list[str]:
    """Returns the faults of the rules of a schema, or else those that they find in an object."""
    parsed = structural_schema.parse(schema)
    wrong = [str(fault) for fault in rule_checks.check(parsed, "schema")]
    if faults := [fault for fault in wrong if "compilation failed" in fault]:
        return faults
    return [str(fault) for fault in cel_rules.check(parsed, obj, old, [])]


def estimate_costs(schema: Json) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Returns what the rules of a schema cost, by the paths of their nodes and their numbers: one
    evaluation, one message, and how many values of the node an object has room for.
    """
    whole = structural_schema.parse(schema)
    types = RuleTypes(whole)
    costs: dict[tuple[str, int], tuple[int, int, int]] = {}

    def walk(node: structural_schema.StructuralSchema, path: str) -> None:
        for number, rule in enumerate(node.rules):
            old, described = bool(rule.get("optionalOldSelf")), types.described(node)
            cost, message = (
                types.find(rule[part], node, optional_old=old).cost if rule.get(part) else 0
                for part in ("rule", "messageExpression")
            )
            most_often = described.most_often if described is not None else 0
            costs[path, number] = (cost, message, most_often)
        for name, inner in node.properties.items():
            walk(inner, f"{path}.{name}")
        for below, suffix in ((node.items, "[]"), (node.additional, "{}")):
            if below is not None:
                walk(below, path + suffix)

    walk(whole, "")
    return costs


def prune(schema: Json, value: Json, *, is_root: bool) -> tuple[Json, list[str]]:
    """Returns a value without the fields that its schema has not, and the paths of those."""
    parsed = structural_schema.parse(schema) if schema is not None else None
    dropped: list[str] = []
    if is_root and isinstance(value, dict):
        whole = parsed or structural_schema.parse({})
        return pruning.root(value, whole, dropped), sorted(dropped)
    return pruning.prune(value, parsed, "", dropped), sorted(dropped)


def fill_defaults(schema: Json, value: Json) -> Json:
    """Returns a value with the defaults of its schema."""
    return defaulting.default(value, structural_schema.parse(schema))

"""Prints measures of the code's shape and words, as `make stats` does.

The measures are those by which the code is compared with other projects: lengths of functions
and files, parameters, docstrings, names, and what the type checker is asked to overlook. Only
tracked Python files below the given folders are read, `kcm` and `workers` without arguments.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import subprocess
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST_FUNCTION = 30
LONGEST_FILE = 400
FULLEST_FOLDER = 20
PREPOSITIONS = frozenset(
    [
        "about",
        "as",
        "at",
        "before",
        "behind",
        "besides",
        "beside",
        "by",
        "for",
        "from",
        "in",
        "into",
        "like",
        "of",
        "on",
        "out",
        "over",
        "past",
        "per",
        "since",
        "through",
        "till",
        "to",
        "under",
        "until",
        "up",
        "upon",
        "with",
        "within",
        "without",
    ]
)
# First words of names that end like participles and are verbs, nouns, or words of upstream's API
# (a required field, a namespaced kind, an Indexed Job, uncountedTerminatedPods).
NO_PARTICIPLES = frozenset(
    [
        "aggregated",
        "between",
        "bind",
        "binding",
        "desired",
        "embed",
        "everything",
        "exceed",
        "feed",
        "find",
        "flatten",
        "forbidden",
        "housekeeping",
        "indexed",
        "listing",
        "managed",
        "mapping",
        "namespaced",
        "need",
        "nominated",
        "nothing",
        "operating",
        "pending",
        "preferred",
        "proceed",
        "projected",
        "qualified",
        "read",
        "reopen",
        "required",
        "rolling",
        "scheduled",
        "seed",
        "send",
        "shorten",
        "speed",
        "spend",
        "terminating",
        "then",
        "token",
        "uncounted",
        "warning",
    ]
)
PREDICATES = ("is_", "has_", "was_", "are_", "should_", "can_", "may_", "must_", "needs_")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Measures:
    """What was counted in all files."""

    files: dict[str, int] = field(default_factory=dict)  # lines, by path
    functions: list[tuple[int, str]] = field(default_factory=list)  # lines of the body, and where
    parameters: list[tuple[int, str]] = field(default_factory=list)
    participles: list[str] = field(default_factory=list)
    named: int = 0  # functions whose names were judged
    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter)
    prepositions: list[str] = field(default_factory=list)
    short: list[str] = field(default_factory=list)  # classes with three words or fewer, or none


def tracked(folders: list[str]) -> Iterator[Path]:
    """Returns the tracked Python files below the folders."""
    listing = subprocess.run(
        ["git", "ls-files", *(f"{folder}/**.py" for folder in folders)],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return (ROOT / name for name in sorted(set(listing.stdout.split())))


def measure(paths: Iterator[Path]) -> Measures:
    """Reads the files and counts."""
    measures = Measures()
    for path in paths:
        text = path.read_text()
        name = path.relative_to(ROOT).as_posix()
        measures.files[name] = text.count("\n")
        _count_comments(text, measures)
        tree = ast.parse(text)
        _judge_docstring(tree, name, measures)
        for node in ast.walk(tree):
            _count_node(node, name, measures)
    return measures


def _count_comments(text: str, measures: Measures) -> None:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and re.search(r"type:\s*ignore", token.string):
            measures.counts["type: ignore"] += 1


def _count_node(node: ast.AST, name: str, measures: Measures) -> None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            _count_function(node, name, measures)
        case ast.ClassDef():
            measures.classes[node.name].append(name)
            words = (ast.get_docstring(node) or "").split()
            if len(words) <= 3 and not node.name.startswith("_"):
                measures.short.append(f"{name}:{node.lineno} {node.name}")
            _judge_docstring(node, name, measures)
        case ast.Name(id="Any"):
            measures.counts["Any"] += 1
        case ast.Name(id="found", ctx=ast.Store()) | ast.arg(arg="found"):
            measures.counts["variables called found"] += 1
        case ast.Assert(test=ast.Call(func=ast.Name(id="isinstance"))):
            measures.counts["assert isinstance"] += 1


def _count_function(node: Function, name: str, measures: Measures) -> None:
    where = f"{name}:{node.lineno} {node.name}"
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    lines = body[-1].end_lineno - body[0].lineno + 1 if body and body[-1].end_lineno else 0
    measures.functions.append((lines, where))
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    measures.parameters.append((len([a for a in names if a not in ("self", "cls")]), where))
    _judge_docstring(node, name, measures)
    _judge_name(node, where, measures)


def _judge_name(node: Function, where: str, measures: Measures) -> None:
    if node.name.startswith("__") or any(_is_property(d) for d in node.decorator_list):
        return
    measures.named += 1
    words = node.name.strip("_").split("_")
    first = words[0]
    if node.name.strip("_").startswith(PREDICATES) or first in NO_PARTICIPLES:
        return
    if re.fullmatch(r"\w{2,}(ed|en|ing)", first) and first not in ("list", "open", "listen"):
        measures.participles.append(where)


def _is_property(decorator: ast.expr) -> bool:
    name = ast.unparse(decorator)
    return name in ("property", "cached_property", "pytest.fixture") or name.endswith(".setter")


def _judge_docstring(
    node: ast.Module | ast.ClassDef | Function, name: str, measures: Measures
) -> None:
    text = ast.get_docstring(node)
    if not text:
        return
    measures.counts["docstrings"] += 1
    if text.split()[0].lower() in PREPOSITIONS:
        measures.prepositions.append(f"{name}:{getattr(node, 'lineno', 1)} {text.splitlines()[0]}")


def table(measures: Measures) -> Iterator[tuple[str, str]]:
    """Returns the rows to print: a measure and its figure."""
    lengths = sorted(length for length, _ in measures.functions)
    parameters = [count for count, _ in measures.parameters]
    folders = Counter(str(Path(name).parent) for name in measures.files)
    twice = {name: places for name, places in measures.classes.items() if len(set(places)) > 1}
    yield "files", str(len(measures.files))
    yield "longest file, lines", str(max(measures.files.values()))
    yield f"files over {LONGEST_FILE} lines", str(_over(measures.files.values(), LONGEST_FILE))
    yield f"folders over {FULLEST_FOLDER} modules", str(_over(folders.values(), FULLEST_FOLDER + 1))
    yield "functions", str(len(lengths))
    yield "lines of a function: median", str(statistics.median(lengths))
    yield "lines of a function: 99th percentile", str(lengths[len(lengths) * 99 // 100])
    yield "lines of a function: longest", str(lengths[-1])
    yield f"functions over {LONGEST_FUNCTION} lines", str(_over(lengths, LONGEST_FUNCTION))
    yield "parameters: most", str(max(parameters))
    yield "functions with more than 6 parameters", str(_over(parameters, 6))
    share = 100 * len(measures.participles) / max(measures.named, 1)
    yield "functions named by participles", f"{len(measures.participles)} ({share:.1f} %)"
    yield "class names in several modules", str(len(twice))
    yield "docstrings", str(measures.counts["docstrings"])
    yield "docstrings that begin with a preposition", str(len(measures.prepositions))
    yield "public classes with at most 3 words of docstring", str(len(measures.short))
    for name in ("variables called found", "Any", "type: ignore", "assert isinstance"):
        yield name, str(measures.counts[name])


def _over(values: object, limit: int) -> int:
    return sum(value > limit for value in values)  # type: ignore[attr-defined]


def places(measures: Measures) -> Iterator[str]:
    """Returns the places behind the figures."""
    yield from (f"participle  {where}" for where in measures.participles)
    yield from (f"preposition {where}" for where in measures.prepositions)
    yield from (f"short       {where}" for where in measures.short)
    yield from (f"long        {where}" for n, where in measures.functions if n > LONGEST_FUNCTION)
    for name, files in sorted(measures.classes.items()):
        if len(set(files)) > 1:
            yield f"twice       {name}: {', '.join(files)}"


def main() -> None:
    """Prints the table, and with --places where the figures come from."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", default=["kcm", "workers"])
    parser.add_argument("--places", action="store_true", help="print the places behind the figures")
    options = parser.parse_args()
    measures = measure(tracked(options.folders))
    rows = list(table(measures))
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    print("\n".join([*lines, *(places(measures) if options.places else ())]))  # noqa: T201


if __name__ == "__main__":
    main()

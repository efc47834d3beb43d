"""Writes protobuf_messages.txt of kcm/apiserver/http/bodies from checkouts of upstream's API.

    python tools/protobuf_messages.py DIR > kcm/apiserver/http/bodies/protobuf_messages.txt

DIR holds `api`, `apimachinery`, `apiextensions-apiserver` and `kube-aggregator`
(github.com/kubernetes/<name>)
at the tag of the release that kcm follows. Only names, numbers and types are read: the
numbers from generated.proto, the names in JSON from the struct tags in types*.go.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_META = "apimachinery/pkg/apis/meta/v1"
# Folder, apiVersion. What a later kind needs is one more line.
_PACKAGES = (
    ("apimachinery/pkg/runtime", "runtime"),
    ("apimachinery/pkg/util/intstr", "intstr"),
    ("apimachinery/pkg/api/resource", "resource"),
    (_META, "meta/v1"),
    ("api/core/v1", "v1"),
    ("api/admissionregistration/v1", "admissionregistration.k8s.io/v1"),
    ("api/apps/v1", "apps/v1"),
    ("api/authentication/v1", "authentication.k8s.io/v1"),
    ("api/authorization/v1", "authorization.k8s.io/v1"),
    ("api/autoscaling/v1", "autoscaling/v1"),
    ("api/autoscaling/v2", "autoscaling/v2"),
    ("api/batch/v1", "batch/v1"),
    ("api/certificates/v1", "certificates.k8s.io/v1"),
    ("api/certificates/v1beta1", "certificates.k8s.io/v1beta1"),
    ("api/coordination/v1", "coordination.k8s.io/v1"),
    ("api/discovery/v1", "discovery.k8s.io/v1"),
    ("api/events/v1", "events.k8s.io/v1"),
    ("api/flowcontrol/v1", "flowcontrol.apiserver.k8s.io/v1"),
    ("api/networking/v1", "networking.k8s.io/v1"),
    ("api/node/v1", "node.k8s.io/v1"),
    ("api/policy/v1", "policy/v1"),
    ("api/rbac/v1", "rbac.authorization.k8s.io/v1"),
    ("api/resource/v1", "resource.k8s.io/v1"),
    ("api/scheduling/v1", "scheduling.k8s.io/v1"),
    ("api/storage/v1", "storage.k8s.io/v1"),
    ("api/storagemigration/v1beta1", "storagemigration.k8s.io/v1beta1"),
    ("apiextensions-apiserver/pkg/apis/apiextensions/v1", "apiextensions.k8s.io/v1"),
    ("kube-aggregator/pkg/apis/apiregistration/v1", "apiregistration.k8s.io/v1"),
)
_PROTO_MESSAGE = re.compile(r"^message (\w+) \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
_PROTO_FIELD = re.compile(
    r"^  (optional|repeated|map<string, (?P<item>[\w.]+)>) ?(?P<type>[\w.]+)? ?"
    r"(?P<name>\w+) = (?P<number>\d+);",
    re.MULTILINE,
)
_GO_STRUCT = re.compile(r"^type (\w+) struct \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
_GO_FIELD = re.compile(r"^\s*(?:\w+ +)?(?P<type>[\w*.\[\]]+) +`(?P<tags>[^`]*)`", re.MULTILINE)


@dataclass(frozen=True)
class GoField:
    """How Go writes a field as JSON."""

    name: str
    inline: bool
    drops_zero: bool  # left out of the JSON when it is zero


def go_fields(folder: Path) -> dict[tuple[str, int], GoField]:
    """Returns the fields of all structs in a folder, by struct and number on the wire."""
    found = {}
    for path in sorted(folder.glob("*.go")):
        if path.name.startswith(("generated", "zz_generated")) or path.name.endswith("_test.go"):
            continue
        for struct, body in _GO_STRUCT.findall(path.read_text("utf-8")):
            for match in _GO_FIELD.finditer(body):
                number = re.search(r'protobuf:"\w+,(\d+)', match["tags"])
                if number:
                    found[struct, int(number[1])] = _go_field(match["type"], match["tags"])
    return found


def _go_field(type_: str, tags: str) -> GoField:
    json = re.search(r'json:"([^"]*)"', tags)
    name, *options = json[1].split(",") if json else [""]
    drops = "omitempty" in options and not type_.startswith("*")
    return GoField("" if name == "-" else name, "inline" in options, drops)


def message_lines(folder: Path, package: str) -> Iterator[str]:
    """Yields the messages of a package as lines of the table."""
    go = go_fields(folder)
    text = (folder / "generated.proto").read_text("utf-8")
    for message, body in _PROTO_MESSAGE.findall(text):
        if message.endswith("List"):
            continue  # nobody sends one
        yield message
        for match in _PROTO_FIELD.finditer(body):
            yield "  " + _field_line(match, go.get((message, int(match["number"]))))


def _field_line(match: re.Match[str], go: GoField | None) -> str:
    type_ = _short(match["item"] or match["type"])
    label = {"o": "", "r": "[]", "m": "map:"}[match[1][0]]
    name = "-" if go and go.inline else (go.name if go and go.name else match["name"])
    zero = " ?" if go and go.drops_zero and not label and type_.islower() else ""
    return f"{match['number']} {name} {label}{type_}{zero}"


def _short(type_: str) -> str:
    """Returns `v1.Pod` for `.k8s.io.api.core.v1.Pod`; leaves types of the same package alone."""
    if not type_.startswith("."):
        return type_
    folder, _, name = type_.removeprefix(".k8s.io.").replace(".", "/").rpartition("/")
    folder = folder.replace("apiextensions/apiserver", "apiextensions-apiserver")
    return f"{dict(_PACKAGES)[folder]}.{name}"


def table_lines(root: Path) -> Iterator[str]:
    """Yields the lines of the table."""
    for folder, package in _PACKAGES:
        yield f"package {package}"
        yield from message_lines(root / folder, package)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.writelines(f"{line}\n" for line in table_lines(Path(sys.argv[1])))

"""The output of apply, get and delete."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod
from kcm.store import Store
from tests.integration.cli.conftest import Run
from tests.new_objects import make_namespaces

EXAMPLE = Path(__file__).parents[3] / "examples" / "01-replicaset" / "web.yaml"
PODS, SETS = Pod.resource, ReplicaSet.resource


def pod(name: str, namespace: str = "", image: str = "x", **metadata: object) -> str:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {}), **metadata},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }
    return json.dumps(body)


def test_apply_tells_created_unchanged_and_configured(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(EXAMPLE.read_text())
    assert run("apply", "-f", str(file)).output == "replicaset.apps/web created\n"
    assert run("apply", "-f", str(file)).output == "replicaset.apps/web unchanged\n"
    file.write_text(EXAMPLE.read_text().replace("replicas: 3", "replicas: 4"))
    assert run("apply", "-f", str(file)).output == "replicaset.apps/web configured\n"


def test_apply_keeps_what_others_set_and_removes_what_the_file_dropped(
    run: Run, store: Store
) -> None:
    run("apply", "-f", "-", stdin=pod("a", labels={"mine": "1", "old": "1"}))
    store.patch(PODS, "default/a", {"metadata": {"labels": {"theirs": "1"}}})
    assert run("apply", "-f", "-", stdin=pod("a", labels={"mine": "2"})).exit_code == 0
    assert store.get(PODS, "default/a").labels == {"mine": "2", "theirs": "1"}


def test_apply_reads_folders_lists_and_many_documents(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{pod('a')}\n---\n{pod('b')}\n")
    (tmp_path / "b.json").write_text(f'{{"kind":"List","apiVersion":"v1","items":[{pod("c")}]}}')
    (tmp_path / "notes.txt").write_text("not YAML: [")
    assert run("apply", "-f", str(tmp_path)).output == (
        "pod/a created\npod/b created\npod/c created\n"
    )


def test_a_failing_document_does_not_stop_the_others(run: Run) -> None:
    bad = pod("b").replace('"image": "x"', '"image": 7')
    result = run("apply", "-f", "-", stdin=f"{pod('a')}\n---\n{bad}\n---\n{pod('c')}")
    assert result.exit_code == 1
    assert result.stdout == "pod/a created\npod/c created\n"
    assert "spec.containers[0].image: Invalid value" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "STDIN:"),
        ("apiVersion: v1\nkind: Teapot\nmetadata: {name: x}", 'no matches for kind "Teapot"'),
        ("just text", "a document must be a mapping"),
        (pod("Not_A_Name"), 'The Pod "Not_A_Name" is invalid: metadata.name: Invalid value'),
        ("", "no objects found: nothing to be applied"),
        ("\x00\x01", "STDIN"),
    ],
)
def test_bad_input_is_one_located_line_and_exit_code_1(run: Run, text: str, expected: str) -> None:
    result = run("apply", "-f", "-", stdin=text)
    assert result.exit_code == 1
    assert expected in result.stderr


def test_a_namespace_on_the_command_line_must_agree_with_the_object(run: Run) -> None:
    result = run("apply", "-f", "-", "-n", "other", stdin=pod("a", "default"))
    assert result.exit_code == 1
    assert 'does not match the namespace "other"' in result.stderr


def test_get_lists_kinds_in_tables_with_names_that_tell_the_kind(run: Run) -> None:
    run("apply", "-f", str(EXAMPLE))
    run("apply", "-f", "-", stdin=pod("a"))
    lines = run("get", "rs,pods").output.splitlines()
    assert lines[0].split() == ["NAME", "DESIRED", "CURRENT", "READY", "AGE"]
    assert lines[1].startswith("replicaset.apps/web   3         0         0")
    assert lines[2] == ""
    assert lines[4].startswith("pod/a   0/1     Pending   0")


def test_get_finds_nothing_in_kubectls_words(run: Run) -> None:
    result = run("get", "pods")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No resources found in default namespace.\n"
    assert run("get", "pods", "-A").stderr == "No resources found\n"
    assert run("get", "nodes").stderr == "No resources found\n"


def test_a_missing_object_is_an_error_beside_those_found(run: Run) -> None:
    run("apply", "-f", "-", stdin=pod("a"))
    result = run("get", "pod", "a", "b")
    assert result.exit_code == 1
    assert "a " in result.stdout
    assert result.stderr == 'Error from server (NotFound): pods "b" not found\n'


def test_get_selects_by_label_field_and_namespace(run: Run, store: Store) -> None:
    make_namespaces(store, "other")
    run("apply", "-f", "-", stdin=pod("a", labels={"app": "x"}))
    run("apply", "-f", "-", stdin=pod("b", "other", labels={"app": "x"}))
    assert run("get", "pods", "-l", "app=x", "-o", "name").output == "pod/a\n"
    assert run("get", "pods", "-l", "app=x", "-A", "-o", "name").output == "pod/a\npod/b\n"
    assert run("get", "pods", "-n", "other", "-o", "name").output == "pod/b\n"
    assert run("get", "pods", "--field-selector", "metadata.name!=a", "-o", "name").output == ""
    refused = run("get", "pods", "--field-selector", "spec.teapot=1")
    assert refused.stderr == (
        "Error from server (BadRequest): field label not supported: spec.teapot\n"
    )


def test_get_prints_documents_that_can_be_read_again(run: Run) -> None:
    run("apply", "-f", "-", stdin=pod("a"))
    single = json.loads(run("get", "pod", "a", "-o", "json").output)
    assert single["metadata"]["name"] == "a"
    listed = yaml.safe_load(run("get", "pods", "-o", "yaml").output)
    assert (listed["kind"], len(listed["items"])) == ("List", 1)


def test_show_labels_and_namespaces_are_columns(run: Run) -> None:
    run("apply", "-f", "-", stdin=pod("a", labels={"b": "2", "a": "1"}))
    header, line = run("get", "pods", "-A", "--show-labels").output.splitlines()
    assert header.split()[0] == "NAMESPACE"
    assert line.split()[0] == "default"
    assert line.endswith("a=1,b=2")


def test_delete_names_what_it_deleted_and_what_was_not_there(run: Run) -> None:
    run("apply", "-f", "-", stdin=pod("a"))
    result = run("delete", "pod", "a", "b")
    assert result.exit_code == 1
    assert result.stdout == 'pod "a" deleted\n'
    assert result.stderr == 'Error from server (NotFound): pods "b" not found\n'
    assert run("delete", "pod", "b", "--ignore-not-found").exit_code == 0


def test_delete_works_by_label_by_file_and_for_all(run: Run, tmp_path: Path) -> None:
    for name in "abc":
        run("apply", "-f", "-", stdin=pod(name, labels={"app": name}))
    file = tmp_path / "c.json"
    file.write_text(pod("c"))
    assert run("delete", "pods", "-l", "app=a").output == 'pod "a" deleted\n'
    assert run("delete", "-f", str(file)).output == 'pod "c" deleted\n'
    assert run("delete", "pods", "--all").output == 'pod "b" deleted\n'


def test_delete_without_a_name_deletes_nothing(run: Run) -> None:
    run("apply", "-f", "-", stdin=pod("a"))
    assert run("delete", "pods").exit_code == 2
    assert run("get", "pods", "-o", "name").output == "pod/a\n"


def test_delete_waits_for_finalizers_until_its_timeout(run: Run) -> None:
    run("apply", "-f", "-", stdin=pod("a", finalizers=["example.com/keep"]))
    result = run("delete", "pod", "a", "--timeout", "0.2")
    assert result.exit_code == 1
    assert "timed out waiting" in result.stderr
    assert run("delete", "pod", "a", "--no-wait").exit_code == 0


def test_cascade_orphan_and_foreground_leave_their_finalizer(run: Run, store: Store) -> None:
    run("apply", "-f", str(EXAMPLE))
    run("delete", "rs", "web", "--cascade", "orphan", "--no-wait")
    assert store.get(SETS, "default/web").metadata.finalizers == ["orphan"]


def test_force_and_a_grace_period_do_not_go_together(run: Run) -> None:
    assert run("delete", "pod", "a", "--force", "--grace-period", "5").exit_code == 2


def test_an_absent_server_is_named_with_advice(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KCM_REDIS_URL")
    monkeypatch.setenv("KCM_STATE_DIR", str(tmp_path))
    result = run("get", "pods")
    assert result.exit_code == 1
    assert str(tmp_path) in result.stderr
    assert "`kcm up` starts one" in result.stderr


def test_aliases_of_long_text_are_told_with_their_place(run: Run) -> None:
    text = "kind: ConfigMap\na: &a " + "x" * 1_000_000 + "\nb: [" + "*a," * 500_000 + "]\n"
    before = time.process_time()
    result = run("apply", "-f", "-", stdin=text)
    assert result.exit_code == 1
    assert "STDIN:3:" in result.output
    assert "document contains excessive aliasing" in result.output
    assert time.process_time() - before < 10

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.conformance.suite import CUT, FAILED, PASSED, Suite, has_passed, runs_alone

# Answers as e2e.test does: it lists two specs, and the second one fails.
PROGRAM = """#!/bin/sh
case "$*" in
  *--list-conformance-tests*)
    printf '%s\\n' "- codename: '[sig-b] two [Conformance]'" "- codename: '[sig-a] one (x)'" ;;
  *two*) echo 'Ran 1 of 2 Specs'; echo 'FAIL! -- 0 Passed | 1 Failed'; exit 1 ;;
  *slow*) sleep 30 ;;
  *none*) echo 'SUCCESS! -- 0 Passed | 0 Failed | 0 Pending | 2 Skipped' ;;
  *) echo "$*"; echo 'SUCCESS! -- 1 Passed | 0 Failed | 0 Pending | 1 Skipped' ;;
esac
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    program = tmp_path / "e2e.test"
    program.write_text(PROGRAM)
    os.chmod(program, 0o755)
    return Suite(program, tmp_path / "kubeconfig", tmp_path, timeout=1.0)


def test_the_specs_are_those_that_the_program_lists(suite: Suite) -> None:
    assert suite.list_specs() == ["[sig-a] one (x)", "[sig-b] two [Conformance]"]


@pytest.mark.parametrize(
    ("spec", "result"),
    [("one (x)", PASSED), ("two", FAILED), ("slow", CUT), ("none", FAILED)],
)
def test_a_spec_passes_only_if_it_ran(suite: Suite, spec: str, result: str) -> None:
    outcome = suite.run(spec)
    assert (outcome.spec, outcome.result) == (spec, result)
    assert suite.log_of(spec).exists()


def test_a_run_is_about_one_spec_and_one_cluster(suite: Suite) -> None:
    suite.run("[sig-a] one (x)")
    asked = suite.log_of("[sig-a] one (x)").read_text()
    assert r"--ginkgo.focus=\[sig\-a\]\ one\ \(x\)$" in asked
    assert f"--kubeconfig={suite.kubeconfig}" in asked


@pytest.mark.parametrize(
    ("output", "passed"),
    [
        ("SUCCESS! -- 1 Passed | 0 Failed | 0 Pending | 7000 Skipped", True),
        ("FAIL! -- 0 Passed | 1 Failed | 0 Pending | 7000 Skipped", False),
        ("SUCCESS! -- 0 Passed | 0 Failed | 0 Pending | 7001 Skipped", False),
        ("panic: nothing", False),
    ],
)
def test_the_last_line_decides(output: str, passed: bool) -> None:
    assert has_passed(output) is passed


def test_serial_and_disruptive_specs_run_alone() -> None:
    assert runs_alone("[sig-node] NoExecuteTaintManager [Serial] evicts [Conformance]")
    assert runs_alone("[sig-x] y [Disruptive]")
    assert not runs_alone("[sig-x] Serial things")

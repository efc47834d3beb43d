from __future__ import annotations

import pytest

from kcm.apimachinery.durations import FOREVER
from kcm.simulation.scripting import scripts
from kcm.simulation.scripting.script_lines import ExecAnswer, find_answer, parse_exec
from kcm.simulation.scripting.scripts import NO_NODE_SCRIPT, NO_SCRIPT, ContainerScript, PodScript

P = scripts.PREFIX


def test_annotations_become_a_script() -> None:
    script, faults = scripts.of_pod(
        {P + "outcome": "fail", P + "run-for": "1m30s", P + "exit-codes": "2, 0", "other": "x"},
        NO_SCRIPT,
    )
    assert faults == []
    assert script.main == ContainerScript(outcome="fail", run_for=90.0, exit_codes=(2, 0))


def test_an_annotation_may_be_for_one_container() -> None:
    script, _ = scripts.of_pod({P + "outcome": "fail", P + "outcome.log": "run"}, NO_SCRIPT)
    assert script.of("main", ordinary=True).outcome == "fail"
    assert script.of("log", ordinary=True).outcome == "run"
    assert script.of("init", ordinary=False).outcome is None


def test_annotations_win_over_the_stages_file_also_with_nought() -> None:
    base = PodScript(ContainerScript(outcome="fail", run_for=5.0, start_after=9.0))
    script, _ = scripts.of_pod({P + "run-for": "0"}, base)
    assert script.main == ContainerScript(outcome="fail", run_for=0.0, start_after=9.0)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("outcome", "explode", '"explode" is no outcome; there are: run, succeed'),
        ("run-for", "soon", 'must be a duration like "12h0m0s"'),
        ("run-for", "-1s", "must not be negative"),
        ("exit-codes", "1,x", "must be numbers from 0 to 255"),
        ("exit-codes", "256", "must be numbers from 0 to 255"),
        ("exit-codes-by-index", "1:2", "must be like"),
        ("nonsense", "1", "unknown; there are: outcome"),
    ],
)
def test_what_cannot_be_followed_is_told_and_left_out(name: str, text: str, why: str) -> None:
    script, faults = scripts.of_pod({P + name: text}, NO_SCRIPT)
    assert script == NO_SCRIPT
    assert [why in str(fault) for fault in faults] == [True]


def test_a_node_may_be_scripted() -> None:
    script, faults = scripts.of_node(
        {P + "state": "not-ready, memory-pressure", P + "clock-skew": "-90s"}, NO_NODE_SCRIPT
    )
    assert faults == []
    assert script.states == {"not-ready", "memory-pressure"}
    assert (script.clock_skew, script.after, script.lasts) == (-90.0, 0.0, FOREVER)


def test_a_wrong_state_of_a_node_is_told() -> None:
    _, faults = scripts.of_node({P + "state": "sleepy"}, NO_NODE_SCRIPT)
    assert "there are: silent, not-ready" in str(faults[0])


def test_commands_have_the_answers_of_the_first_pattern_that_matches() -> None:
    answers = parse_exec("ls * => a\nls * => b\n\nls -l => never\nfalse => exit 1\ntrue =>")
    assert find_answer(answers, ["ls", "-l"]) == ExecAnswer("ls -l", "a\nb")
    assert find_answer(answers, ["false"]) == ExecAnswer("false", "", 1)
    assert find_answer(answers, ["true"]) == ExecAnswer("true", "")
    assert find_answer(answers, ["id"]).code == 127


@pytest.mark.parametrize("text", ["ls", "=> a", "ls => exit 256: x", "a => b\n" * 101])
def test_answers_that_cannot_be_are_told(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_exec(text)

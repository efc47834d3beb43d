from __future__ import annotations

import time

import pytest

from kcm.apimachinery.durations import FOREVER
from kcm.simulation.programs.process import MOST_OUTPUT
from kcm.simulation.programs.session import MOST_STEPS
from tests.unit.simulation.life import START
from tests.unit.simulation.programs.running import Running, run, shell

ENV = [{"name": "NAME", "value": "world"}, {"name": "EMPTY", "value": ""},
       {"name": "TWO", "value": "a  b"}, {"name": "INDEX", "value": "3"}]  # fmt: skip

# What a script writes, and its exit code.
SCRIPTS: list[tuple[str, list[str], int]] = [
    ("echo hello", ["hello"], 0),
    ("echo 'a  b'  c", ["a  b c"], 0),
    ("echo -n a; echo b", ["ab"], 0),
    ("echo a\necho b # and no more\n\n", ["a", "b"], 0),
    ("echo a#b", ["a#b"], 0),
    ("echo", [""], 0),
    ("exit 3", [], 3),
    ("exit 256", [], 0),
    ("false; exit", [], 1),
    ("echo a; exit 2; echo b", ["a"], 2),
    ("/bin/echo -n DONE; /bin/false", ["DONE"], 1),
    ("true && echo yes || echo no", ["yes"], 0),
    ("false && echo yes || echo no", ["no"], 0),
    ("false; echo $?", ["1"], 0),
    ("echo $NAME ${NAME}s \"$NAME\" '$NAME' \\$NAME", ["world worlds world $NAME $NAME"], 0),
    ('echo $TWO; echo "$TWO"; echo x$TWO.', ["a b", "a  b", "xa b."], 0),
    ("echo a $EMPTY b; echo [ \"$EMPTY\" ]", ["a b", "[  ]"], 0),
    ("NAME=you; echo $NAME", ["you"], 0),
    ("NAME=you echo $NAME; echo $NAME", ["world", "world"], 0),
    ("count=$(expr $INDEX + 4); echo $count", ["7"], 0),
    ("x=$(false); echo $?", ["1"], 0),
    ("echo $(echo a; echo b) \"$(echo a; echo b)\"", ["a b a", "b"], 0),
    ("x=1; echo $(x=2; echo $x; exit 4) $x", ["2 1"], 0),
    ("if [ $(expr $INDEX % 2) -ne 0 ]; then\n exit 1\nelse\n exit 0\nfi", [], 1),
    ("if false; then echo a; elif true; then echo b; else echo c; fi", ["b"], 0),
    ("if false; then echo a; else echo c; fi", ["c"], 0),
    ("if false; then echo a; fi; echo $?", ["0"], 0),
    ("if [[ -z $EMPTY$NAME ]]; then echo a; fi && test ! -n '' && echo b", ["b"], 0),
    ("[ a = a ] && [ a != b ] && [ 2 -gt 1 ] && [ 2 -le 2 ] && echo all", ["all"], 0),
    ("echo to the log >&2; echo 2>&1 both", ["to the log", "both"], 0),
    ("echo x > /tmp/f; echo y >> /tmp/f; cat /tmp/f; echo z > /tmp/f; cat /tmp/f",
     ["x", "y", "z"], 0),
    ("echo gone > /dev/null", [], 0),
    ("touch /tmp/f; test -f /tmp/f && [ ! -s /tmp/f ] && test -d /tmp && echo there", ["there"], 0),
    ("trap exit TERM; echo set", ["set"], 0),
    ("id -u; id -g", ["0", "0"], 0),
    ("x=1; while [ $x -le 3 ]; do echo $x; x=$(expr $x + 1); done", ["1", "2", "3"], 0),
]  # fmt: skip


@pytest.mark.parametrize(("script", "lines", "code"), SCRIPTS)
def test_a_script_does_what_it_says(script: str, lines: list[str], code: int) -> None:
    running = shell(script, env=ENV)
    assert (running.lines, running.attempt.code, running.ended) == (lines, code, 0)
    assert running.attempt.reason == ("Error" if code else "Completed")


# Scripts that are not understood as a whole, of which nothing is done.
@pytest.mark.parametrize(
    "script",
    [
        "echo a; curl http://x", "echo a | cat", "echo a &", "(echo a)", "echo `date`",
        "echo $(date)", "echo $((1 + 1))", "echo *.txt", "echo a?", "echo {1..3}", "echo ~",
        "cat < /f", "echo a >| /f",
        "if true; then echo a", "while true; do echo a", "echo 'a", 'echo "a', "echo a ;; echo b",
        "f() { echo a; }", "$NAME a", "e$NAME a", "echo ${NAME:-x}", "echo $1 $@", "echo a >",
        "echo a\\", "! true", "for i in a b; do echo $i; done", "if ; then echo a; fi", "&& echo a",
        "echo " + "a" * 9000, "$(echo " * 50, "if true; then " * 50, "", "#", "echo $(sleep", "2>",
    ],
)  # fmt: skip
def test_a_script_that_is_not_understood_does_nothing(script: str) -> None:
    running = shell(script)
    assert (running.is_program, running.lines) == (script in ("", "#"), [])


# What is found only when the script is there: the container ends as without programs.
@pytest.mark.parametrize(
    "script",
    ["cat /etc/os-release", "echo $RANDOM", "x='*'; echo $x", "echo '\\n'", "cat -n /dev/null",
     "echo x > /data/f", "test -f /bin/sh", "[ a -gt 1 ]", "expr a + 1", "sleep soon", "id",
     "[[ $TWO = a ]]", "IFS=,; true", "x=$(sleep 1)", "env -i", "exit now", "exit -1"],
)  # fmt: skip
def test_a_script_is_left_where_it_is_not_understood(script: str) -> None:
    running = shell(f"echo first; {script}; echo last", env=ENV)
    assert (running.lines, running.ended) == (["first"], 1_000_000)


@pytest.mark.parametrize(
    "command",
    [("sh", "file"), ("sh", "-c"), ("nginx",), ("/sh", "-c", "true"), ("exit",), ("",)],
)
def test_other_commands_are_no_programs(command: tuple[str, ...]) -> None:
    assert not run(*command).is_program


def test_a_shell_without_input_ends_at_once() -> None:
    assert (run("bash").ended, run("sh").attempt.code) == (0, 0)
    assert not run("sh", stdin=True).is_program


def test_programs_run_without_a_shell() -> None:
    assert run("/bin/false").attempt.code == 1
    assert run("echo", "$HOME", "a  b").lines == ["$HOME a  b"]
    running = run("sleep", "5")
    running.go(4.9)
    assert running.attempt.runs(START + 4.9)
    running.go(60)
    assert (running.ended, running.attempt.code) == (5, 0)


def test_users_without_names_are_shown() -> None:
    ids = {"runAsUser": 1001, "runAsGroup": 2002}
    assert run("id", securityContext=ids).lines == ["uid=1001 gid=2002 groups=2002"]
    assert not run("id", securityContext={"runAsUser": 1001}).is_program
    assert not run("id", pod={"securityContext": {**ids, "fsGroup": 5}}).is_program


def test_references_in_commands_are_expanded_before_the_shell_sees_them() -> None:
    running = run("sh", "-c", 'NAME=wrong echo "$(NAME)" $$(NAME)', env=ENV)
    assert not running.is_program  # the shell would look for a command NAME
    assert run("sh", "-c", 'NAME=wrong echo "$(NAME)"', env=ENV).lines == ["world"]


def test_time_passes_in_sleeps_only() -> None:
    running = shell("echo a; sleep 1m; echo b; sleep 0.5 1; exit 7")
    assert (running.lines, running.due) == (["a"], 60)
    running.go(3600)
    assert running.timed == [(0, "a"), (60, "b")]
    assert (running.ended, running.attempt.code) == (61.5, 7)


def test_a_loop_goes_on_and_its_lines_have_their_times() -> None:
    running = shell("while true; do echo polo; sleep 2; done")
    running.go(5)
    assert running.timed == [(0, "polo"), (2, "polo"), (4, "polo")]
    assert running.due == 6


@pytest.mark.parametrize(
    "script",
    ["trap exit TERM; while true; do sleep 1; done", "sleep infinity", "tail -f /dev/null",
     "while :; do :; done"],
)  # fmt: skip
def test_what_only_waits_is_never_looked_at_again(script: str) -> None:
    running = shell(script)
    assert (running.due, running.attempt.ends, running.lines) == (FOREVER, FOREVER, [])


def test_a_loop_without_a_wait_runs_on_and_does_nothing_more() -> None:
    running = shell("while true; do echo a; done; exit 1")
    assert (running.due, running.attempt.ends) == (FOREVER, FOREVER)
    assert 0 < len(running.lines) < MOST_STEPS


def test_steps_are_counted_over_all_time() -> None:
    running = shell("while true; do echo a; sleep 0.001; done")
    assert running.due == pytest.approx(0.2)  # it is not looked at for each step
    running.go(1_000)
    assert (running.due, running.attempt.ends) == (FOREVER, FOREVER)
    assert len(running.lines) < MOST_STEPS


@pytest.mark.parametrize(
    "script",
    [
        "x=aaaaaaaa; while true; do x=$x$x; done",
        "x=aaaaaaaa; while true; do x=$x$x; echo $x; done",
        "x=aaaaaaaa; while true; do x=$x$x; echo $x > /tmp/f; done",
        "while true; do echo aaaaaaaaaaaaaaaa >> /tmp/f; done",
        "while true; do x=$(cat /tmp/f)a; echo $x$x >> /tmp/f; done",
        "echo " + "$(echo " * 11 + "a" + ")" * 11,
        "while true; do while true; do while true; do echo a; done; done; done",
    ],
)
def test_hostile_scripts_cost_little(script: str) -> None:
    before = time.process_time()
    running: Running = shell(script)
    running.go(100_000)
    assert time.process_time() - before < 1  # it takes some tens of milliseconds
    assert sum(map(len, running.lines)) <= MOST_OUTPUT


def test_variables_are_bounded() -> None:
    running = shell("x=aaaaaaaa; while true; do x=$x$x; done")
    assert not running.is_program  # it was left at the variable that was too long
    many = shell("x=a; while true; do x=$x; y=$x; done")
    assert many.attempt.ends == FOREVER


def test_output_is_cut() -> None:
    running = shell("while true; do echo " + "a" * 1000 + "; done")
    assert MOST_OUTPUT - 1001 <= sum(len(line) + 1 for line in running.lines) <= MOST_OUTPUT + 1

"""Runs programs step by step: a generator that yields the seconds until its next step.

It waits for nothing itself. Its steps are counted by its session.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from kcm.apimachinery.durations import FOREVER
from kcm.simulation.programs.commands import COMMANDS, PROGRAMS
from kcm.simulation.programs.session import Session, Sink
from kcm.simulation.programs.syntax import (
    AndOr,
    Command,
    If,
    Loop,
    NotUnderstood,
    Part,
    Redirect,
    Script,
    Simple,
    Word,
    is_literal,
    name_of,
)

Steps = Generator[float, None, None]
# Variables that shells set, or that change what they do.
_OF_SHELLS = frozenset(
    ("IFS", "LINENO", "OLDPWD", "OPTIND", "PPID", "PS4", "PWD", "RANDOM", "SECONDS", "SHLVL", "UID")
)


class Exit(Exception):  # noqa: N818 - it is how a program ends
    """the program has ended"""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Shell(Session):
    """A shell in one container."""

    status = 0

    def run_to_end(self, script: Script) -> Generator[float, None, int]:
        """Runs a script, and returns its exit code. Raises Exit, Spent and NotUnderstood."""
        yield from self.run(script)
        return self.status

    def run(self, script: Script) -> Steps:
        """Runs a part of the script, whose exit code is then in `status`."""
        for statement in script:
            yield from self._command(statement.first)
            for for_success, command in statement.rest:
                if (self.status == 0) == for_success:
                    yield from self._command(command)

    def _command(self, command: Command) -> Steps:
        self.spend()
        if isinstance(command, If):
            yield from self._if(command)
        elif isinstance(command, Loop):
            yield from self._loop(command)
        else:
            yield from self._simple(command)

    def _if(self, command: If) -> Steps:
        for condition, body in command.branches:
            yield from self.run(condition)
            if self.status == 0 or not condition:
                yield from self.run(body)
                return
        self.status = 0

    def _loop(self, command: Loop) -> Steps:
        if _is_idle(command):
            yield FOREVER
        while True:
            self.spend()
            yield from self.run(command.condition)
            if self.status:
                self.status = 0
                return
            yield from self.run(command.body)

    def _simple(self, command: Simple) -> Steps:
        before = self.variables, self.exported, self._sinks
        last, self.status = self.status, 0
        words = self._expand_all(command.words, last)
        values = {name: self._expand(word, last) for name, word in command.assignments}
        if _OF_SHELLS & values.keys():
            raise NotUnderstood
        if not self._redirect(command.redirects, last):
            self.status = 1
        elif not words:
            self.assign(values)
        else:
            self.variables = self.variables | values
            self.exported |= values.keys()
            self.status = yield from self._call(words, last)
        if words:
            self.variables, self.exported, _ = before
        self._sinks = before[2]

    def _call(self, words: Sequence[str], last: int) -> Generator[float, None, int]:
        name = name_of(words[0])
        if name == "exit":
            if len(words) > 2 or not all(word.isascii() and word.isdigit() for word in words[1:]):
                raise NotUnderstood
            raise Exit(int(words[1][-9:]) & 255 if words[1:] else last)
        if name == "trap":  # what a signal does is what it does to every simulated container
            return 0
        if name in COMMANDS:
            return COMMANDS[name](self, words)
        return (yield from PROGRAMS[name](self, words))

    def _redirect(self, redirects: Sequence[Redirect], last: int) -> bool:
        """Sends output elsewhere; returns False after a message if a file cannot be written."""
        sinks = dict(self._sinks)
        for redirect in redirects:
            if not redirect.file:
                sinks[redirect.descriptor] = sinks[redirect.other]
                continue
            path = self._expand(redirect.file, last)
            try:
                self.files.write(path, b"", append=redirect.append)
            except OSError as error:
                self.write(f"{self.name}: can't create {path}: {error.strerror}\n", 2)
                return False
            sinks[redirect.descriptor] = self._to_file(path)
        self._sinks = sinks
        return True

    def _to_file(self, path: str) -> Sink:
        def append(text: str) -> None:
            try:
                self.files.write(path, text.encode("utf-8", "surrogateescape"), append=True)
            except OSError:  # there is no room left, which commands say in different words
                raise NotUnderstood from None

        return append

    # --- words

    def _expand_all(self, words: Sequence[Word], last: int) -> list[str]:
        """Returns the words' fields: values that are not quoted are split at blanks."""
        fields: list[str] = []
        for word in words:
            own = self._split(word, last)
            if len(own) != 1 and is_literal(words[0], "[["):
                raise NotUnderstood  # shells differ in whether they split words there
            fields += own
        return fields

    def _split(self, word: Word, last: int) -> list[str]:
        fields: list[str] = []
        current: str | None = None
        for part in word:
            text = self._value(part, last)
            if part.quoted or part.text:
                current = (current or "") + text
                continue
            if set(text) & set("*?["):
                raise NotUnderstood  # it would be a pattern of file names
            for number, piece in enumerate(text.split()):
                if current is not None and (number or text[0].isspace()):
                    fields.append(current)
                    current = None
                current = (current or "") + piece
            if current is not None and text[-1:].isspace():
                fields.append(current)
                current = None
        return fields if current is None else [*fields, current]

    def _expand(self, word: Word, last: int) -> str:
        """Returns the word as one text."""
        return "".join(self._value(part, last) for part in word)

    def _value(self, part: Part, last: int) -> str:
        if part.script is not None:
            text = self._substitute(part.script)
        elif part.variable == "?":
            text = str(last)
        elif part.variable in _OF_SHELLS - self.variables.keys():
            raise NotUnderstood
        else:
            text = self.variables.get(part.variable, "") if part.variable else part.text
        self.spend(len(text))
        return text

    def _substitute(self, script: Script) -> str:
        """Returns the output of a script in a shell of its own, without line ends at its end.

        One that takes time is not understood.
        """
        self.spend(16 * len(self.variables))  # they are copied
        texts: list[str] = []
        before = self.variables, self.exported, self._sinks
        self.variables, self._sinks = dict(self.variables), {**self._sinks, 1: texts.append}
        try:
            for _ in self.run(script):
                raise NotUnderstood
        except Exit as end:
            self.status = end.code
        self.variables, self.exported, self._sinks = before
        return "".join(texts).rstrip("\n")


def _is_idle(loop: Loop) -> bool:
    """Reports whether a loop does nothing but wait, so that it needs no steps."""
    always = len(loop.condition) == 1 and _is_waiting(loop.condition[0], "true", ":")
    return always and all(_is_waiting(statement, "true", ":", "sleep") for statement in loop.body)


def _is_waiting(statement: AndOr, *commands: str) -> bool:
    command = statement.first
    if statement.rest or not isinstance(command, Simple) or command.redirects:
        return False
    literal = all(part.script is None for word in command.words for part in word)
    return literal and bool(command.words) and is_literal(command.words[0], *commands)

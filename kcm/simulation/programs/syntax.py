"""Parses scripts of a shell, as far as they are understood.

Lists with `;`, `&&` and `||`, `if`, `while`, assignments, quotes, variables,
`$(commands)`, and output that is redirected to files. A script with anything else, such as a pipe,
is refused as a whole. The time is linear in its length.

Source: Shell Command Language, POSIX.1-2017, chapter 2.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import NoReturn

LONGEST = 8192  # characters of a script
DEEPEST = 12  # compound commands and substitutions within each other

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_BLANK = re.compile(r"(?:[ \t]|\\\n|#[^\n]*)*")
_BLANK_LINES = re.compile(r"(?:[ \t\n]|\\\n|#[^\n]*)*")
_RESERVED = re.compile(r"(if|then|elif|else|fi|while|until|do|done|for|case|\{|\}|!)(?=[\s;]|$)")
_ASSIGNMENT = re.compile(rf"({_NAME})=")
_REDIRECT = re.compile(r"([12]?)(?:>&([12])|(>>|>)(?![&|]))")
_BRACKETS = re.compile(r"(\[\[?|\]\]?)(?=[\s;&|)]|$)")  # the command `test`, and its last word
_PLAIN = re.compile(r"[^\s;&|<>()$`\"'\\*?\[\]{}]+")
_QUOTED_PLAIN = re.compile(r"[^$`\"\\]+")
_VARIABLE = re.compile(rf"\$(?:({_NAME}|\?)|\{{({_NAME}|\?)\}})")


class NotUnderstood(Exception):  # noqa: N818 - no error: the container does what it did before
    """the program is not one that simulated containers understand"""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a word: text, the value of a variable, or the output of a script."""

    text: str = ""
    variable: str = ""
    script: Script | None = None
    quoted: bool = False


Word = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where a command's output goes: to a file, or where that of another descriptor goes."""

    descriptor: int
    file: Word = ()
    other: int = 0
    append: bool = False


@dataclass(frozen=True, slots=True)
class Simple:
    """A command with its arguments; without words it only assigns."""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Conditions, each with what is done if it is the first that holds. An `else` has none."""

    branches: tuple[tuple[Script, Script], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A script that is repeated as long as a condition holds."""

    condition: Script
    body: Script


@dataclass(frozen=True, slots=True)
class AndOr:
    """Commands, each after the first with whether it is for a success (&&) or a failure (||)."""

    first: Command
    rest: tuple[tuple[bool, Command], ...]


Command = Simple | If | Loop
Script = tuple[AndOr, ...]


def parse(text: str, commands: Container[str]) -> Script:
    """Returns the script. `known` are the names of the commands that it may have.

    Raises NotUnderstood.
    """
    if len(text) > LONGEST:
        raise NotUnderstood
    parser = _Parser(text, commands)
    script = parser.script()
    if parser.at < len(text):
        raise NotUnderstood
    return script


def name_of(command: str) -> str:
    """Returns the name of a program in one of the usual folders, else the command itself."""
    folder, _, name = command.rpartition("/")
    return name if folder in ("/bin", "/usr/bin", "/usr/local/bin") else command


def is_literal(word: Word, *texts: str) -> bool:
    """Reports whether a word is one of these texts, unquoted or quoted."""
    return all(not part.variable and part.script is None for part in word) and (
        "".join(part.text for part in word) in texts
    )


class _Parser:
    def __init__(self, text: str, commands: Container[str]) -> None:
        self.text = text
        self.at = 0
        self._commands = commands
        self._depth = 0

    def script(self, *ends: str) -> Script:
        """Reads statements up to one of these reserved words, a bracket or the end."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotUnderstood
        statements: list[AndOr] = []
        while True:
            self._skip(_BLANK_LINES)
            reserved = _RESERVED.match(self.text, self.at)
            if self._next() in ("", ")") or (reserved and reserved[1] in ends):
                break
            statements.append(self._and_or())
            self._skip(_BLANK)
            if not (self._take(";") or self._take("\n")):
                break
        self._depth -= 1
        return tuple(statements)

    def _and_or(self) -> AndOr:
        first = self._command()
        rest: list[tuple[bool, Command]] = []
        while True:
            self._skip(_BLANK)
            operator = self.text[self.at : self.at + 2]
            if operator not in ("&&", "||"):
                return AndOr(first, tuple(rest))
            self.at += 2
            self._skip(_BLANK_LINES)
            rest.append((operator == "&&", self._command()))

    def _command(self) -> Command:
        reserved = _RESERVED.match(self.text, self.at)
        if reserved is None:
            return self._simple()
        self.at = reserved.end()
        if reserved[1] == "if":
            return self._if()
        if reserved[1] == "while":
            condition = self._nonempty("do")
            self._expect("do")
            body = self._nonempty("done")
            self._expect("done")
            return Loop(condition, body)
        raise NotUnderstood

    def _if(self) -> If:
        branches: list[tuple[Script, Script]] = []
        while True:
            condition = self._nonempty("then")
            self._expect("then")
            branches.append((condition, self._nonempty("elif", "else", "fi")))
            if not self._takes("elif"):
                break
        if self._takes("else"):
            branches.append(((), self._nonempty("fi")))
        self._expect("fi")
        return If(tuple(branches))

    def _nonempty(self, *ends: str) -> Script:
        return self.script(*ends) or self._refuse()

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._skip(_BLANK)
            if self._next() in ("", ";", "\n", ")", "&", "|"):
                break
            if redirect := _REDIRECT.match(self.text, self.at):
                redirects.append(self._redirect(redirect))
            elif not words and (name := _ASSIGNMENT.match(self.text, self.at)):
                self.at = name.end()
                blank = self._next() in ("", " ", "\t", "\n", ";", "&", "|", ")")
                assignments.append((name[1], () if blank else self._word()))
            else:
                words.append(self._word())
        if not (words or assignments or redirects):
            raise NotUnderstood
        if words and not self._is_known(words[0]):
            raise NotUnderstood
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    def _is_known(self, word: Word) -> bool:
        command = "".join(part.text for part in word)
        return is_literal(word, command) and name_of(command) in self._commands

    def _redirect(self, found: re.Match[str]) -> Redirect:
        self.at = found.end()
        descriptor = int(found[1] or 1)
        if found[2]:
            return Redirect(descriptor, other=int(found[2]))
        self._skip(_BLANK)
        return Redirect(descriptor, self._word(), append=found[3] == ">>")

    # --- words

    def _word(self) -> Word:
        if brackets := _BRACKETS.match(self.text, self.at):
            self.at = brackets.end()
            return (Part(brackets[1]),)
        parts: list[Part] = []
        while self._next() not in ("", " ", "\t", "\n", ";", "&", "|", ")", "<", ">"):
            parts += self._parts()
        if not parts or parts[0].text.startswith("~"):
            raise NotUnderstood
        return tuple(parts)

    def _parts(self) -> list[Part]:
        """Reads the next part of a word, or those of a text in quotes."""
        character = self._next()
        if plain := _PLAIN.match(self.text, self.at):
            self.at = plain.end()
            return [Part(plain[0])]
        if character == "$":
            return [self._dollar(quoted=False)]
        if character == "\\":
            self.at += 2
            escaped = self.text[self.at - 1 : self.at] or self._refuse()
            return [] if escaped == "\n" else [Part(escaped, quoted=True)]
        if character == "'":
            end = self.text.find("'", self.at + 1)
            start, self.at = self.at + 1, end + 1
            return [Part(self.text[start:end] if end >= 0 else self._refuse(), quoted=True)]
        if character == '"':
            self.at += 1
            return self._double_quoted()
        raise NotUnderstood  # a pattern of file names, a subshell or the like

    def _double_quoted(self) -> list[Part]:
        parts = [Part(quoted=True)]
        while not self._take('"'):
            if plain := _QUOTED_PLAIN.match(self.text, self.at):
                self.at = plain.end()
                parts.append(Part(plain[0], quoted=True))
            elif self._next() == "$":
                parts.append(self._dollar(quoted=True))
            elif self._take("\\"):
                escaped = self._next() or self._refuse()
                self.at += 1
                text = escaped if escaped in '$`"\\' else f"\\{escaped}"
                parts += [] if escaped == "\n" else [Part(text, quoted=True)]
            else:
                raise NotUnderstood
        return parts

    def _dollar(self, *, quoted: bool) -> Part:
        if variable := _VARIABLE.match(self.text, self.at):
            self.at = variable.end()
            return Part(variable=variable[1] or variable[2], quoted=quoted)
        following = self.text[self.at + 1 : self.at + 3]
        if following.startswith("(") and following != "((":
            self.at += 2
            script = self.script()
            return Part(script=script if self._take(")") else self._refuse(), quoted=quoted)
        if following and not following[0].isspace() and not (quoted and following[0] == '"'):
            raise NotUnderstood
        self.at += 1
        return Part("$", quoted=True)

    # --- characters

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self, blank: re.Pattern[str]) -> None:
        found = blank.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _take(self, character: str) -> bool:
        if self._next() != character:
            return False
        self.at += 1
        return True

    def _takes(self, word: str) -> bool:
        """Takes a reserved word, if it is the next one."""
        reserved = _RESERVED.match(self.text, self.at)
        if reserved is None or reserved[1] != word:
            return False
        self.at = reserved.end()
        return True

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise NotUnderstood

    def _refuse(self) -> NoReturn:
        raise NotUnderstood

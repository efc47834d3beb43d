"""The specs of an `e2e.test` program, and runs of single ones."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

PASSED, FAILED, CUT = "passed", "failed", "cut"
AGAIN = "again"  # it has not passed beside others, and is run once more
_ALONE = re.compile(r"\[(Serial|Disruptive)\]")
_SUMMARY = re.compile(r"(\d+) Passed \| (\d+) Failed")
_LONGEST_NAME = 100  # characters of a log's name


@dataclass(frozen=True)
class Outcome:
    """How one run of a spec ended, after how many seconds."""

    spec: str
    result: str
    seconds: float


@dataclass(frozen=True)
class Suite:
    """An `e2e.test` program, and the cluster that it is run against."""

    program: Path
    kubeconfig: Path
    logs: Path
    timeout: float  # seconds for one spec
    kubectl: str = "kubectl"  # for the specs of sig-cli

    def list_specs(self) -> list[str]:
        """Returns the names of the conformance specs, sorted. Raises CalledProcessError."""
        command = [str(self.program), "--list-conformance-tests"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return sorted({entry["codename"] for entry in yaml.safe_load(listed)})

    def run(self, spec: str) -> Outcome:
        """Runs one spec. Its output is in a log of its own."""
        command = [
            str(self.program),
            f"--kubeconfig={self.kubeconfig}",
            f"--ginkgo.focus={re.escape(spec)}$",
            "--ginkgo.no-color",
            "--ginkgo.silence-skips",
            "--provider=local",
            f"--kubectl-path={self.kubectl}",
            "--disable-log-dump",
            "--minStartupPods=0",
            "--allowed-not-ready-nodes=-1",
        ]
        log, started = self.log_of(spec), time.monotonic()
        with log.open("w") as output:
            try:
                done = subprocess.run(
                    command,
                    check=False,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=self.timeout,
                )
            except subprocess.TimeoutExpired:
                return Outcome(spec, CUT, time.monotonic() - started)
        passed = done.returncode == 0 and has_passed(log.read_text(errors="replace"))
        return Outcome(spec, PASSED if passed else FAILED, time.monotonic() - started)

    def log_of(self, spec: str) -> Path:
        """Returns the file for the output of a spec."""
        return self.logs / f"{re.sub(r'[^A-Za-z0-9]+', '-', spec).strip('-')[:_LONGEST_NAME]}.log"


def has_passed(output: str) -> bool:
    """Reports whether exactly one spec ran, and passed."""
    summary = _SUMMARY.search(output)
    return summary is not None and summary.groups() == ("1", "0")


def runs_alone(spec: str) -> bool:
    """Reports whether no other spec may run beside this one."""
    return _ALONE.search(spec) is not None

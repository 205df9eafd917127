"""Starts the real commands with an environment of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def environment(**settings: str) -> dict[str, str]:
    """Nothing of ours but what the test sets: no key, no .env file."""
    bare = {name: os.environ[name] for name in KEPT if name in os.environ}
    return bare | {"ENV_FILE": "", "PYTHONWARNINGS": "error"} | settings


def run(
    *arguments: str, cwd: Path = ROOT, seconds: float = 60, **settings: str
) -> subprocess.CompletedProcess[str]:
    """`python ARGUMENTS` to its end."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(**settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def assert_one_sentence(finished: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Failed with one line that holds all parts, and nothing else."""
    assert finished.returncode != 0
    lines = (finished.stdout + finished.stderr).strip().splitlines()
    assert len(lines) == 1, lines
    assert "Traceback" not in lines[0]
    for part in parts:
        assert part in lines[0]

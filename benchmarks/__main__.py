"""Runs the benchmarks one after the other: `python -m benchmarks [NAME …]`, all of them without names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ALL = ("search", "poll", "backfill", "import", "api", "admin", "turn", "chat_load", "kill_storm")


def main() -> int:
    names = sys.argv[1:] or ALL
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"There is no benchmark {unknown[0]}; there are {', '.join(ALL)}.")
        return 2
    worst = 0
    for name in names:
        print(f"\n== {name}", flush=True)
        worst = max(
            worst, subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], check=False).returncode
        )
    return worst


if __name__ == "__main__":
    sys.exit(main())

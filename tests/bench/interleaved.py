"""Runs on the submit host: commands in rounds, each round in another order; a line of JSON for each run.

Reads {"rounds": n, "commands": {name: shell command}} from standard input. A command that fails ends all.
"""

import json
import random
import subprocess
import sys
import time


def main() -> None:
    """Run all commands in each round; print name, seconds and the last line of output."""
    reported = json.load(sys.stdin)
    names = list(reported["commands"])
    for _ in range(reported["rounds"]):
        random.shuffle(names)
        for name in names:
            begin = time.perf_counter()
            done = subprocess.run(["bash", "-c", reported["commands"][name]], capture_output=True, text=True)
            seconds = time.perf_counter() - begin
            if done.returncode:
                sys.exit(f"{name}: {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
            line = next(iter(done.stdout.splitlines()[-1:]), "")
            print(json.dumps({"name": name, "seconds": seconds, "line": line}), flush=True)


if __name__ == "__main__":
    main()

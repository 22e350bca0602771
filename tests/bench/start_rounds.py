"""Runs on a compute node: start `true` plainly and in each image, in rounds, and print the seconds as JSON."""

import json
import subprocess
import sys
import time


def main() -> None:
    """Take rounds and name=image pairs from the command line."""
    rounds, images = int(sys.argv[1]), dict(word.split("=", 1) for word in sys.argv[2:])
    commands = {"none": ["true"], **{name: ["apptainer", "exec", path, "true"] for name, path in images.items()}}
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds + 1):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            taken[name].append(time.perf_counter() - begin)
    # The first round fills caches.
    print(json.dumps({name: seconds[1:] for name, seconds in taken.items()}))


if __name__ == "__main__":
    main()

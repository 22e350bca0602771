"""How much memory has a kubelet with many pods, and how soon are they with the next one when it dies?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from isthmus.controlplane.programs import Ports
from tests.bench import testbed
from tests.bench.results import save

STEP = Path(__file__).with_name("pods_resident_step.py")
FOLDER = "isthmus-bench"
# Where a node gets some ninety jobs at once, slurmd 24.11 may wait for prologs that have ended: slurmstepds of other
# jobs, forked meanwhile, have inherited a prolog's output, and keep it open until those jobs end.
AT_ONCE = 40
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: resident}}
spec:
  replicas: {count}
  progressDeadlineSeconds: 1800
  selector: {{matchLabels: {{app: resident}}}}
  template:
    metadata: {{labels: {{app: resident}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - {{name: main, image: "{image}", command: [sleep, "100000"], resources: {{requests: {{memory: 32Mi}}}}}}
"""
KUBECTL = "export KUBECONFIG=$(isthmus kubeconfig --path); kubectl"
JOB = "import json,sys; print(json.load(sys.stdin)['job']['id'])"
IN_JOB = f'srun --quiet --overlap --jobid="$(isthmus status --json | python3 -c "{JOB}")"'


def measure(cluster: testbed.TestBed, count: int, rounds: int) -> dict[str, Any]:
    """Bring the user's Kubernetes up with its pods, kill its kubelet in rounds, and take it down."""
    console = Console()
    image = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"]["busybox"]["reference"]
    cluster.run(f"mkdir -p {FOLDER} && cat > {FOLDER}/step.py", stdin=STEP.read_text())
    with console.status("isthmus up"):
        cluster.run("isthmus up --json")
    try:
        with console.status(f"{count} pods"):
            cluster.run(f"{KUBECTL} apply -f -", stdin=DEPLOYMENT.format(count=0, image=image))
            for replicas in (*range(AT_ONCE, count, AT_ONCE), count):
                cluster.run(f"{KUBECTL} scale deployment/resident --replicas={replicas}")
                cluster.run(f"{KUBECTL} rollout status deployment/resident --timeout=5m")
        command = f"{IN_JOB} /opt/isthmus/bin/python {FOLDER}/step.py {Ports().channel} {count}"
        reported = []
        for number in range(rounds):
            with console.status(f"death {number + 1} of {rounds}"):
                reported.append(json.loads(cluster.run(command).splitlines()[-1]))
        left = cluster.run(f"{KUBECTL} get pods --no-headers | grep -c ' Running *0 '").strip()
        with console.status("no pods"):
            cluster.run(f"{KUBECTL} delete deployment/resident --timeout=10m")
            cluster.run(f"{KUBECTL} wait --for=delete pod --all --timeout=10m")
    finally:
        cluster.run("isthmus down")
    return {"pods": count, "rounds": reported, "running_without_restart": int(left)}


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Memory of a kubelet with many pods, and their way to the next one.")
    parser.add_argument("--pods", type=int, default=180, help="pods at once (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="deaths of the kubelet (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    figures = measure(testbed.TestBed(arguments.name, arguments.host, arguments.user), arguments.pods, arguments.rounds)
    path = save("pods_resident", **figures)
    print(json.dumps(figures, indent=1), path, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

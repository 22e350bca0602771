"""From a pod's text to the plan its supervisor runs; pure."""

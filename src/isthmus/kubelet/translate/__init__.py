"""Translates a pod's spec into the plan that its supervisor runs; pure."""

"""Admission: checks a pod's spec before any job is submitted; pure. A refusal names the problem and the remedy."""

"""Ansible filters as a plain package: what the roles compute, one module or package per layer."""

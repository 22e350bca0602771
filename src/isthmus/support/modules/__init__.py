"""What modules of Ansible share with the programs: each file is `ansible.module_utils.<name>` too (ansible.cfg).

So they rest on the standard library alone: such a module runs with a host's own Python, where no Isthmus is.
"""

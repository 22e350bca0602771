"""isthmus-jobsd: polls Slurm for all kubelets, on the controller.

Each kubelet holds a connection and is sent what changes of its user's jobs. So slurmctld is asked once a second while
anybody waits, however many wait, and hardly ever when nobody does. Who asks is known by a munge credential, and sees
their own jobs and no others. It keeps nothing: a kubelet that does not find it asks Slurm itself.
"""

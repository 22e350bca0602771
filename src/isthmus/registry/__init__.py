"""isthmus-tokend: authorization for the cluster's registry, on the controller.

    client -> nginx (TLS, bounds) -> docker-registry: stores images, and trusts tokens
                    |
                    +-> isthmus-tokend: an account's password -> a token of minutes, for what its rights allow
                                        each write -> is there room within the quota?

The registry itself knows which request touches which repository, so no path is judged here. Rights are a pure function
(`rights`), as is whether there is room (`room`); what a user has is counted on the disk, where
nothing can be forgotten.
"""

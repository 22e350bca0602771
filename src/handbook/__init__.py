"""Builds the documentation's site: MkDocs reads docs/, and this package adds what the code itself knows.

`mkdocs.yml` names `hooks` of this package. The pages of reference/ are made from the code while the site is built, so
that none can go stale; where the code has a name that no text here explains, or a text a name that the code has no
more, the build ends. No part of this is installed on nodes.
"""

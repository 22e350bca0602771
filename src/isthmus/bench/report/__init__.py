"""The report: what was measured beside what the papers published, as one HTML page and as Markdown.

`figures` reads values out of results and compares them within rounds; `tables` and `plots` arrange them; `page` writes.
All but `main` is pure. Plots are made with pygal, which the deployer has; nodes have not.
"""

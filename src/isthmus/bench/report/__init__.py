"""The report: measured figures beside those of the papers, as an HTML page and as Markdown.

`figures` reads values out of results and compares them within rounds; `tables` and `plots` arrange them, `goals` judges
them, `page` renders. All but `main` is pure. Plots need pygal, which only the deployer has.
"""

extensions = ["gradspec.sphinx_ext", "myst_parser", "sphinx.ext.viewcode"]
gradspec_records = ["record.json"]
gradspec_committed_records = ["peers.json"]
html_math_renderer = "gradspec_katex"
html_theme = "basic"
exclude_patterns = ["twin.*"]

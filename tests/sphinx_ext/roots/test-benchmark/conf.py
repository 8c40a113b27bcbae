extensions = ["gradspec.sphinx_ext", "myst_parser"]
html_theme = "basic"
gradspec_committed_records = ["peers.json"]

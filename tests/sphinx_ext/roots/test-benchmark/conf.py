extensions = ["gradspec.sphinx_ext", "gradspec_lab.sphinx", "myst_parser"]
html_theme = "basic"
gradspec_committed_records = ["peers.json"]

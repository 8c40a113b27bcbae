extensions = ["gradspec.sphinx_ext", "myst_parser"]
html_theme = "basic"

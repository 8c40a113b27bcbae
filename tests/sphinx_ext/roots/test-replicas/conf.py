extensions = ["gradspec.sphinx_ext", "myst_parser", "sphinx.ext.autosummary"]
autosummary_generate = True
autodoc_default_options = {"members": True}
html_theme = "basic"
nitpick_ignore_regex = [("py:.*", r"torch\..*")]

extensions = ["gradspec.sphinx_ext", "sphinx.ext.autosummary"]
autosummary_generate = True
html_theme = "basic"
nitpick_ignore_regex = [("py:.*", r"torch\..*")]

extensions = ["gradspec.sphinx_ext", "sphinx.ext.autosummary"]
autosummary_generate = True
autodoc_default_options = {"members": True, "undoc-members": True}
html_theme = "basic"
nitpick_ignore_regex = [("py:.*", r"torch\..*")]

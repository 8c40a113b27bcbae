extensions = ["gradspec.sphinx_ext", "myst_parser", "sphinx.ext.viewcode"]
project = "Twins"
gradspec_llms = True
html_math_renderer = "gradspec_katex"
html_theme = "basic"
myst_enable_extensions = ["deflist", "dollarmath"]

extensions = ["gradspec.sphinx_ext"]
html_math_renderer = "gradspec_katex"
html_theme = "basic"

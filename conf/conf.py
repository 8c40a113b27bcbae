"""Sphinx configuration: `sphinx-build -c conf docs build/html`."""

import re
import tomllib
import warnings
from pathlib import Path

import gradspec

# Sphinx 9 deprecates a call that sphinx-autodoc-typehints 3.6.1, the last one for Python 3.11, still makes.
warnings.filterwarnings("ignore", message=".*set_application.*")

project = "gradspec"
author = "the gradspec authors"
project_copyright = "the gradspec authors"
version = release = gradspec.__version__
# The one place that names the repository is `Repository` in [project.urls]. While it is not there, no page links to it.
_ROOT = Path(__file__).parents[1]
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
repository = _PROJECT.get("urls", {}).get("Repository", "").rstrip("/")

extensions = [
    "gradspec.sphinx_ext",
    "gradspec_lab.sphinx",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    # Before sphinx_autodoc_typehints, which loads a module that hides the function `mock` of autodoc from it.
    "sphinx_click",
    "sphinx_autodoc_typehints",
    "sphinx_copybutton",
]

gradspec_records = ["../build/records/site.json"]
# A record that nobody has made yet, as that of a CUDA device, is left out.
gradspec_committed_records = ["../build/records/peers.json", "../build/records/cuda.json"]
# What is committed of the published implementations and of a CUDA device, and the record that is made of it.
gradspec_summaries = [
    "../docs/records/peers.json -> ../build/records/peers.json",
    "../docs/records/cuda.json -> ../build/records/cuda.json",
]
gradspec_law_pages = "laws"
gradspec_inventories = {
    "python": ("https://docs.python.org/3/", "inventories/python.txt"),
    "torch": ("https://docs.pytorch.org/docs/stable/", "inventories/torch.txt"),
    "pytest": ("https://docs.pytest.org/en/stable/", "inventories/pytest.txt"),
}

# A reader asks what a function is for before what it promises, and what it costs before who else wrote it.
gradspec_sections = {
    "When to reach for it": "Examples",
    **dict.fromkeys(("In pictures", "Modes", "A margin"), "What it computes"),
    **dict.fromkeys(
        ("In-place operations", "When the bank moves", "Where a row moves to", "Which form to write"), "Errors"
    ),
    **dict.fromkeys(("In evaluation", "Initial parameters", "Where the noise comes from", "A bank in shards"), "Laws"),
    **dict.fromkeys(
        ("What it costs", "Speed and memory", "Differences from torch's"), "Differences from published implementations"
    ),
}
gradspec_check_defaults = True
gradspec_fail_on = "limit"
gradspec_llms = True

nitpicky = True
# Type variables, which have no page.
nitpick_ignore = [
    ("py:class", name) for name in ("gradspec.law.AnySpec", "gradspec.law.AnyCase", "gradspec.text._graph._gather.T")
]
# In the constructor of OperatorSpec, whose fields are annotated in the module of another class.
nitpick_ignore += [("py:class", "Tensor")]
# In signatures: it is imported for the checker of types alone, for a torch may come without it.
nitpick_ignore += [("py:class", "DeviceMesh")]
# Beside that name Sphinx has the annotations as they are written, and not the objects behind them.
nitpick_ignore += [("py:class", "gradspec.nn._memory_bank._module.LinearAverage")]
# Sphinx cuts the annotation of a field at the brackets of a callable without arguments.
nitpick_ignore += [("py:class", "collections.abc.Callable[[]")]
# What `gradspec.watch` returns, which its docstring describes.
nitpick_ignore += [("py:class", "gradspec._watch._watch.Watch")]
exclude_patterns = ["records", "examples", "images"]
suppress_warnings: list[str] = []
default_role = "code"

# `torch.compiler.allow_in_graph` loads the compiler: 1.4 s in each build that imports a Function, and no page needs it.
autodoc_mock_imports = ["torch._dynamo"]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
typehints_use_signature = True
typehints_use_signature_return = True
typehints_use_rtype = False
always_use_bars_union = True

myst_enable_extensions = ["deflist", "dollarmath"]
copybutton_prompt_text = r">>> |\.\.\. ?|\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"gradspec {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "gradspec_katex"
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
        "sidebar/project.html",
    ]
}
html_theme_options = {"top_of_page_buttons": []}
if repository:
    html_theme_options = {
        "top_of_page_buttons": ["edit"],
        "source_repository": repository,
        "source_branch": "main",
        "source_directory": "docs",
    }
html_context = {"repository": repository}
html_show_sphinx = False
html_copy_source = False


def setup(app):
    """Work around what napoleon, Sphinx and viewcode misread; each comes before them (500)."""
    app.connect("autodoc-process-docstring", _no_type_in_comment, priority=450)
    app.connect("autodoc-process-docstring", _no_list_of_fields, priority=450)
    app.connect("autodoc-process-signature", _no_factory_in_signature, priority=450)
    app.connect("html-collect-pages", _no_module_without_code, priority=450)
    app.connect("viewcode-follow-imported", _as_documented)
    app.connect("html-page-context", _no_block_in_code)
    app.connect("html-page-context", _edit_the_law)


def _no_type_in_comment(app, what, name, obj, options, lines):
    # napoleon takes what stands before a colon in the first line of a `#:` comment for a type.
    if what == "attribute" and lines:
        lines[:0] = ["..", ""]


def _no_list_of_fields(app, what, name, obj, options, lines):
    # `help()` and editors read the list of a dataclass's fields in its docstring; on a page they are beneath it.
    if what == "class" and hasattr(obj, "__dataclass_fields__") and "Args:" in lines:
        start = lines.index("Args:")
        end = next((k for k, line in enumerate(lines) if k > start and line and line[0] != " "), len(lines))
        del lines[start:end]


def _no_factory_in_signature(app, what, name, obj, options, args, returns):
    # The default of a dataclass field with a factory is no Python, and Sphinx then splits the signature at commas.
    return (args.replace("<factory>", "..."), returns) if args and "<factory>" in args else None


def _as_documented(app, module, name):
    # viewcode links all that a file defines to one path. TextGrad's names are documented as its users write them, some
    # of one file by the package and some by the module: the former have no link to their source.
    return module if module and module.startswith("gradspec.text.textgrad") else None


def _no_module_without_code(app):
    # viewcode lists every module that it looked for, and so links pages of modules that have no source.
    modules = getattr(app.env, "_viewcode_modules", {})
    app.env._viewcode_modules = {name: found for name, found in modules.items() if found}
    return []


def _no_block_in_code(app, pagename, templatename, context, doctree):
    # viewcode puts `div` into `pre`, which HTML does not allow; site.css makes the `span` look the same.
    if pagename.startswith("_modules/"):
        context["body"] = re.sub(r"<pre>.*?</pre>", _spans, context["body"], flags=re.DOTALL)


def _edit_the_law(app, pagename, templatename, context, doctree):
    # The repository has no page of a law, for the build writes it from the law: "edit this page" opens that.
    folder, _, name = pagename.rpartition("/")
    if folder == "laws" and name not in ("index", "kill-matrix"):
        files = [path.relative_to(_ROOT).as_posix() for path in _ROOT.glob(f"src/gradspec/laws/*/_{name}.py")]
        if repository and len(files) == 1:
            context["theme_source_edit_link"] = f"{repository}/edit/main/{files[0]}"
        else:
            context["page_source_suffix"] = ""  # which hides the button


def _spans(match):
    return match[0].replace("<div ", "<span ").replace("</div>", "</span>")

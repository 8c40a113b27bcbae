"""The sections that say what a function is: signature, mathematics, arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docutils import nodes
from sphinx import addnodes

from gradspec.law import Status
from gradspec.sphinx_ext._addresses import is_linked
from gradspec.sphinx_ext.page._links import annotation_nodes, law_link
from gradspec.sphinx_ext.page._nodes import Cell, formula, inline, paragraph, table
from gradspec.sphinx_ext.page._verdicts import badge, overall
from gradspec.sphinx_ext.page._view import View

#: The equations of a sheet, in the order of the page, and what each is called.
EQUATIONS = {
    "primal": "Forward",
    "surrogate": "Surrogate: the map whose derivative the backward pass applies",
    "backward": "Backward, for the cotangent :math:`\\bar{y}`",
    "forward_mode": "Forward mode, for the tangents of the inputs",
}


def signature(view: View) -> addnodes.desc:
    """Return the call as the Python domain shows an object: with types, and without ctx."""
    module, _, name = view.target.rpartition(".")
    kind = "class" if view.is_class else "function"
    head = addnodes.desc_signature(view.target, "", module=module, fullname=name, ids=[view.target])
    head["class"] = ""
    if module:
        head += addnodes.desc_addname("", f"{module}.")
    head += addnodes.desc_name(view.call, view.call)
    head += _parameters(view)
    returns = view.sheet["signature"]["returns"]
    if returns:
        head += addnodes.desc_returns("", "", *annotation_nodes(returns, view.full_names))
    body = addnodes.desc_content("", view.lead)
    return addnodes.desc(
        "",
        head,
        body,
        domain="py",
        objtype=kind,
        desctype=kind,
        classes=["py", kind],
        **{"no-index": False, "noindex": False, "no-typesetting": False},
    )


def computes(view: View) -> Iterator[nodes.Node]:
    """Yield the equations, and whether they were held to the code."""
    tex = view.sheet["tex"]
    if not tex and (stated := view.sheet.get("stated")):
        yield from map(formula, stated)
        by_hand: list[str | nodes.Node] = [
            "Written by hand: ",
            badge(Status.NOT_MEASURED, "not checked"),
            ". The code is held, by ",
        ]
        yield paragraph(*by_hand, law_link("primal"), " and ", law_link("vjp"), ", to the same in plain torch.")
        return
    if not tex:
        yield paragraph("No closed formula is given, so none is checked: ", badge(Status.NOT_MEASURED, "not checked"))
        return
    for key, title in EQUATIONS.items():
        if key in tex and not (key == "surrogate" and _is_honest(tex)):
            yield paragraph(title, classes=["gradspec-equation"])
            yield formula(tex[key])
    if _is_honest(tex):
        yield paragraph("The gradient is honest: it is the derivative of what forward computes.")
    verdicts = view.verdicts("formula")
    status = overall(verdicts)
    stale = view.record.is_stale(view.name, "formula")
    if stale or not verdicts or status in (Status.NOT_APPLICABLE, Status.NOT_MEASURED):
        yield paragraph(badge(Status.NOT_MEASURED, "not checked"), " in this build.")
        return
    yield paragraph(badge(status), ", checked against the code by the law ", law_link("formula"), ".")


#: How the output is placed on DTensors, if a word of a spec is not a placement.
_OUTPUT = {"plain": "a plain tensor, whole on each rank", "any": "placed in any way"}


def described(view: View) -> Iterator[nodes.Node]:
    """Yield what the docstring of the class says after its first words, which are below the signature."""
    yield from (node for node in view.described if node is not view.lead)


def arguments(view: View) -> Iterator[nodes.Node]:
    """Yield the table of arguments, and what the call may do beside returning a value."""
    yield from _argument_table(view, view.sheet["arguments"])
    effects = view.sheet.get("effects", {})
    if view_of := effects.get("view_of"):
        yield paragraph(f"The output may be a tracked view of `{view_of}`: an in-place operation on it raises.")
    for name in effects.get("writes", ()):
        yield paragraph(f"`{name}` moves once for each forward pass, at the end of the first backward pass through it.")
    if saved := view.sheet.get("saved"):
        law = law_link("saved_bytes")
        yield paragraph(f"Beyond its arguments and outputs, a call keeps for backward at most: {saved} (", law, ").")
    for way in view.sheet.get("placements", ()):
        placed = ", ".join(f"`{name}`: {place}" for name, place in way["arguments"].items())
        output = _OUTPUT.get(way["output"], way["output"])
        yield paragraph(f"On DTensors placed as {placed}, the output is {output} (", law_link("sharded"), ").")
    if (noise := view.sheet.get("noise")) and not noise["names"]:
        yield paragraph("Each call draws random numbers from torch's generator; two from one state give the same.")
    elif noise:
        names = ", ".join(f"`{name}`" for name in noise["names"])
        yield paragraph(f"If it is drawn, {names} is {noise['law']}.")


def call(view: View) -> Iterator[nodes.Node]:
    """Yield what a module is called with, what it returns, and what it does not train."""
    yield from _argument_table(view, view.sheet["inputs"])
    if returns := view.sheet["returns"] or _shape(view.shape):
        yield paragraph(returns)
    for name in view.sheet.get("data_parallel", ()):
        yield paragraph("Each of two ranks gets the gradients of the whole batch by the law ", law_link(name), ".")
    if frozen := view.sheet["frozen"]:
        yield paragraph(f"Not trained: {', '.join(f'`{name}`' for name in frozen)}.")


def comes_out(view: View) -> Iterator[nodes.Node]:
    """Yield what an operation on text returns, and whether its backward waits."""
    if returns := view.sheet["returns"]:
        yield paragraph(returns)
    if view.sheet["io_bound"]:
        yield paragraph("On the way back it waits for a model: in a concurrent pass such calls overlap.")


def _argument_table(view: View, listed: Sequence[Mapping[str, Any]]) -> Iterator[nodes.Node]:
    columns = {"Argument": "name", "Type": "type", "Shape": "shape", "Dtype": "dtype", "Range": "range"}
    shown = [title for title, key in columns.items() if any(argument.get(key) for argument in listed)]
    flows = any(argument["gradient"] for argument in listed)
    rows = []
    for argument in listed:
        cells: dict[str, Cell] = {
            "Argument": nodes.literal("", argument["name"]),
            "Type": annotation_nodes(argument["type"], view.full_names),
            "Shape": argument["shape"],
            "Dtype": argument["dtype"],
            "Range": nodes.literal("", said) if (said := argument.get("range")) else "",
        }
        flow = ["yes" if argument["gradient"] else "no"] if flows else []
        rows.append([*(cells[title] for title in shown), *flow, argument["text"]])
    if rows:
        yield table([*shown, *(["Gradient flows"] if flows else []), "What it is"], rows)


def references(view: View) -> Iterator[nodes.Node]:
    """Yield where the definition comes from."""
    items = nodes.bullet_list(bullet="*")
    for reference in view.sheet["references"]:
        shown: list[nodes.Node] = inline(reference["text"])
        if is_linked(reference["url"]):
            shown = [nodes.reference("", "", *shown, internal=False, refuri=reference["url"])]
        items += nodes.list_item("", paragraph(*shown))
    if len(items):
        yield items


def _shape(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}" if text else ""


def _is_honest(tex: dict[str, Any]) -> bool:
    return bool(tex.get("primal", "").partition("=")[2] == tex.get("surrogate", "").partition("=")[2])


def _parameters(view: View) -> addnodes.desc_parameterlist:
    # The sheet's argument table says `float | Tensor` where the code says `Factor`.
    types = {argument["name"]: argument["type"] for argument in view.sheet["arguments"]}
    listed = addnodes.desc_parameterlist()
    for parameter in view.sheet["signature"]["parameters"]:
        name, default = parameter["name"], parameter["default"]
        shown = addnodes.desc_parameter("", "", addnodes.desc_sig_name("", name))
        if annotation := types.get(name) or parameter["annotation"]:
            shown += [addnodes.desc_sig_punctuation("", ":"), addnodes.desc_sig_space()]
            kind = addnodes.desc_sig_name()
            kind += annotation_nodes(annotation, view.full_names)
            shown += kind
        if default is not None:
            shown += [addnodes.desc_sig_space(), addnodes.desc_sig_operator("", "="), addnodes.desc_sig_space()]
            shown += nodes.inline("", default, classes=["default_value"])
        listed += shown
    return listed

"""The hash of a measurement: words do not move it, code does."""

import pytest

from gradspec.source import fingerprint, import_closure, package_root


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "closure_pkg"
    (root / "inner").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "inner" / "__init__.py").write_text("")
    (root / "a.py").write_text('"""A."""\nfrom closure_pkg.inner.b import f\nimport json\n')
    (root / "inner" / "b.py").write_text("from ..c import g\n\ndef f():\n    return g() + 1\n")
    (root / "c.py").write_text("def g():\n    return 1\n")
    (root / "unrelated.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    return root


def test_the_closure_follows_imports_inside_the_package_alone(package):
    assert import_closure("closure_pkg.a") == ("a.py", "c.py", "inner/b.py")


def test_the_closure_of_a_function_of_ours_holds_what_it_stands_on():
    files = import_closure("gradspec.functions._grad_factor")

    assert {"functions/_grad_factor.py", "functions/_gradient_scaling.py", "spec.py"} <= set(files)
    assert "functions/_grad_multiply.py" not in files
    assert package_root("gradspec").joinpath("spec.py").is_file()


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("# a comment\ndef g():\n    '''Words.'''\n    return (1)\n", False),
        ("def g():\n    return 2\n", True),
        ("def g(x):\n    return 1\n", True),
        ("def g():\n    return 1.0\n", True),
        ("def g():\n    'not', 'a docstring'\n    return 1\n", True),
    ],
)
def test_words_do_not_move_the_hash_and_code_does(package, text, moves):
    import gradspec.source

    before = fingerprint(["c.py"], package)
    (package / "c.py").write_text(text)
    gradspec.source._parse.cache_clear()
    gradspec.source._tree.cache_clear()

    assert (fingerprint(["c.py"], package) != before) is moves


def test_a_file_that_is_gone_moves_the_hash(package):
    before = fingerprint(["a.py", "c.py"], package)
    (package / "c.py").unlink()

    assert fingerprint(["a.py", "c.py"], package) != before

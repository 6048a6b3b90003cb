"""A YAML document is read as intended, or refused; every value has its line."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from compilegate.adapters.yaml_document import Place, YamlDocument, load_yaml
from compilegate.domain.errors import InvalidInputError

TEXT = """\
schema: 1
framework:
  version: 2.10  # a number, alas
training:
  hyperparameters: {a.b: off}
candidates:
- name: first
- {name: no, batch_size: 0x40}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5e-5", 5e-5),
        ("1E3", 1000.0),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("+7", 7),
        ("1_000", 1000),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("-.inf", -math.inf),
        ("2026-11-20", "2026-11-20"),
        ("2026-13-45", "2026-13-45"),
        ("1.2.3", "1.2.3"),
        ("py310", "py310"),
        ("-", None),
        ("+", "+"),
        (".", "."),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("! [1]", [1]),
        ("! {b: 1}", {"b": 1}),
        ("oN", "oN"),
    ],
)
def test_a_scalar_is_what_people_mean_by_it(text: str, expected: Any) -> None:
    read = YamlDocument(f"key: {text}\n" if text != "-" else "key:\n")

    assert {"key": expected} == read.value


def test_words_are_read_in_three_forms() -> None:
    words = {
        True: "true yes on True Yes On TRUE YES ON",
        False: "false no off False No Off FALSE NO OFF",
        None: "null Null NULL ~", math.inf: ".inf .Inf .INF +.inf", -math.inf: "-.inf -.Inf -.INF",
    }  # fmt: skip
    for value, forms in words.items():
        assert [value] * len(forms.split()) == YamlDocument(f"[{', '.join(forms.split())}]").value
    assert all(map(math.isnan, YamlDocument("[.nan, .NaN, .NAN]").value))


@pytest.mark.parametrize("number", ["0755", "08", "0b11", "0x1F", "6:30", "1:30:00.5", "-010"])
def test_numbers_to_another_base_are_refused(number: str) -> None:
    with pytest.raises(InvalidInputError, match="in a base other than ten") as caught:
        YamlDocument(f"hours: {number}\n")

    assert ("hours", number, 1) == (caught.value.field, caught.value.written, caught.value.line)


def test_keys_are_text_as_written() -> None:
    assert {"no": 1, "1": 2, "2026-11-20": 3} == YamlDocument("no: 1\n1: 2\n2026-11-20: 3").value


def test_a_merge_brings_what_the_mapping_lacks() -> None:
    text = "base: &b {a: 1, b: 2}\nmore: &m {b: 3, c: 4}\nuse: {<<: [*b, *m], a: 0}\n"

    read = YamlDocument(text)

    assert {"a": 0, "b": 2, "c": 4} == read.value["use"]
    assert Place(2, "4") == read.place("use.c")


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("a: *b", ("a", 1, None), "is an alias of `b`, which is not complete before it"),
        ("a:\n- &b [*b]", ("a[0][0]", 2, None), "is an alias of `b`"),
        ("a:\n  b: !!int 1", ("a.b", 2, "1"), "has the tag tag:yaml.org,2002:int"),
        ("a: {b: !!set {x}}", ("a.b", 1, None), "has the tag tag:yaml.org,2002:set"),
        ("!!map {a: 1}", ("document", 1, None), "has the tag"),
        ("!!int a: 1", ("document", 1, "a"), "has the tag"),
        ("? [1]\n: 2", ("document", 1, None), "is a key that is not text"),
        ("b: 1\na: {? {b: 1} : 2}", ("a", 2, None), "is a key that is not text"),
        ("a: 1\nb: 2\na: 3", ("a", None, None), "occurs twice, the second time on line 3"),
        ("x:\n  <<: {a: 1}\n  <<: {b: 1}", ("x.<<", None, None), "occurs twice"),
        ("x: 1\n<<: 5", ("document", 2, "5"), "merges something other than a mapping"),
        ("<<: [{a: 1}, 2]", ("document", 1, None), "merges something other"),
        ("a: 1\n---\nb: 2", ("", 2, None), "is more than one document"),
        ("- [1, 0x1]", ("[0][1]", 1, "0x1"), "in a base other than ten"),
    ],
)
def test_what_is_refused_says_where_it_stands(
    text: str, place: tuple[str, int | None, str | None], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(problem)) as caught:
        YamlDocument(text)

    error = caught.value
    assert place == (error.field, error.line, error.written)
    assert error.fix


@pytest.mark.parametrize(
    ("text", "line", "value", "problem"),
    [
        ("a: 1\nb: [1\nc: 2", "line 3, column 2", "c: 2", "did not find expected ',' or ']'"),
        ("a: [", "line 2, column 1", "", "did not find expected node content"),
        ("a: 1\n\tb: 2", "line 2, column 1", "b: 2",
         "found a tab character that violates indentation"),
        ("a: \0", "", None,
         "unacceptable character #x0000: control characters are not allowed"),
    ],
)  # fmt: skip
def test_what_is_not_yaml_names_line_and_column(
    text: str, line: str, value: str | None, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match="is not YAML: ") as caught:
        load_yaml(file)

    found = caught.value
    assert (line, value, f"is not YAML: {problem}") == (found.field, found.value, found.problem)


@pytest.mark.parametrize("opening", ["[", "- ", "{a: ", "? "])
def test_hostile_nesting_is_refused_at_once(opening: str) -> None:
    with pytest.raises((InvalidInputError, yaml.YAMLError)):
        YamlDocument(opening * 60_000)


# PyYAML writes such text without quotes unless YAML 1.1 takes it for a number; 0E0 and 08 are
# numbers to later versions, and the reader refuses or reads them as such.
NUMBER_LIKE = re.compile(r"[-+]?[\d.][\d_.eE+-]*")
WORDS = st.text(max_size=8).filter(lambda text: not NUMBER_LIKE.fullmatch(text))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | WORDS | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(value=PLAIN, flow=st.booleans())
def test_what_was_written_is_read_back(value: Any, flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow)

    assert value == YamlDocument(text).value


@given(data=st.data())
def test_any_text_is_read_or_refused(data: st.DataObject) -> None:
    text = TEXT
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 20)))
        piece = data.draw(
            st.sampled_from(["", "\t", ": ", "- ", "[", "}", "&a ", "*a", "<<: ", "!!x ", "---\n",
                             "\x00", "'", '"', "|\n", "? ", "#", "%"]) | st.text(max_size=5)
        )  # fmt: skip
        text = text[:start] + piece + text[end:]

    try:
        YamlDocument(text)
    except InvalidInputError as error:
        assert error.fix
    except yaml.YAMLError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("within", "beyond", "problem"),
    [
        ("[" * 20 + "]" * 20, "[" * 21 + "]" * 21, "nested too deeply"),
        ("[{a: " * 9 + "[]" + "}]" * 9, "[{a: " * 10 + "[]" + "}]" * 10, "nested too deeply"),
        # The list itself is a value, too.
        (f"[{'1,' * 19_999}]", f"[{'1,' * 20_000}]", "more than 20,000 values"),
        (
            f"- &a [{'1,' * 999}]\n" + "- *a\n" * 18 + f"- [{'1,' * 997}]\n",
            f"- &a [{'1,' * 999}]\n" + "- *a\n" * 18 + f"- [{'1,' * 999}]\n",
            "more than 20,000 values",
        ),
    ],
    ids=["deep lists", "deep mappings", "values", "values of aliases"],
)
def test_a_document_is_as_deep_and_as_large_as_it_may_be(
    within: str, beyond: str, problem: str
) -> None:
    assert YamlDocument(within).value
    with pytest.raises(InvalidInputError, match=problem):
        YamlDocument(beyond)


def test_a_file_has_256_kib_at_most_and_so_has_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "w.yaml"
    for more, fits in ((262_138 * "#", True), (262_139 * "#", False), (131_072 * "é", False)):
        file.write_text(f"a: 1 #{more}", encoding="utf-8")
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(file.read_bytes())))
        for place in (file, Path("-")):
            if fits:
                assert {"a": 1} == load_yaml(place)
            else:
                with pytest.raises(InvalidInputError, match="larger than 256 KiB"):
                    load_yaml(place)


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("schema", Place(1, "1")),
        ("framework", Place(3, None)),
        ("framework.version", Place(3, "2.10")),
        ("training.hyperparameters.a.b", Place(5, "off")),
        ("candidates[0].name", Place(7, "first")),
        ("framework.nothing", None),
        ("candidates[7].name", None),
        ("document", None),
    ],
)
def test_every_value_knows_where_it_stands(field: str, place: Place | None) -> None:
    assert place == YamlDocument(TEXT.replace("0x40", "64")).place(field)


def test_a_comment_is_that_of_the_value_s_line_and_none_behind_the_last() -> None:
    read = YamlDocument("a: 1  # one\nb: 2\n? c\n")

    assert ["one", "", "", ""] == [read.comment(key) for key in "abcd"]

import subprocess
import sys

import pytest

from gen_eval.records import Flag
from gen_eval.replies import prelude, read_choice, read_yes_no, unwrap

TABLE = [
    # reply, text or failure, steps, why
    (None, Flag.EMPTY, [], "no reply"),
    (7, Flag.NOT_TEXT, [], "a number"),
    (b"yes", Flag.NOT_TEXT, [], "bytes"),
    ("", Flag.EMPTY, [], "empty"),
    (" \n", Flag.EMPTY, [], "blank"),
    ("... **", Flag.EMPTY, [], "no word"),
    ("Yes<|im_end|></s>", "Yes", [2], "chat tokens"),
    ("<think>A</think>B", "B", [3], "block"),
    ("<THINK>A</Think> B", "B", [3], "any case"),
    ("<think>a<think>b</think>c</think>D", "D", [3], "nested"),
    ("<thinking>a</thinking><analysis>b</analysis>D", "D", [3], "two kinds"),
    ("<analysis>a <think>b</analysis> D", "D", [3], "an opening tag inside of a closed block"),
    ("The lid closes.</think>\nYes", "Yes", [3], "only the closing tag"),
    ("B <think>fine</think>", "B", [3], "reasoning after the answer"),
    ("<think>so the answer is yes", Flag.UNCLOSED_REASONING, [], "cut off"),
    ("B <reasoning>but then", Flag.UNCLOSED_REASONING, [], "cut off after an answer"),
    ("</think><think>x", Flag.UNCLOSED_REASONING, [], "closed and opened again"),
    ("<think>only</think>", Flag.EMPTY, [3], "nothing after it"),
    ("<answer>A</answer> no, <answer>B</answer>", "B", [4], "the last answer tag"),
    ("<Answer>C", "C", [4], "open answer tag"),
    ("<answer></answer>", Flag.EMPTY, [4], "empty answer tag"),
    ('{"answer": "B"}', "B", [5], "object"),
    ('{"Final Answer": "B", "note": "x"}', "B", [5], "blank in the key"),
    ('{"note": "x", "final-answer": "C", "option": "A"}', "C", [5], "order of the keys"),
    ('{"verdict": "D"}', "D", [5], "a lone key"),
    ('{"a": "x", "b": "y"}', Flag.NO_ANSWER, [], "no known key"),
    ("{'answer': True}", "yes", [5], "Python literal"),
    ('{"answer": false,}', "no", [5], "trailing comma"),
    ('{"answer": null}', Flag.NO_ANSWER, [], "null"),
    ('{"answer": 2}', "2", [5], "number"),
    ('{"answer": ["B"]}', "B", [5], "list of one"),
    ('{"answer": ["B", "C"]}', Flag.AMBIGUOUS, [], "list of two"),
    ('{"answer": []}', Flag.NO_ANSWER, [], "empty list"),
    ('{"answer": {"letter": "B"}}', Flag.NO_ANSWER, [], "object inside"),
    ('["B"]', "B", [5], "bare list"),
    ('[{"answer": "B"}]', "B", [5], "bare list of one object"),
    ('["A", "B"]', Flag.AMBIGUOUS, [], "bare list of two"),
    ("[C]", "[C]", [], "one letter in brackets is no list"),
    ("[291, 809]", "[291, 809]", [], "coordinates are no answers"),
    ('```json\n{"answer": "B"}\n```', "B", [5], "fence"),
    ("```\nyes\n```", "yes", [], "fence around words"),
    ("```B```", "B", [], "fence around a letter"),
    ('First ```{"answer": "A"}``` then ```json\n{"answer": "B"}\n``` ok', "B", [5], "the last block"),
    ('First ```{"answer": "A"}``` then ```text``` ok', "A", [5], "the last block that is an object"),
    ('See ["A", "B"]', "See [A, B]", [], "a list inside of a text"),
    ('{"answer": "B"} because', "B", [5], "text after the object"),
    ('{"answer": "YES", "why": "the c', "YES", [5], "cut off after the answer"),
    ('{"why": "the cup, "answer": "A", "answer": "B", "x', "B", [5], "the last complete pair"),
    ('{"why": "the c', Flag.BAD_JSON, [], "cut off before the answer"),
    ('{"answer": "YE', Flag.BAD_JSON, [], "cut off inside of the answer"),
    ('```json\n{"why": "th', Flag.BAD_JSON, [], "cut off in a fence"),
    (r"so $\boxed{\text{B}}$", "B", [6], "box"),
    (r"\boxed{A} and then \boxed{\textbf{Turn} {right}}.", "Turn {right}", [6], "the last box, with brackets inside"),
    (r"\boxed{\text{B}", "B", [6], "an open box"),
    (r'{"answer": "\boxed{B}"}', "B", [5, 6], "box inside of JSON, escaped wrongly"),
    ("“**Ｙｅｓ**”", "Yes", [], "plain text"),
]


@pytest.mark.parametrize(("reply", "text", "steps", "why"), TABLE, ids=[row[3] for row in TABLE])
def test_table(reply, text, steps, why):
    reading = prelude(reply)
    assert (reading.failure or reading.value) == text
    assert reading.detail.get("prelude", []) == steps or reading.failure is not None


def test_unwrapping_leaves_json_alone():
    assert unwrap('<think>x</think><answer>{"a": [1]}</answer>').value == '{"a": [1]}'
    assert unwrap("<think>x").failure == Flag.UNCLOSED_REASONING
    assert unwrap("  ").value == "  "


def test_a_failure_keeps_its_rule():
    assert read_yes_no("<think>").rule == "prelude 3"
    assert read_choice('{"why": "', {"A": "x"}).rule == "prelude 5"
    assert read_choice('{"answer": "A"}', {"A": "x"}).detail == {"prelude": [5]}


def test_import_is_light():
    code = "import sys, gen_eval.replies; print([m for m in ('numpy', 'yaml', 'torch', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

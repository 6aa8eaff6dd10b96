"""CLIP's tokens: goldens, cutting, what holds for every text, the package that is absent."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("open_clip")

from gen_eval.networks import tokenizer
from gen_eval.networks.tokenizer import END, START, tokenize
from gen_eval.records import ItemError, Reason


def test_golden(quality_goldens):
    golden = json.loads((quality_goldens / "tokenizer.json").read_text())
    assert (golden["start_id"], golden["end_id"]) == (START, END)
    prompts = golden["prompts"]
    assert len(prompts) == 13
    rows, cut = tokenize([prompt["text"] for prompt in prompts], context=golden["context_length"])
    for row, missing, prompt in zip(rows, cut, prompts, strict=True):
        assert row.tolist() == prompt["ids"], prompt["text"]
        assert missing == max(len(prompt["content_ids"]) - 30, 0), prompt["text"]


def test_a_long_text_is_cut_and_ends_with_the_end_token():
    (row,), cut = tokenize(["left " * 12], context=6)
    assert row.tolist() == [START, 1823, 1823, 1823, 1823, END]
    assert cut == [8]


def test_texts_that_just_fit_lose_nothing():
    rows, cut = tokenize(["left " * count for count in (29, 30, 31)], context=32)
    assert cut == [0, 0, 1]
    assert rows[:, 31].tolist() == [0, END, END]


def test_special_tokens_are_those_of_the_original_whatever_the_case():
    rows, _ = tokenize(["<|StartOfText|> left", "<start_of_text> left"], context=8)
    assert rows[0].tolist() == [START, START, 1823, END, 0, 0, 0, 0]
    assert START not in rows[1, 1:]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_every_text_gives_a_row(texts):
    rows, cut = tokenize(texts, context=32)
    assert rows.shape == (len(texts), 32)
    assert (rows[:, 0] == START).all()
    for row, missing in zip(rows, cut, strict=True):
        used = np.flatnonzero(row == END)[-1]
        assert not row[used + 1 :].any()
        assert missing == 0 or used == 31


@given(st.lists(st.text("aBcD .,!7'", max_size=9), max_size=9))
@settings(max_examples=40, deadline=None)
def test_case_and_blanks_do_not_matter(words):
    row, other = tokenize([" ".join(words), " \t ".join(words).upper()], context=32)[0]
    np.testing.assert_array_equal(row, other)


def test_no_room_is_refused():
    with pytest.raises(ValueError, match="3 or more"):
        tokenize(["a"], context=2)


def test_without_the_vocabulary_the_item_is_skipped(monkeypatch):
    tokenizer._byte_pairs.cache_clear()
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(ItemError, match=r"gen-eval\[models\]") as caught:
        tokenize(["a"], context=32)
    assert caught.value.reason is Reason.MISSING_WEIGHTS

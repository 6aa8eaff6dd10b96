"""Own protocols whose parameters are not those of the metric, or not of their kind."""

import pytest

from gen_eval.protocols import load_protocol
from gen_eval.records import InputError

AESTHETIC, DINO, FLOW = "aesthetic_quality", "subject_consistency", "dynamic_degree"
PAIR, CONDITIONED, CLIP = "edge_f1", "i2v_subject", "overall_consistency"


@pytest.mark.parametrize(
    ("metric", "sections", "expected"),
    [
        (DINO, "{}", "measure lacks network, resize, .*base: corrected"),
        (DINO, "{base: corrected, measure: {sied: 3}}", "unknown parameter 'sied'; known are network, resize"),
        (DINO, "{base: corrected, measure: {network: 3}}", "network is 3; expected a word, such as 'dino_vitb16'"),
        (DINO, "{base: corrected, measure: {network: [a]}}", r"network is \['a'\]; expected a word"),
        (DINO, "{base: corrected, measure: {side: '224'}}", "side is '224'; expected a number, such as 224"),
        (DINO, "{base: corrected, measure: {side: true}}", "side is True; expected a number"),
        (DINO, "{base: corrected, measure: {side: .inf}}", "side is inf; expected a number"),
        (DINO, "{base: corrected, measure: {antialias: 'no'}}", "antialias is 'no'; expected true or false"),
        (DINO, "{base: corrected, measure: {normalise: {a: 1}}}", "normalise is .*; expected a (number or a )?word"),
        (DINO, "{base: corrected, measure: [1]}", r"measure must be a mapping, not \[1\]"),
        (DINO, "{base: corrected, decide: word}", "decide must be a mapping, not 'word'"),
        (DINO, "{base: [corrected]}", r"no protocol \['corrected'\]"),
        (DINO, "{base: corrected, reasons: {too_few_frames: [x]}}", r"unknown reason \['x'\]"),
        (DINO, "{base: corrected, reasons: {nonsense: too_small}}", "unknown reason 'nonsense'"),
        (DINO, "{base: corrected, aggregate: {members: sometimes}}", "rule 'sometimes'; expected sample_first, pooled"),
        (DINO, "{base: corrected, aggregate: {beside: [medians]}}", "rule 'medians'"),
        (DINO, "{base: corrected, aggregate: {member: pooled}}", "aggregate has member; expected members, beside and"),
        (DINO, "{base: corrected, 3: {}}", "unknown sections"),
        (FLOW, "{base: corrected, measure: {sampling_rate: fast}}", "sampling_rate is 'fast'; expected a number"),
        (FLOW, "{base: corrected, decide: {sampling: random}}", "sampling is 'random'; expected by_index or by_time"),
        (FLOW, "{base: corrected, decide: {border: cut}}", "border is 'cut'; expected padded or removed"),
        (FLOW, "{base: corrected, decide: {threshold: high}}", "threshold is 'high'; expected a number"),
        (CONDITIONED, "{base: corrected, decide: {weights: {condition: 1}}}", "weights lacks mean, least"),
        (CONDITIONED, "{base: corrected, decide: {weights: heavy}}", "weights is 'heavy'; expected a mapping"),
        (CONDITIONED, "{base: corrected, decide: {weights: {condition: a, mean: 1, least: 1}}}", "condition is 'a'"),
        (PAIR, "{base: corrected, measure: {low: null}}", "low is None; expected a number"),
    ],
)
def test_what_the_metric_does_not_read_is_refused(tmp_path, metric, sections, expected):
    path = tmp_path / "own.yaml"
    path.write_text(f"{metric}: {sections}")
    with pytest.raises(InputError, match=expected):
        load_protocol(metric, str(path))


@pytest.mark.parametrize(
    ("metric", "name", "text", "value"),
    [
        (DINO, "crop", "224", 224),  # the word none stands for a number
        (CLIP, "crop", "none", "none"),
        (DINO, "resize", "square", "square"),
        (PAIR, "aspect_tolerance", "null", None),  # as in another protocol of the metric
        (PAIR, "low", "50.5", 50.5),
    ],
)
def test_other_values_of_the_same_kind_are_taken(tmp_path, metric, name, text, value):
    path = tmp_path / "own.yaml"
    path.write_text(f"{metric}: {{base: corrected, measure: {{{name}: {text}}}}}")
    assert load_protocol(metric, str(path)).measure[name] == value


def test_a_file_that_is_no_text_is_explained(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read as YAML"):
        load_protocol(DINO, str(path))


def test_a_folder_of_ones_own_is_held_to_the_same_form(tmp_path, monkeypatch):
    from gen_eval.protocols import loading

    (tmp_path / "protocols").mkdir()
    monkeypatch.setenv("GEN_EVAL_CONFIGS", str(tmp_path))
    for content, expected in (
        (f"{DINO}: [1]", "must map names of protocols to sections"),
        (f"{DINO}: {{mine: {{measure: {{network: dino_vitb16}}}}}}", "measure lacks resize"),
        ("metric_of_a_plug_in: {mine: {measure: {anything: 3}}}", None),
    ):
        (tmp_path / "protocols" / "own.yaml").write_text(content)
        loading._protocol_table.cache_clear()
        loading._protocols_below.cache_clear()
        try:
            if expected is None:
                assert load_protocol("metric_of_a_plug_in", "mine").measure == {"anything": 3}
            else:
                with pytest.raises(InputError, match=expected):
                    load_protocol(DINO, "mine")
        finally:
            loading._protocol_table.cache_clear()
            loading._protocols_below.cache_clear()

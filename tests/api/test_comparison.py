"""Comparison of runs: what differs is said first, differences are paired by sample, other rules are not mixed."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.services.comparison import compare
from api.services.results import RunResults
from gen_eval.records import InputError
from gen_eval.stats import paired_difference

NAMES = ("s1", "s2", "s3", "s4")


@pytest.fixture
def results(maker):
    """Results of a run with one member a sample; `values` maps samples to the value of every metric."""

    def make(name, values, model="alpha", members=("0",), sample=None, change=None, fps=24.0, **other):
        samples = [maker.sample(one, members, model=model, **(sample or {})) for one in values]
        manifest = maker.manifest(samples, model=model, **other)
        path = maker(name, manifest, lambda one, *_: values[one], change, pictures=False, fps=fps)
        return RunResults.read(path)

    return make


def about(found):
    return [one.about for one in found.others[0].differences]


def the(found, metric="blur_ssim", protocol="corrected"):
    (one,) = [one for one in found.others[0].metrics if (one.metric, one.protocol) == (metric, protocol)]
    return one


def scaled(values):
    return dict(zip(NAMES, values, strict=True))


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_a_run_against_itself_differs_in_nothing(results):
    run = results("a", scaled((0.2, 0.4, 0.6, 0.8)))
    found = compare(run, run)
    assert found.others[0].differences == ()
    assert {one.verdict for one in found.others[0].metrics} == {"no clear difference"}
    assert {one.paired.difference for one in found.others[0].metrics} == {0.0}
    assert not found.worse
    assert "the manifests do not differ" in str(found)


def test_the_difference_is_other_minus_first_over_paired_samples(results):
    first = results("a", scaled((0.2, 0.4, 0.6, 0.8)))
    other = results("b", scaled((0.1, 0.3, 0.55, 0.7)), model="beta")
    found = compare(first, other)
    one = the(found)
    assert one.paired.difference == pytest.approx((-0.1 - 0.1 - 0.05 - 0.1) / 4, abs=1e-12)
    assert one.paired == paired_difference(
        {"s1": 0.1, "s2": 0.3, "s3": 0.55, "s4": 0.7}, {"s1": 0.2, "s2": 0.4, "s3": 0.6, "s4": 0.8}
    )
    assert (one.verdict, one.paired.n) == ("worse", 4)
    assert found.worse
    assert the(compare(other, first)).verdict == "better"
    assert not compare(other, first).worse


def test_smaller_is_better_turns_the_verdict_around(results):
    metrics = {"depth_si_rmse": ("corrected",)}
    first = results("a", scaled((0.2, 0.4, 0.6, 0.8)), metrics=metrics)
    other = results("b", scaled((0.3, 0.5, 0.65, 0.9)), model="beta", metrics=metrics)
    assert the(compare(first, other), "depth_si_rmse").verdict == "worse"
    assert the(compare(other, first), "depth_si_rmse").verdict == "better"


def test_an_interval_that_holds_zero_is_no_clear_difference(results):
    first = results("a", scaled((0.2, 0.4, 0.6, 0.8)))
    other = results("b", scaled((0.3, 0.3, 0.7, 0.7)), model="beta")
    one = the(compare(first, other))
    assert one.paired.lower < 0 < one.paired.upper
    assert one.verdict == "no clear difference"


def test_one_common_sample_decides_nothing(results):
    one = the(compare(results("a", {"s1": 0.9}), results("b", {"s1": 0.1}, model="beta")))
    assert (one.paired.n, one.paired.lower, one.verdict) == (1, None, "no clear difference")


def test_members_are_averaged_first(results, maker):
    values = {("s1", "0"): 0.2, ("s1", "1"): 0.6, ("s1", "2"): 0.7, ("s2", "0"): 0.9}
    samples = [maker.sample("s1", ("0", "1", "2"), model="beta"), maker.sample("s2", ("0",), model="beta")]
    manifest = maker.manifest(samples, model="beta")
    path = maker("b", manifest, lambda sample, member, *_: values[sample, member], pictures=False)
    found = compare(results("a", {"s1": 0.5, "s2": 0.5}), RunResults.read(path))
    for protocol in ("corrected", "reference"):
        assert the(found, protocol=protocol).paired.difference == pytest.approx((0.0 + 0.4) / 2, abs=1e-12)
    assert "members" in about(found)


def test_samples_with_a_value_on_one_side_only_are_counted_and_named(results, maker):
    def change(row):
        return maker.missing(row) if row.sample == "s2" else row

    first = results("a", scaled((0.2, 0.4, 0.6, 0.8)))
    other = results("b", {"s1": 0.2, "s2": 0.4, "s5": 0.6}, model="beta", change=change)
    one = the(compare(first, other))
    assert one.paired.n == 1
    assert one.paired.only_b == ("s2", "s3", "s4")
    assert one.paired.only_a == ("s5",)
    text = str(compare(first, other))
    assert "3 samples with a value in the first run only: s2, s3, s4" in text
    assert "1 sample with a value in the other run only: s5" in text


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=6))
def test_swapping_two_runs_swaps_sign_and_verdict(maker, pairs):
    runs = []
    for side in (0, 1):
        samples = [maker.sample(f"s{place}", ("0",)) for place in range(len(pairs))]
        manifest = maker.manifest(samples, model=str(side), metrics={"blur_ssim": ("corrected",)})
        rows = [
            maker.row(str(side), f"s{place}", "0", "blur_ssim", "corrected", pair[side])
            for place, pair in enumerate(pairs)
        ]
        runs.append(RunResults(str(side), manifest, rows))
    there, back = the(compare(*runs)), the(compare(*reversed(runs)))
    assert there.paired.difference == -back.paired.difference
    assert there.paired.lower == pytest.approx(-back.paired.upper, abs=1e-12)
    opposite = {"worse": "better", "better": "worse", "no clear difference": "no clear difference"}
    assert there.verdict == opposite[back.verdict]
    assert (there.verdict == "worse") == (there.paired.upper < 0)


# --- what differs ----------------------------------------------------------------------------------------------------


def test_two_models_on_one_benchmark_differ_in_what_is_expected_only(results):
    values = scaled((0.2, 0.4, 0.6, 0.8))
    found = compare(results("a", values), results("b", values, model="beta"))
    assert about(found) == ["model", "videos"]
    assert all(one.expected for one in found.others[0].differences)


def test_another_content_under_one_label_is_not_expected(results):
    values = scaled((0.2, 0.4, 0.6, 0.8))
    first = results("a", values)
    manifest = json.loads(json.dumps(first.manifest))
    manifest["samples"][0]["members"][0]["sha256"] = "another"
    found = compare(first, RunResults("b", manifest, first.rows))
    assert [(one.about, one.expected) for one in found.others[0].differences] == [("videos", False)]
    assert found.others[0].differences[0].text == "the generated videos: 1 of 4 have another content"


@pytest.mark.parametrize(
    ("about_what", "sentence", "changed"),
    [
        ("prompts", "prompts differ for 4 of 4 common samples: s1, s2, s3, s4", {"sample": {"prompt": "other"}}),
        ("reference", "reference videos differ for 4 of 4", {"sample": {"reference": "other"}}),
        ("fps", "frame rate of the videos, for 4 of 4 common samples: 24 fps against 8 fps", {"fps": 8.0}),
        ("protocol", "the protocol that was asked for: corrected and reference", {"protocol": "reference"}),
        (
            "preset",
            "what the metrics were shown (preset): 121-frames and all-frames",
            {"preset": {"name": "all-frames", "limit": None}},
        ),
        ("preset", "limit 121, name 121-frames", {"preset": {"name": "121-frames", "limit": 120}}),
        ("layout", "layout of the data: pai-c and references", {"layout": "references"}),
        ("seeds", "seeds or captions that were asked for: those found and 0, 1", {"seeds": ["0", "1"]}),
        ("domains", "domains that were asked for: all and av", {"domains": ["av"]}),
        ("limit", "number of samples that was asked for: all and 4", {"limit": 4}),
        ("environment", "av: 18.1 and 17.0", {"environment": {"numpy": "2.4", "av": "17.0"}}),
        ("environment", "opencv: absent and 5", {"environment": {"numpy": "2.4", "av": "18.1", "opencv": "5"}}),
        ("metrics", "only in the first run: blur_ssim (reference)", {"metrics": {"blur_ssim": ("corrected",)}}),
        ("track", "different tracks: control and quality", {"track": "quality"}),
        ("chunk", "chunk: 8 and 16", {"chunk": 16}),
        ("domains_of_samples", "domains differ for 4 of 4", {"sample": {"domain": "av"}}),
    ],
)
def test_what_differs_is_said_before_any_difference_of_numbers(results, about_what, sentence, changed):
    values = scaled((0.2, 0.4, 0.6, 0.8))
    found = compare(results("a", values), results("b", values, model="beta", **changed))
    assert about_what in about(found)
    text = str(found)
    assert sentence in text
    assert text.index(sentence) < text.index("(corrected): ")


def test_samples_on_one_side_only_are_named(results):
    found = compare(results("a", {"s1": 0.5, "s2": 0.5}), results("b", {"s2": 0.5, "s3": 0.5}, model="beta"))
    texts = [one.text for one in found.others[0].differences if one.about == "samples"]
    assert texts == ["1 sample of 2 only in the first run: s1", "1 sample of 2 only in the second run: s3"]


def test_mixed_frame_rates_are_counted(results, maker):
    values = scaled((0.2, 0.4, 0.6, 0.8))

    def change(row):
        rate = 8.0 if row.sample in {"s1", "s2", "s3"} else 12.0
        return replace(row, detail={"video": {"fps": rate, "decoded_frames": 6}})

    found = compare(results("a", values), results("b", values, model="beta", change=change))
    (text,) = [one.text for one in found.others[0].differences if one.about == "fps"]
    assert text.endswith("24 fps against 8 fps (3 times), 12 fps (1 times)")


# --- what is not mixed -----------------------------------------------------------------------------------------------


def altered(run, metric, **entry):
    manifest = json.loads(json.dumps(run.manifest))
    manifest["metrics"][metric].update(entry)
    return RunResults("altered", manifest, run.rows)


def test_scores_of_another_version_are_listed_and_not_compared(results):
    run = results("a", scaled((0.2, 0.4, 0.6, 0.8)))
    other = compare(run, altered(run, "blur_ssim", version=2)).others[0]
    assert {one.metric for one in other.metrics} == {"edge_f1"}
    assert [(one.metric, one.protocol) for one in other.not_compared] == [
        ("blur_ssim", "corrected"),
        ("blur_ssim", "reference"),
    ]
    assert other.not_compared[0].why == "the versions of the metric differ (1 and 2)"
    assert [one.text for one in other.differences] == ["version of blur_ssim: 1 and 2"]


def test_scores_under_other_parameters_are_listed_and_not_compared(results):
    run = results("a", scaled((0.2, 0.4, 0.6, 0.8)))
    digests = {"corrected": "0" * 64, "reference": run.manifest["metrics"]["edge_f1"]["protocols"]["reference"]}
    other = compare(run, altered(run, "edge_f1", protocols=digests)).others[0]
    assert [(one.metric, one.protocol) for one in other.not_compared] == [("edge_f1", "corrected")]
    assert "the parameters differ" in other.not_compared[0].why
    assert ("edge_f1", "reference") in {(one.metric, one.protocol) for one in other.metrics}
    assert "parameters" in [one.about for one in other.differences]


def test_scores_of_other_weights_are_listed_and_not_compared(results):
    values = scaled((0.2, 0.4, 0.6, 0.8))
    first = results("a", values, change=lambda row: replace(row, weights="1" * 64))
    other = results("b", values, model="beta", change=lambda row: replace(row, weights="2" * 64))
    found = compare(first, other)
    assert found.others[0].metrics == ()
    assert "the weights differ (111111111111 and 222222222222)" in str(found)
    assert not found.decidable


def test_samples_with_another_reference_are_left_out_of_paired_metrics(results):
    first = results("a", scaled((0.2, 0.4, 0.6, 0.8)))
    other = results("b", scaled((0.9, 0.4, 0.6, 0.8)), model="beta")
    manifest = json.loads(json.dumps(other.manifest))
    manifest["samples"][0]["reference"]["sha256"] = "another"
    found = compare(first, RunResults("b", manifest, other.rows))
    one = the(found)
    assert (one.other_inputs, one.paired.n, one.paired.difference) == (("s1",), 3, 0.0)
    assert "1 sample left out because the files that they are scored against differ: s1" in str(found)


def test_a_reference_at_another_path_with_equal_content_is_the_same(results):
    first = results("a", scaled((0.2, 0.4, 0.6, 0.8)))
    manifest = json.loads(json.dumps(first.manifest))
    manifest["samples"][0]["reference"]["path"] = "elsewhere/s1.mp4"
    assert compare(first, RunResults("b", manifest, first.rows)).others[0].differences == ()


def test_one_protocol_only(results):
    run = results("a", scaled((0.2, 0.4, 0.6, 0.8)))
    assert {one.protocol for one in compare(run, run, protocol="reference").others[0].metrics} == {"reference"}
    with pytest.raises(InputError, match="no run has scores under the protocol 'imaginary'; there are corrected"):
        compare(run, run, protocol="imaginary")
    with pytest.raises(InputError, match="nothing to compare"):
        compare(run)


# --- what it gives ---------------------------------------------------------------------------------------------------


def test_json_pandas_and_notebook(results):
    first = results("a", scaled((0.2, 0.4, 0.6, 0.8)), model="<b>alpha</b>")
    found = compare(first, results("b", scaled((0.1, 0.3, 0.5, 0.6)), model="beta"))
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["first"] == {"model": "<b>alpha</b>", "run": first.run}
    (one,) = [
        one
        for one in document["comparisons"][0]["metrics"]
        if (one["metric"], one["protocol"]) == ("blur_ssim", "corrected")
    ]
    assert one["difference"] == pytest.approx(-0.125, abs=1e-12)
    assert (one["n"], one["verdict"], one["only_first"]) == (4, "worse", [])
    assert one["first"]["value"] == pytest.approx(0.5, abs=1e-12)
    assert document["worse"] is True
    table = found.to_pandas()
    assert len(table) == 4
    assert set(table["verdict"]) == {"worse"}
    assert "<b>alpha</b>" not in found._repr_html_()
    assert "&lt;b&gt;alpha&lt;/b&gt;" in found._repr_html_()


def test_several_runs_against_the_first(results):
    values = scaled((0.2, 0.4, 0.6, 0.8))
    first, same = results("a", values), results("b", values, model="beta")
    bad = results("c", scaled((0.1, 0.1, 0.1, 0.1)), model="gamma")
    found = compare(first, same, bad)
    assert [(one.label, one.worse) for one in found.others] == [("beta", False), ("gamma", True)]
    assert found.worse


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_and_its_gate(cli, results):
    good, bad = (
        results("good", scaled((0.2, 0.4, 0.6, 0.8))),
        results("bad", scaled((0.1, 0.3, 0.5, 0.6)), model="beta"),
    )
    shown = cli("compare", good.path, bad.path)
    assert shown.code == 0
    assert shown.out.index("differs: model: alpha and beta (expected)") < shown.out.index("-12.50 points")
    failed = cli("compare", good.path, bad.path, "--fail-if", "worse", "--json")
    assert failed.code == 1
    assert failed.json["worse"] is True
    assert "worse than alpha: blur_ssim (corrected)" in failed.err
    passed = cli("compare", bad.path, good.path, "--fail-if", "worse", "--protocol", "reference")
    assert passed.code == 0
    assert " corrected " not in passed.out


def test_a_gate_that_cannot_be_decided_fails(cli, results):
    good, other = results("good", {"s1": 0.5}), results("bad", {"s2": 0.5}, model="beta")
    done = cli("compare", good.path, other.path, "--fail-if", "worse")
    assert done.code == 1
    assert "cannot be decided" in done.err
    assert cli("compare", good.path).code == 2
    assert cli("compare", good.path, other.path, "--fail-if", "better").code == 2

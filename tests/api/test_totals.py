"""Quality and Overall of runs: from rows to JSON, tables, pages and comparisons. Rows are made by hand."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from api.cli.tables import print_comparison, print_summary
from api.services.comparison import compare
from api.services.reporting import render
from api.services.reporting.latex import escaped
from api.services.results import RunResults
from api.services.systems import systems_of
from gen_eval.protocols import total_rules, totals_of
from gen_eval.records import InputError, Reason, Score, Status, digest_of
from gen_eval.records.run import MANIFEST_FORMAT

EIGHT = total_rules()["quality"].mean_of
DOMAINS = {f"{domain}_{place}": domain for domain in ("av", "robot") for place in range(3)}


def rule_of(metric, protocol):
    if protocol == "corrected":
        return "sample_first"
    return "frame_weighted" if metric == "background_consistency" else "pooled"


def made(metrics=EIGHT, model="alpha", shift=0.0, members=("0", "1"), change=None, **other):
    """A run over six samples with the given metrics, under both protocols."""
    protocols = ("corrected", "reference")
    entries = {
        metric: {
            "version": 1,
            "protocols": {name: digest_of([metric, name]) for name in protocols},
            "members": {name: rule_of(metric, name) for name in protocols},
        }
        for metric in metrics
    }
    for metric in {"subject_consistency", "background_consistency"} & entries.keys():
        entries[metric]["beside"] = {"corrected": ["frame_weighted"]}
    if "subject_consistency" in entries:
        entries["subject_consistency"]["beside"]["reference"] = ["frame_weighted"]
    manifest = {
        "format": MANIFEST_FORMAT, "gen_eval": "0.2", "track": "quality", "model": model, "layout": "pai-g",
        "metrics": entries, "totals": {name: rule.to_json() for name, rule in totals_of(metrics).items()},
        "protocol": "corrected", "preset": {"name": "all-frames", "limit": None}, "chunk": 8, "environment": {},
        "networks": None, "seeds": None, "domains": None, "limit": None, "unknown_videos": [], "not_asked_videos": [],
        "rejected": [],
        "samples": [
            {"id": sample, "domain": domain, "prompt": "p", "condition_image": None,
             "members": [{"id": one, "path": None, "sha256": model, "problem": None} for one in members]}
            for sample, domain in DOMAINS.items()
        ],
    }  # fmt: skip
    manifest.update(other)
    rng = np.random.default_rng(5)
    rows = []
    for sample in DOMAINS:
        for member in members:
            for metric in metrics:
                value, count = float(rng.uniform(0.2, 0.8)) + shift, int(rng.integers(3, 40))
                for name in protocols:
                    row = Score(
                        model, sample, member, metric, name, value, Status.OK,
                        detail={"sum": value * count, "count": count}, parameters=entries[metric]["protocols"][name],
                    )  # fmt: skip
                    rows.append(row if change is None else change(row))
    return RunResults(digest_of([manifest, shift]), manifest, rows)


def lost(row):
    return replace(row, value=None, status=Reason.UNDECODABLE.status, reason=Reason.UNDECODABLE, detail={})


def without(metric, sample=None):
    return lambda row: lost(row) if row.metric == metric and sample in {None, row.sample} else row


def test_quality_is_the_mean_of_the_unrounded_aggregates():
    run = made()
    for protocol in ("corrected", "reference"):
        total = run.totals["quality"][protocol]
        parts = [run.aggregate[metric][protocol].main.value for metric in EIGHT]
        assert total.value == pytest.approx(sum(parts) / 8, abs=1e-15)
        assert total.lower < total.value < total.upper
        assert {part.count for part in total.parts.values()} == {(6, 6)}
    assert run.totals["quality"]["corrected"].value != run.totals["quality"]["reference"].value
    assert "overall" not in run.totals


def test_quality_by_domain_uses_the_samples_of_the_domain():
    run = made()
    assert list(run.group_totals) == ["av", "robot"]
    for domain, totals in run.group_totals.items():
        parts = [run.groups[domain][metric]["corrected"].main.value for metric in EIGHT]
        assert totals["quality"]["corrected"].value == pytest.approx(sum(parts) / 8, abs=1e-15)


def test_frame_weighted_stands_beside_the_video_mean():
    run = made()
    for metric, protocol in (
        ("subject_consistency", "corrected"),
        ("background_consistency", "corrected"),
        ("subject_consistency", "reference"),
    ):
        rows = [row for row in run.rows if row.metric == metric and row.protocol == protocol]
        counts = [row.detail["count"] for row in rows]
        expected = sum(row.detail["sum"] for row in rows) / sum(counts)
        one = run.aggregate[metric][protocol]
        beside = one.values["frame_weighted"]
        assert beside.value == pytest.approx(expected, abs=1e-12)
        assert beside.lower < beside.value < beside.upper
        assert one.main.value == pytest.approx(sum(row.value for row in rows) / len(rows), abs=1e-12)
    reference = run.aggregate["background_consistency"]["reference"]
    rows = [row for row in run.rows if row.metric == "background_consistency" and row.protocol == "reference"]
    weighted = sum(row.detail["sum"] for row in rows) / sum(row.detail["count"] for row in rows)
    assert reference.main.value == pytest.approx(weighted, abs=1e-12)
    assert "frame_weighted" not in reference.values
    assert "frame_weighted" not in run.aggregate["motion_smoothness"]["corrected"].values


def test_rows_that_do_not_say_their_frames():
    bare = lambda row: replace(row, detail={}) if row.metric == "subject_consistency" else row  # noqa: E731
    assert "frame_weighted" not in made(change=bare).aggregate["subject_consistency"]["corrected"].values
    bare = lambda row: replace(row, detail={}) if row.metric == "background_consistency" else row  # noqa: E731
    with pytest.raises(InputError, match="weighted by frames, and the row of av_0, member 0"):
        _ = made(change=bare).aggregate


def test_a_dimension_without_values_or_not_asked_for_leaves_a_partial_mean():
    for run in (
        made(change=without("imaging_quality")),
        made(metrics=[one for one in EIGHT if one != "imaging_quality"]),
    ):
        total = run.totals["quality"]["corrected"]
        assert total.value is None
        assert total.missing == ("imaging_quality",)
        assert (total.n, total.N) == (7, 8)
        assert total.partial.of == tuple(one for one in EIGHT if one != "imaging_quality")
        assert total.partial.lower < total.partial.value < total.partial.upper


def test_gaps_are_left_out_of_their_dimension_only():
    run = made(change=without("i2v_subject", "robot_1"))
    total = run.totals["quality"]["corrected"]
    assert total.parts["i2v_subject"].count == (5, 6)
    assert total.parts["i2v_background"].count == (6, 6)
    assert total.parts["i2v_subject"].value == run.aggregate["i2v_subject"]["corrected"].main.value
    assert total.value is not None


def test_metrics_that_enter_no_total_have_none():
    run = made(metrics=("temporal_flickering", "dynamic_degree"))
    assert run.totals == {}
    assert run.to_json()["totals"] == {}
    plain = made()
    more = made(metrics=(*EIGHT, "temporal_flickering"))
    assert set(more.totals["quality"]["corrected"].parts) == set(plain.totals["quality"]["corrected"].parts)


def test_what_was_asked_decides_and_not_the_configuration_of_today():
    own = {"quality": {"title": "Q", "mean_of": ["imaging_quality", "i2v_subject"], "shown_with": "any"}}
    total = made(totals=own).totals["quality"]["corrected"]
    assert tuple(total.parts) == ("imaging_quality", "i2v_subject")


def test_the_domain_score_of_another_run_joins_the_quality_of_its_model():
    quality, domain = made(), made(metrics=("domain_score",))
    assert quality.totals.keys() == {"quality"}
    assert domain.totals == {}
    (system,) = systems_of([quality, domain])
    total = system.totals["overall"]["corrected"]
    judged = domain.aggregate["domain_score"]["corrected"].main.value
    assert total.value == pytest.approx((judged + quality.totals["quality"]["corrected"].value) / 2, abs=1e-15)
    assert total.lower < total.value < total.upper
    assert system.group_totals["av"]["overall"]["corrected"].value is not None
    together = made(metrics=(*EIGHT, "domain_score"))
    assert together.totals["overall"]["corrected"].value is not None
    assert len(systems_of([quality, made(metrics=("domain_score",), model="beta")])) == 2


def test_the_document_holds_totals_whole_and_by_domain():
    document = json.loads(json.dumps(made(change=without("imaging_quality")).to_json(), allow_nan=False))
    total = document["totals"]["quality"]["corrected"]
    assert total["value"] is None
    assert total["missing"] == ["imaging_quality"]
    assert (total["n"], total["N"]) == (7, 8)
    assert total["partial"]["value"] == pytest.approx(
        np.mean([document["aggregate"][metric]["corrected"]["value"] for metric in total["partial"]["of"]]), abs=1e-12
    )
    assert total["parts"]["i2v_subject"]["n"] == 6
    assert set(document["group_totals"]) == {"av", "robot"}


def shown(print_it, *arguments):
    text = io.StringIO()
    print_it(Console(file=text, width=200), *arguments)
    return text.getvalue()


def test_totals_are_printed():
    text = shown(print_summary, made(change=without("imaging_quality")))
    line = next(line for line in text.splitlines() if "7 of 8" in line)
    assert "quality" in line
    assert "imaging_quality" in line
    assert "totals" not in shown(print_summary, made(metrics=("temporal_flickering",)))
    run = made()
    assert f"{100 * run.totals['quality']['corrected'].value:.2f} %" in shown(print_summary, run)


def test_the_page_has_a_section_of_totals():
    page = render([made()], ".html").decode()
    assert '<table class="cards totals" data-total="quality">' in page
    assert page.count('data-total="quality"') == 1
    assert "<bdi>robot</bdi>" in page.split('data-total="quality"')[1].split("</table>")[0]
    both = render([made(), made(metrics=("domain_score",))], ".html").decode()
    assert 'data-total="overall"' in both
    assert "data-total" not in render([made(metrics=("temporal_flickering",))], ".html").decode()
    gap = render([made(change=without("imaging_quality"))], ".html").decode()
    assert "without imaging_quality" in gap


def test_the_paper_table_has_a_column_for_each_total():
    run = made()
    text = render([run], ".tex").decode()
    assert r"quality (\%) $\uparrow$" in text
    assert f"${100 * run.totals['quality']['corrected'].value:.1f} " in text
    heads = [text.index(f"& {escaped(name)} ") for name in (*EIGHT, "quality")]
    assert heads == sorted(heads), "as the benchmark prints them"
    joined = render([run, made(metrics=("domain_score",))], ".tex").decode()
    assert r"overall (\%) $\uparrow$" in joined
    assert "quality (" not in render([made(metrics=("temporal_flickering",))], ".tex").decode()


def test_what_ranks_nothing_has_no_arrow():
    run = made(metrics=("dynamic_degree", "subject_consistency"))
    text = render([run], ".tex").decode()
    assert r"dynamic\_degree (\%) \\" in text
    assert r"subject\_consistency (\%) $\uparrow$" in text
    page = render([run], ".html").decode()
    assert "not ranked: a guard against static clips" in page
    assert page.count("higher is better") == 1


def test_another_rule_that_is_the_mean_itself_is_not_absent():
    page = render([made()], ".html").decode()
    line = page.split("background_consistency with another rule")[1].split("</tr>")[0]
    assert "the mean above" in line
    assert "not in this run" not in page


def test_networks_and_licences_stand_under_the_scores():
    placement = {"device": "cuda", "dtype": "bfloat16", "compile": False}
    networks = {"placement": placement, "packages": {}, "weights": {"amt_s": "a" * 64, "viclip": "b" * 64}}
    run = made(networks=networks)
    text = shown(print_summary, run)
    assert "networks ran on: cuda, bfloat16" in text
    assert "CC BY-NC 4.0: no commercial use" in text
    assert "commercial use unclear" in text
    assert "CC BY-NC 4.0: no commercial use" in render([run], ".html").decode()
    assert run.to_json()["networks"]["commercial_use"] is False


def test_no_device_is_named_where_no_network_was_here():
    placement = {"device": "cpu", "dtype": "float32", "compile": False}
    networks = {"placement": placement, "packages": {}, "weights": {"amt_s": None, "viclip": None}}
    assert "networks ran on" not in shown(print_summary, made(networks=networks))
    networks["weights"]["viclip"] = "b" * 64
    assert "networks ran on: cpu, float32" in shown(print_summary, made(networks=networks))


def test_totals_are_compared_with_samples_drawn_for_all_parts():
    first, other = made(), made(model="beta", shift=0.05)
    (found,) = compare(first, other).others
    total = next(one for one in found.totals if one.protocol == "corrected")
    assert total.name == "quality"
    assert total.paired.difference == pytest.approx(0.05, abs=1e-12)
    assert (total.paired.n, total.verdict) == (6, "better")
    assert compare(other, first).others[0].worse
    document = found.to_json()["totals"]
    assert {one["protocol"] for one in document} == {"corrected", "reference"}
    assert document[0]["difference"] == pytest.approx(0.05, abs=1e-12)
    text = shown(print_comparison, compare(first, other), found)
    assert any("quality" in line and "+5.00 points" in line for line in text.splitlines())
    page = render([first, other], ".html").decode()
    assert '<tr class="total">' in page
    assert "quality" in str(compare(first, other))


def test_the_difference_of_a_total_is_the_mean_of_those_of_its_parts():
    other = made(model="beta", change=lambda row: replace(row, value=row.value**2) if row.metric == EIGHT[0] else row)
    first = made()
    (found,) = compare(first, other, protocol="corrected").others
    (total,) = found.totals
    one = next(metric for metric in found.metrics if metric.metric == EIGHT[0])
    assert total.paired.difference == pytest.approx(one.paired.difference / 8, abs=1e-15)
    assert total.paired.lower == pytest.approx(one.paired.lower / 8, abs=1e-12)


def test_a_part_that_cannot_be_compared_leaves_no_difference():
    changed = made(model="beta")
    changed.manifest["metrics"]["i2v_subject"]["version"] = 2
    (found,) = compare(made(), changed, protocol="corrected").others
    (total,) = found.totals
    assert total.paired is None
    assert "i2v_subject: the versions of the metric differ" in total.why
    assert not found.worse
    assert total.why in shown(print_comparison, compare(made(), changed), found)
    part = made(model="beta", metrics=EIGHT[:7])
    (found,) = compare(made(), part, protocol="corrected").others
    assert "i2v_background is not in both" in found.totals[0].why


def test_systems_of_two_runs_are_compared_in_overall():
    runs = [made(), made(metrics=("domain_score",))]
    others = [made(model="beta", shift=0.1), made(metrics=("domain_score",), model="beta", shift=0.3)]
    found = compare(runs[0], runs[1], *others).others
    totals = {one.name: one for one in found[1].totals if one.protocol == "corrected"}
    assert totals["overall"].paired.difference == pytest.approx(0.2, abs=1e-12)
    assert totals["quality"].paired.difference == pytest.approx(0.1, abs=1e-12)
    assert found[0].totals == found[2].totals == ()

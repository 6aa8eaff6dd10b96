"""Reports: what stands in them, that nothing foreign gets in, and that equal runs give equal bytes."""

import base64
import csv
import hashlib
import io
import json
import math
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from api.services.reporting import SUFFIXES, Limits, render, write_report
from api.services.reporting.charts import Scale, sparkline
from api.services.reporting.latex import escaped
from api.services.reporting.rows import neutral
from api.services.results import RunResults
from api.services.wording import FLAG_WORDS, REASON_WORDS, STATUS_WORDS
from gen_eval.records import Flag, InputError, Reason, Status
from gen_eval.records.run import RunFolder

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    r"\input{/etc/passwd}",
    "=HYPERLINK(1)",
    "{{ 7*7 }}{% raw %}",
    "a & b #1 100% $x_y^z~|",
)
VOID = {"meta", "img", "br", "input", "link", "hr"}


class Page(HTMLParser):
    """The elements of a page: tag, attributes, text within, elements around it."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.elements, self._open = [], []
        self.feed(content.decode())
        assert not self._open, f"not closed: {[one['tag'] for one in self._open]}"

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "attrs": dict(attrs), "text": "", "around": list(self._open)}
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append({"tag": tag, "attrs": dict(attrs), "text": "", "around": list(self._open)})

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> without a beginning"
        assert self._open[-1]["tag"] == tag, f"</{tag}> closes <{self._open[-1]['tag']}>"
        self._open.pop()

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, tag, within=None, **attrs):
        return [
            one
            for one in self.elements
            if one["tag"] == tag
            and (within is None or within in one["around"])
            and all(
                value in (one["attrs"].get(name.replace("_", "-").strip("-")) or "").split()
                for name, value in attrs.items()
            )
        ]

    def one(self, tag, **attrs):
        (found,) = self.all(tag, **attrs)
        return found

    def words(self, row):
        return squeezed(
            " ".join(one["text"] for one in self.elements if one["tag"] in {"td", "th"} and row in one["around"])
        )

    def cells(self, row):
        return {one["attrs"].get("data-label"): squeezed(one["text"]) for one in self.all("td", within=row)}


def squeezed(text):
    return " ".join(text.split())


def page(*runs, limits=None):
    return Page(render([RunResults.read(run) for run in runs], ".html", limits))


def metric_line(found, table, metric):
    (line,) = found.all("tr", within=found.all("table", class_=table)[0], data_metric=metric)
    return found.cells(line)


# --- the page --------------------------------------------------------------------------------------------------------


def test_summary_says_percent_interval_coverage_and_rule_for_both_protocols_side_by_side(plain_run):
    found, results = page(plain_run), RunResults.read(plain_run)
    cells = metric_line(found, "summary", "blur_ssim")
    assert list(cells) == ["corrected", "reference"]
    for protocol, text in cells.items():
        main = results.aggregate["blur_ssim"][protocol].main
        assert f"{100 * main.value:.2f} %" in text
        assert f"{100 * main.lower:.2f} … {100 * main.upper:.2f} %" in text
        assert "n = 4 of 4 samples, 7 of 7 videos" in text
        assert "1 to 2 videos a sample" in text
    rules = [one["text"] for one in found.all("li") if one["around"][-1]["attrs"].get("class") == "rules"]
    assert len(rules) == 2
    assert rules[0].startswith("mean over the members of a sample")
    assert rules[1].startswith("mean over all members")
    assert "Ratios (values in 0 to 1) are printed in percent" in squeezed(found.one("body")["text"])


def test_further_numbers_stand_below_their_metric(plain_run):
    found, results = page(plain_run), RunResults.read(plain_run)
    cells = metric_line(found, "summary", "precision")
    assert f"{100 * results.aggregate['edge_f1']['corrected'].values['precision'].value:.2f} %" in cells["corrected"]
    assert metric_line(found, "summary", "recall")["corrected"].startswith("– n = 0 of 4")


def test_domains_have_their_own_means_and_a_sample_without_one_is_in_none(plain_run):
    found, results = page(plain_run), RunResults.read(plain_run)
    table = found.all("table", class_="domains")[0]
    lines = found.all("tr", within=found.all("tbody", within=table)[0])
    assert [found.all("th", within=line)[0]["text"].strip() for line in lines] == ["av", "robot"]
    robot = results.groups["robot"]["edge_f1"]["corrected"].main
    assert found.cells(lines[1])["edge_f1"].startswith(f"{100 * robot.value:.2f} %")
    assert "n = 2 of 2" in found.cells(lines[1])["edge_f1"]
    assert "1 sample of no known domain" in found.one("body")["text"]


def test_a_line_a_video_with_picture_worst_frame_curve_and_values(plain_run):
    found, results = page(plain_run), RunResults.read(plain_run)
    lines = found.all("tr", class_="video")
    assert len(lines) == 7
    row = next(row for row in results.rows if (row.sample, row.member, row.metric) == ("s1", "0", "blur_ssim"))
    pictures = [one["attrs"]["src"] for one in found.all("img", within=lines[0])]
    expected = [(plain_run / "frames" / f"{row.frames[role]}.jpg").read_bytes() for role in ("thumbnail", "worst")]
    decoded = [base64.b64decode(address.removeprefix("data:image/jpeg;base64,")) for address in pictures]
    assert decoded[:2] == expected
    assert decoded[2] == (plain_run / "frames" / f"{row.frames['worst_reference']}.jpg").read_bytes()
    assert re.search(r"blur_ssim is worst in frame 2, .* %\)reference beside it", squeezed(lines[0]["text"]))
    assert "edge_f1 is worst in frame 2, " in squeezed(lines[0]["text"])
    assert "6 frames of 7 declared, 24 fps" in squeezed(lines[0]["text"])
    assert found.cells(lines[0])["blur_ssim"].startswith(f"{100 * row.value:.2f} %")
    paths = [one["attrs"]["d"] for one in found.all("path", within=lines[0])]
    assert len(paths) == 2
    assert all(path.count("M") == 2 for path in paths), "the frame without a value breaks the curve"
    assert found.all("span", within=lines[1], class_="flag")[0]["text"] == "short_clip"


def test_a_row_for_every_protocol_is_in_the_details(plain_run):
    found = page(plain_run)
    entries = found.all("table", class_="entries")[0]
    lines = [found.words(one) for one in found.all("tr", within=found.all("tbody", within=entries)[0])]
    assert len(lines) == 4
    assert lines[0].startswith("blur_ssim corrected")
    assert "precision" in lines[2]


def test_what_failed_was_skipped_or_left_out_is_said_with_its_message(maker):
    samples = [maker.sample(f"s{number}", members=("0",)) for number in range(10)]
    manifest = maker.manifest(
        samples,
        unknown_videos=["stranger__0.mp4"],
        not_asked_videos=["s1__9.mp4"],
        rejected=[{"where": "samples.jsonl:3", "reason": "line_not_json", "message": "line 3 is no JSON object"}],
    )

    def change(row):
        if row.sample == "s8":
            return maker.missing(row, Reason.UNDECODABLE, "no frame of s8__0.mp4 could be decoded")
        if row.sample == "s9":
            return maker.missing(row)
        if row.metric == "edge_f1" and row.sample == "s7":
            return maker.missing(row, Reason.MISSING_WEIGHTS, "give it as masks/<name>.masks.json")
        return row

    run = maker("gaps", manifest, change=change)
    found = page(run)
    cells = metric_line(found, "summary", "blur_ssim")
    assert "n = 8 of 10 samples" in cells["corrected"]
    assert "with gaps as 0:" in cells["corrected"]
    assert {"1 missing_video", "1 undecodable"} == {
        one["text"]
        for one in found.all("span", class_="reason")
        if one["text"][0] == "1" and "weights" not in one["text"]
    }
    kinds = {(one["text"].split()[-1], one["attrs"]["data-status"]) for one in found.all("span", class_="reason")}
    assert kinds == {("missing_video", "failed"), ("undecodable", "failed"), ("missing_weights", "skipped")}
    problems = {one["attrs"]["data-reason"]: squeezed(one["text"]) for one in found.all("details", class_="problem")}
    assert set(problems) == {"missing_video", "undecodable", "missing_weights"}
    assert "no frame of s8__0.mp4 could be decoded" in problems["undecodable"]
    assert "blur_ssim, edge_f1; 1 video: s8 / 0" in problems["undecodable"]
    assert "give it as masks/<name>.masks.json" in problems["missing_weights"]
    body = found.one("body")["text"]
    for words in ("stranger__0.mp4", "s1__9.mp4", "samples.jsonl:3", "line 3 is no JSON object"):
        assert words in body
    statuses = [one["text"] for one in found.all("option", within=found.one("select"))]
    assert statuses == ["all", "ok", "skipped", "failed"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_run_without_any_value_has_a_report_and_no_number(maker, suffix):
    run = maker("none", maker.manifest([maker.sample("s1"), maker.sample("s2")]), change=maker.missing)
    content = render([RunResults.read(run)], suffix)
    if suffix == ".html":
        assert "– n = 0 of 2 samples, 0 of 4 videos" in metric_line(Page(content), "summary", "edge_f1")["corrected"]
    if suffix == ".json":
        assert json.loads(content)["aggregate"]["edge_f1"]["corrected"]["value"] is None
    if suffix == ".tex":
        assert b"alpha & n/a & n/a" in content


def test_an_unfinished_run_says_so(maker):
    samples = [maker.sample("s1"), maker.sample("s2")]
    run = maker("half", maker.manifest(samples), change=lambda row: None if row.sample == "s2" else row)
    assert "Not finished: 8 rows not there yet (samples s2)" in squeezed(page(run).one("p", class_="warning")["text"])


def test_manifest_is_in_a_closed_block(plain_run):
    found, results = page(plain_run), RunResults.read(plain_run)
    block = found.one("details", class_="manifest")
    assert "open" not in block["attrs"]
    text = squeezed(block["text"])
    assert results.run in text
    assert "121-frames: the first 121 frames" in text
    assert results.manifest["metrics"]["edge_f1"]["protocols"]["reference"] in text
    assert "av 18.1" in text.replace("av18.1", "av 18.1")


# --- nothing foreign -------------------------------------------------------------------------------------------------


def test_the_page_asks_nothing_of_the_network(plain_run):
    found = page(plain_run)
    for one in found.elements:
        for name in ("src", "href", "xlink:href", "srcset", "action", "data", "poster"):
            address = one["attrs"].get(name)
            assert address is None or address.startswith(("data:image/jpeg;base64,", "#")), one
    assert not found.all("link")
    style = found.one("style")["text"]
    assert "url(" not in style
    assert "@import" not in style


def test_its_policy_allows_exactly_its_own_style_and_script(plain_run):
    found = page(plain_run)
    (policy,) = [one["attrs"]["content"] for one in found.all("meta", http_equiv="Content-Security-Policy")]
    assert policy.startswith("default-src 'none'; img-src data:;")
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(found.one(tag)["text"].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not [one for one in found.elements if "style" in one["attrs"]]


@pytest.fixture
def hostile_run(maker):
    samples = [maker.sample(name, members=("0", "<b>"), domain=name) for name in HOSTILE]
    manifest = maker.manifest(
        samples,
        model=HOSTILE[1],
        unknown_videos=list(HOSTILE),
        rejected=[{"where": one, "reason": "malformed_record", "message": one} for one in HOSTILE],
        environment={"numpy": HOSTILE[0]},
    )
    change = lambda row: maker.missing(row, message=row.sample) if row.member == "<b>" else row  # noqa: E731
    return maker("hostile", manifest, change=change)


def test_names_from_outside_are_text_on_the_page(hostile_run, plain_run):
    found = page(hostile_run, plain_run)
    assert len(found.all("script")) == 1
    assert not found.all("b", within=found.all("table", class_="videos")[0])
    for one in found.elements:
        assert not [name for name in one["attrs"] if name.startswith("on")], one
        assert (one["attrs"].get("src") or "data:").startswith("data:")
    names = [one["text"] for one in found.all("bdi")]
    assert set(HOSTILE) <= set(names)


def test_names_from_outside_are_text_in_latex(hostile_run):
    text = render([RunResults.read(hostile_run)], ".tex").decode()
    assert r"\textquotedbl{}\textgreater{}\textless{}img src=x onerror=alert(1)\textgreater{}" in text
    assert not re.search(r"\\(input|include|write|def|catcode)", text)


def test_hostile_frame_and_curve_names_are_not_opened(maker, tmp_path):
    (tmp_path / "secret.jpg").write_bytes(b"\xff\xd8\xff secret")
    manifest = maker.manifest([maker.sample("s1", members=("0",))])

    def change(row):
        return replace(row, frames={"thumbnail": "../../secret", "worst": "a" * 64}, curve="../../secret")

    found = page(maker("run", manifest, change=change))
    assert not found.all("img")
    assert not found.all("path")


def test_a_picture_that_is_no_jpeg_and_a_damaged_curve_file_are_left_out(plain_run):
    results = RunResults.read(plain_run)
    (plain_run / "frames" / f"{results.rows[0].frames['thumbnail']}.jpg").write_bytes(b"<svg onload=alert(1)>")
    for path in (plain_run / "curves").iterdir():
        path.write_bytes(b"PAR1 no such thing")
    found = page(plain_run)
    assert not [one for one in found.all("img") if one["around"][-1]["attrs"].get("class") == "thumb"]
    assert not found.all("path")
    assert len(found.all("tr", class_="video")) == 7


# --- how much is shown -----------------------------------------------------------------------------------------------


def test_with_many_videos_the_failed_and_the_worst_are_shown_in_full_and_the_page_says_so(maker):
    values = {f"s{number}": 0.9 - number / 100 for number in range(8)}
    samples = [maker.sample(name, members=("0",)) for name in values]
    change = lambda row: maker.missing(row) if row.sample == "s0" else row  # noqa: E731
    run = maker("many", maker.manifest(samples), lambda sample, *_: values[sample], change)
    found = page(run, limits=Limits(listed=5, pictured=2))
    names = [found.all("bdi", within=one)[0]["text"] for one in found.all("tr", class_="video")]
    assert names == ["s0", "s4", "s5", "s6", "s7"], "the failed one and the four worst, in key order"
    full = [found.all("bdi", within=one)[0]["text"] for one in found.all("tbody") if found.all("table", within=one)]
    assert full == ["s0", "s7"]
    warning = squeezed(found.one("p", class_="warning")["text"])
    assert warning.startswith("5 of 8 videos are listed and 2 are shown with pictures, curves and all values")
    assert "rows.csv" in warning
    assert "n = 7 of 8 samples" in metric_line(found, "summary", "blur_ssim")["corrected"]


def test_the_worst_of_a_metric_where_smaller_is_better(maker):
    metrics = {"depth_si_rmse": ("corrected",)}
    samples = [maker.sample(f"s{number}", members=("0",)) for number in range(4)]
    run = maker("depth", maker.manifest(samples, metrics=metrics), lambda sample, *_: int(sample[1]) / 10)
    found = page(run, limits=Limits(listed=1))
    assert found.all("bdi", within=found.one("tr", class_="video"))[0]["text"] == "s3"
    assert "lower is better" in found.all("tr", data_metric="depth_si_rmse")[0]["text"]


def test_pictures_stop_at_their_share_of_bytes(plain_run):
    everything = sum(len(one["attrs"]["src"]) for one in page(plain_run).all("img"))
    found = page(plain_run, limits=Limits(picture_bytes=everything // 2))
    shown = sum(len(one["attrs"]["src"]) for one in found.all("img"))
    assert 0 < shown <= everything // 2
    assert "are shown with pictures" in found.one("p", class_="warning")["text"]


# --- several runs ----------------------------------------------------------------------------------------------------


def test_several_runs_stand_side_by_side_and_each_has_a_section(maker, plain_run):
    samples = [maker.sample(f"s{number}", model="beta", members=("0",)) for number in (1, 2, 3)]
    manifest = maker.manifest(samples, model="beta", metrics={"blur_ssim": ("corrected",)})
    other = maker("beta", manifest, lambda *_: 0.25)
    found = page(plain_run, other)
    cells = metric_line(found, "leaderboard", "blur_ssim")
    assert list(cells) == ["alpha", "beta"]
    assert cells["beta"].startswith("25.00 %")
    assert metric_line(found, "leaderboard", "edge_f1")["beta"] == "not in this run"
    assert [one["attrs"]["id"] for one in found.all("section", class_="run")] == ["run-1", "run-2"]
    paired = [found.words(one) for one in found.all("tr", within=found.one("table", class_="paired"))]
    assert len(paired) == 2
    assert paired[1].startswith("blur_ssim corrected")
    assert paired[1].endswith("worse")
    differs = {one["attrs"]["data-about"] for one in found.all("li", within=found.one("ul", class_="differs"))}
    assert {"model", "videos", "metrics", "samples", "members"} <= differs


def test_two_tracks_of_one_model_are_one_system_and_two_runs_of_one_track_are_two(maker, plain_run):
    samples = [maker.sample("s1", members=("0",))]
    quality = maker("q", maker.manifest(samples, metrics={"temporal_flickering": ("corrected",)}, track="quality"))
    again = maker("again", maker.manifest(samples))
    text = render([RunResults.read(run) for run in (plain_run, quality)], ".tex").decode()
    assert text.count("    alpha & ") == 2, "one line under each protocol"
    both = render([RunResults.read(run) for run in (plain_run, again)], ".tex").decode()
    ids = [RunResults.read(run).run[:8] for run in (plain_run, again)]
    assert all(f"    alpha ({one}) & " in both for one in ids)


def test_a_curve_in_another_unit_than_the_value_says_so(maker):
    samples = [maker.sample("s1", members=("0",))]
    metrics = {"dynamic_degree": ("corrected",), "temporal_flickering": ("corrected",)}
    run = maker("q", maker.manifest(samples, metrics=metrics, track="quality"))
    titles = [
        line for line in render([RunResults.read(run)], ".html").decode().splitlines() if "frames 0 to 5:" in line
    ]
    (moving,) = (line for line in titles if "dynamic_degree, frames" in line)
    (still,) = (line for line in titles if "temporal_flickering, frames" in line)
    assert re.search(r"0 to 5: 0\.\d+ … (0\.\d+|1) pixels", moving)
    assert re.search(r"0 to 5: \d+\.\d\d … \d+\.\d\d %", still)


# --- tables ----------------------------------------------------------------------------------------------------------


def test_csv_has_a_line_a_row_and_numbers_that_read_back_exactly(plain_run):
    results = RunResults.read(plain_run)
    lines = list(csv.DictReader(io.StringIO(render([results], ".csv").decode())))
    assert len(lines) == len(results.rows)
    assert list(lines[0])[:8] == ["run", "model", "condition", "sample", "domain", "member", "metric", "protocol"]
    assert list(lines[0])[-1] == "detail"
    for line, row in zip(lines, results.rows, strict=True):
        assert (line["sample"], line["member"], line["metric"], line["protocol"]) == row.key[1:]
        assert float(line["value"]) == row.value
        assert line["flags"] == " ".join(row.flags)
        assert line["values.precision"] == ("" if "precision" not in row.values else repr(row.values["precision"]))
        assert (float(line["fps"]), int(line["decoded_frames"]), int(line["worst_frame"])) == (24.0, 6, 2)
        assert json.loads(line["detail"]) == row.detail


def test_parquet_has_the_columns_of_the_csv_with_types(plain_run):
    results = RunResults.read(plain_run)
    table = pq.read_table(io.BytesIO(render([results], ".parquet")))
    heads = next(csv.reader(io.StringIO(render([results], ".csv").decode())))
    assert table.column_names == heads
    assert table.schema.field("value").type == pa.float64()
    assert table.schema.field("decoded_frames").type == pa.int64()
    assert table.schema.field("flags").type == pa.list_(pa.string())
    assert table["value"].to_pylist() == [row.value for row in results.rows]
    assert table["flags"].to_pylist() == [[str(flag) for flag in row.flags] for row in results.rows]


def test_csv_neutralises_names_and_parquet_keeps_them(maker):
    names = ("=1+1", "-shot", "@home", "+plus", " =padded", "plain", "'=quoted", "-0.5")
    run = maker("names", maker.manifest([maker.sample(name, members=("0",)) for name in names]))
    results = RunResults.read(run)
    found = {line["sample"] for line in csv.DictReader(io.StringIO(render([results], ".csv").decode()))}
    assert found == {"'=1+1", "'-shot", "'@home", "'+plus", "' =padded", "plain", "''=quoted", "'-0.5"}
    kept = pq.read_table(io.BytesIO(render([results], ".parquet")))["sample"].to_pylist()
    assert set(kept) == set(names)


@given(st.text(alphabet=st.sampled_from("='+-@\t\r\n ab1＝－"), max_size=6) | st.text())
@example(" \r")
def test_a_neutral_text_is_no_formula_and_can_be_undone(text):
    safe = neutral(text)
    assert not safe.lstrip(" \u00a0").startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
    undone = safe[1:] if safe.startswith("'") and neutral(safe[1:]) == safe else safe
    assert undone == text


def test_negative_numbers_are_not_touched(maker):
    metrics = {"depth_si_rmse": ("corrected",)}
    run = maker("negative", maker.manifest([maker.sample("s1", members=("0",))], metrics=metrics), lambda *_: -0.25)
    (line,) = csv.DictReader(io.StringIO(render([RunResults.read(run)], ".csv").decode()))
    assert line["value"] == "-0.25"


def test_latex_table(maker):
    samples = [maker.sample(f"s{number}", members=("0",)) for number in range(4)]
    values = {"s0": 0.2, "s1": 0.4, "s2": 0.6, "s3": 0.8}
    metrics = {"blur_ssim": ("corrected",), "depth_si_rmse": ("corrected",)}
    change = lambda row: maker.missing(row) if row.key[1:4] == ("s3", "0", "blur_ssim") else row  # noqa: E731
    run = maker("r", maker.manifest(samples, model="my_model", metrics=metrics), lambda name, *_: values[name], change)
    main = RunResults.read(run).aggregate["blur_ssim"]["corrected"].main
    lines = [line.strip() for line in render([RunResults.read(run)], ".tex").decode().splitlines()]
    assert r"system & blur SSIM $\uparrow$ & depth si{-}RMSE $\downarrow$ \\" in lines
    half = (main.upper - main.lower) / 2
    assert any(line.startswith(rf"my\_model & $0.40 \pm {half:.3f}$ & $0.50 \pm ") for line in lines)
    assert any(r"my\_model: 3 of 4 (blur\_ssim), 4 of 4 (depth\_si\_rmse)" in line for line in lines)
    assert lines.count(r"\begin{table}") == lines.count(r"\end{table}") == 1


_COMMANDS = re.compile(r"\\(?:text[a-z]+\{\}|[{}$&%#_])|\{-\}")


@given(st.text())
def test_escaped_latex_holds_no_active_character(text):
    assert not set(_COMMANDS.sub("", escaped(text))) & set("\\{}$&%#_^~<>|\"`'\n\r\x00")


# --- JSON: every total again from its rows ---------------------------------------------------------------------------


def test_every_total_of_the_json_follows_from_its_rows(maker):
    samples = [
        maker.sample("s1", members=("0", "1", "2")),
        maker.sample("s2", members=("0",), domain="av"),
        maker.sample("s3"),
        maker.sample("s4", domain="av"),
    ]
    change = lambda row: maker.missing(row) if (row.sample, row.member) in {("s1", "1"), ("s4", "0")} else row  # noqa: E731
    run = maker("totals", maker.manifest(samples), change=change)
    document = json.loads(render([RunResults.read(run)], ".json"))
    checked = 0
    for domain, table in ((None, document["aggregate"]), *document["groups"].items()):
        rows = [row for row in document["rows"] if domain in {None, row["domain"]}]
        for metric, protocols in table.items():
            for protocol, one in protocols.items():
                mine = [row for row in rows if (row["metric"], row["protocol"]) == (metric, protocol)]
                _check_total(one, [(row["sample"], row["value"]) for row in mine])
                for name, part in one["values"].items():
                    _check_total(part, [(row["sample"], row["values"].get(name)) for row in mine])
                assert one["reasons"] == count(row["reason"] for row in mine if row["reason"])
                assert one["flags"] == count(flag for row in mine for flag in row["flags"])
                checked += 1
    assert checked == 3 * 4


def count(names):
    found = defaultdict(int)
    for name in names:
        found[name] += 1
    return dict(found)


def _check_total(one, pairs):
    by_sample = defaultdict(list)
    for sample, value in pairs:
        by_sample[sample].append(value)
    means = [[value for value in own if value is not None] for own in by_sample.values()]
    assert (one["n"], one["N"]) == (sum(map(bool, means)), len(by_sample))
    assert one["members"] == {"n": sum(map(len, means)), "N": len(pairs)}
    assert one["unit"] == "ratio"
    if not one["n"]:
        assert one["value"] is None
        return
    pooled = [value for own in means for value in own]
    first = [math.fsum(own) / len(own) for own in means if own]
    total = pooled if one["rule"].startswith("mean over all members") else first
    everything = len(pairs) if total is pooled else len(by_sample)
    assert one["value"] == pytest.approx(math.fsum(total) / len(total), abs=1e-9)
    assert one["mean_missing_as_zero"] == pytest.approx(math.fsum(total) / everything, abs=1e-9)
    assert one["pooled"] == pytest.approx(math.fsum(pooled) / len(pooled), abs=1e-9)


def test_json_of_several_runs_is_a_list_of_their_documents(plain_run):
    results = RunResults.read(plain_run)
    assert json.loads(render([results], ".json")) == results.to_json()
    several = json.loads(render([results, results], ".json"))
    assert several["runs"] == [results.to_json()] * 2
    assert len({line["model"] for line in several["tables"][0]["lines"]}) == 1, "one run given twice is one system"


# --- equal bytes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_equal_runs_give_equal_bytes_in_every_process(plain_run, maker, tmp_path, suffix):
    other = maker("other", maker.manifest([maker.sample("s1", model="beta")], model="beta"))
    here = tmp_path / f"here{suffix}"
    write_report([RunResults.read(plain_run), RunResults.read(other)], here)
    script = (
        "import sys; from pathlib import Path\n"
        "from api.services.reporting import write_report; from api.services.results import RunResults\n"
        "write_report([RunResults.read(Path(one)) for one in sys.argv[2:]], Path(sys.argv[1]))"
    )
    there = tmp_path / "elsewhere" / f"there{suffix}"
    environment = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", script, there, plain_run, other], check=True, env=environment)
    assert there.read_bytes() == here.read_bytes()
    assert str(tmp_path).encode() not in here.read_bytes()


def test_the_order_in_which_rows_were_written_does_not_show(plain_run, tmp_path):
    results = RunResults.read(plain_run)
    with RunFolder.create(tmp_path / "copy", results.manifest) as run:
        for row in reversed(results.rows):
            run.write([row])
    for folder in ("curves", "frames"):
        shutil.copytree(plain_run / folder, tmp_path / "copy" / folder, dirs_exist_ok=True)
    backwards = RunResults.read(tmp_path / "copy")
    for suffix in SUFFIXES:
        assert render([backwards], suffix) == render([results], suffix)


# --- the door --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["report.pdf", "report", "report.xlsx"])
def test_another_ending_is_refused_with_those_that_there_are(plain_run, tmp_path, name):
    with pytest.raises(InputError, match=r"use \.html, \.csv, \.json, \.parquet, \.tex"):
        write_report([RunResults.read(plain_run)], tmp_path / name)


def test_no_run_and_a_place_that_cannot_be_written_are_bad_input(plain_run, tmp_path):
    with pytest.raises(InputError, match="no run"):
        write_report([], tmp_path / "x.csv")
    (tmp_path / "taken.csv").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_report([RunResults.read(plain_run)], tmp_path / "taken.csv")


def test_the_command_writes_what_the_ending_says(cli, plain_run, tmp_path):
    done = cli("report", plain_run, "--out", tmp_path / "page.html")
    assert done.code == 0
    assert "blur SSIM" in done.out
    assert (tmp_path / "page.html").read_bytes() == render([RunResults.read(plain_run)], ".html")
    refused = cli("report", tmp_path / "nowhere", "--out", tmp_path / "page.html")
    assert refused.code == 2
    assert "is no run" in refused.err


# --- words and curves ------------------------------------------------------------------------------------------------


def test_every_name_has_words():
    assert set(REASON_WORDS) == set(Reason)
    assert set(FLAG_WORDS) == set(Flag)
    assert set(STATUS_WORDS) == set(Status)


def points(path):
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]


def test_a_short_curve_is_drawn_point_by_point():
    drawn = sparkline("ssim", np.array([0.0, 1.0, 0.5]), Scale(0, 1), "ratio", worst=0)
    assert points(drawn.path) == [(0.0, 23.0), (50.0, 1.0), (100.0, 12.0)]
    assert drawn.dot == ("0.00", "23.00")
    assert drawn.title == "ssim, frames 0 to 2: 0.00 … 100.00 %; worst frame 0"


@given(st.lists(st.floats(0, 1), min_size=121, max_size=900), st.data())
def test_a_long_curve_keeps_its_least_and_largest_value(values, data):
    curve = np.array(values)
    gaps = data.draw(st.sets(st.integers(0, len(values) - 1), max_size=5))
    curve[sorted(gaps)] = np.nan
    drawn = points(sparkline("c", curve, Scale(0, 1), "ratio", None).path)
    assert 2 <= len(drawn) <= 130
    heights = [y for _, y in drawn]
    scale = Scale(0, 1)
    assert f"{max(heights):.2f}" == scale.y(float(np.nanmin(curve)))
    assert f"{min(heights):.2f}" == scale.y(float(np.nanmax(curve)))
    assert drawn == sorted(drawn, key=lambda point: point[0])


def test_a_curve_without_any_value_draws_nothing():
    drawn = sparkline("c", np.full(4, np.nan), Scale(0, 1), "ratio", worst=1)
    assert (drawn.path, drawn.dot) == ("", None)

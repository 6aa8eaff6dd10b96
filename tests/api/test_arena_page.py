"""The page of a human study, its tables, and its section in a report: what they say, and that nothing gets in."""

import base64
import csv
import hashlib
import io
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.services.arena import arena_tables
from api.services.arena.correlating import ByVote
from api.services.arena.outputs import file_names
from api.services.arena.page import Study, arena_page, human_section
from api.services.reporting import render
from api.services.reporting.fragments import Fragment, People
from api.services.results import RunResults
from gen_eval.arena import (
    QUESTIONS,
    Answer,
    ArenaRatings,
    IntervalRule,
    RejectedVote,
    SystemColumn,
    TrackerRatings,
    VideoScores,
    Vote,
    Votes,
    agreement,
    balance,
    bradley_terry,
    compare_metrics,
    correlate,
    elo,
)
from gen_eval.arena.accuracy_comparison import compare_accuracy
from gen_eval.arena.joint import correlation_of, joint_draws
from gen_eval.arena.vote_accuracy import vote_accuracy
from gen_eval.data.benchmark import Rejected
from gen_eval.records import Reason, Rejection

HOSTILE = (
    "<script>alert(1)</script>",
    "=cmd()|' /C calc'!A0",
    "$x_$ & \\input{/etc/passwd} 100%",
    "\"><img src=x onerror='alert(1)'>" + "n" * 120,
)
REJECTED_LINE = Rejected("<u>.csv, line 3", Rejection.MALFORMED_RECORD, "'x' is no <i>number")
SECTIONS = (
    "ratings",
    "automatic",
    "correlations",
    "metrics",
    "votes",
    "agreement",
    "balance",
    "rejected",
    "parameters",
)
XS = ("overall", "domain", "quality")
VOID = {"meta"}


class Elements(HTMLParser):
    """Every element: tag, attributes, text within, tags around; fails on one that is not closed."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.found, self._open = [], []
        self.feed(content.decode())
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(self.found[-1])

    def handle_startendtag(self, tag, attrs):
        self.found.append({"tag": tag, "attrs": dict(attrs), "text": "", "around": list(self._open)})

    def handle_endtag(self, tag):
        assert self._open.pop()["tag"] == tag

    def handle_data(self, data):
        for one in self._open:
            one["text"] += data

    def all(self, tag, within=None):
        return [one for one in self.found if one["tag"] == tag and (within is None or within in one["around"])]

    def section(self, anchor):
        return next(one for one in self.all("section") if one["attrs"]["id"] == anchor)

    def table(self, caption):
        """Lines of the table whose caption begins so, as lists of cells."""
        found = next(one for one in self.all("caption") if one["text"].startswith(caption))["around"][-1]
        rows = self.all("tr", within=found)
        return [
            [one["text"] for one in self.found if one["tag"] in {"th", "td"} and row in one["around"]] for row in rows
        ]


@pytest.fixture(scope="module")
def votes():
    """Votes of three people on twelve samples, four systems with hostile names; the better places win more often."""
    draw = random.Random(5)
    kept = []
    for sample in range(12):
        for a, b in ((0, 1), (1, 2), (2, 3), (0, 3)):
            for who in ("ann", "<b>bob", "=cy"):
                answers = [draw.choice([Answer.A, Answer.A, Answer.B, Answer.BOTH_GOOD, Answer.BOTH_BAD]) for _ in "qp"]
                kept.append(
                    Vote(
                        f"v{len(kept)}",
                        f"s{sample}",
                        who,
                        HOSTILE[a],
                        HOSTILE[b],
                        *answers,
                        shown_left="a",
                        seconds=3.0,
                    )
                )
    bad = RejectedVote("<i>id", Rejection.SELF_VOTE, "a <u>system</u> against itself", "votes.csv, line 7")
    return Votes(tuple(kept), (bad,))


@pytest.fixture(scope="module")
def study(votes):
    """Everything that a page can hold."""
    rows = list(csv.DictReader((Path(__file__).parents[1] / "goldens/papers/pai_table8.csv").read_text().splitlines()))
    columns = tuple(
        {x: SystemColumn(x, {row["model"]: float(row[f"{side}_{x}"]) for row in rows}) for x in XS}
        for side in ("elo", "score")
    )
    draw = random.Random(6)
    videos = [
        VideoScores(name, {(model, f"s{sample}"): {"0": draw.random()} for model in HOSTILE for sample in range(12)})
        for name in ("overall", "<em>metric")
    ]
    by_vote = ByVote(
        "overall",
        {one.metric: vote_accuracy(votes, one, resamples=20) for one in videos},
        compare_accuracy(votes, videos, resamples=20),
    )
    return {
        "ratings": bradley_terry(votes, resamples=50, side=True),
        "automatic": {"<em>metric": elo(votes, permutations=5, resamples=10)},
        "correlations": correlate(*columns, resamples=50),
        "columns": columns,
        "joint": {"overall": correlation_of(joint_draws(votes, {"overall": videos[0]}, resamples=20), "overall")},
        "metric_comparisons": [compare_metrics(columns[0]["overall"], columns[1], resamples=50)],
        "accuracies": [by_vote],
        "agreements": [agreement(votes, question, resamples=20) for question in QUESTIONS],
        "balance": balance(votes),
        "notes": ["a <s>note"],
        "sources": [("votes", "<votes>.csv")],
    }


@pytest.fixture(scope="module")
def content(study):
    return arena_page("A study of <b>four", Study(**study))


@pytest.fixture(scope="module")
def page(content):
    return Elements(content)


# --- safe and whole --------------------------------------------------------------------------------------------------


def check_safe(found, content, section=None):
    """Nothing but the style that the policy names, no address, no style attribute, no identifier twice."""
    policy = next(one["attrs"]["content"] for one in found.all("meta") if one["attrs"].get("http-equiv"))
    (style,) = found.all("style")
    digest = base64.b64encode(hashlib.sha256(style["text"].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"style-src 'sha256-{digest}'" in policy
    for one in found.found:
        if section is None or section in one["around"]:
            assert one["tag"] not in {"img", "link", "iframe", "object", "image", "b", "i", "em", "u", "s"}
            assert not set(one["attrs"]) & {"style", "src", "onerror", "onload", "xlink:href"}
            assert one["attrs"].get("href", "#").startswith("#")
    identifiers = [one["attrs"]["id"] for one in found.found if "id" in one["attrs"]]
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", content.decode())) <= set(identifiers)


def test_the_page_is_safe(page, content):
    check_safe(page, content)
    assert not page.all("script")
    assert b"http" not in content.replace(b'http-equiv="', b"")


def test_equal_studies_give_equal_bytes(study, content):
    assert arena_page("A study of <b>four", Study(**study)) == content


def test_names_stand_as_they_are(page):
    cells = {one["text"] for one in page.all("th")} | {one["text"] for one in page.all("td")}
    assert set(HOSTILE) <= cells
    assert {"<i>id", "a <u>system</u> against itself", "<b>bob", "=cy"} <= cells
    assert page.all("h1")[0]["text"] == "A study of <b>four"


def test_tables_and_figures_can_be_heard(page):
    for table in page.all("table"):
        assert len(page.all("caption", within=table)) == 1
        assert all(one["attrs"].get("scope") in {"col", "row"} for one in page.all("th", within=table))
        assert (
            len({len(page.all("th", within=row) + page.all("td", within=row)) for row in page.all("tr", within=table)})
            == 1
        )
    assert len(page.all("figcaption")) == len(page.all("svg")) > 8
    for svg in page.all("svg"):
        (title,) = page.all("title", within=svg)
        assert svg["attrs"]["role"] == "img"
        assert svg["attrs"]["aria-labelledby"] == title["attrs"]["id"]
        assert len(title["text"]) > 20


def test_figures_are_well_formed_and_styled_by_the_page_alone(content, page):
    drawings = re.findall(rb"<svg.*?</svg>", content, re.DOTALL)
    (style,) = page.all("style")
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        used = {one.get("class") for one in root.iter() if one.get("class")} - {"plot"}
        assert all(f".plot .{name}{{" in style["text"] for name in used)
        assert any("fill:#0072b2" in style["text"].split(f".plot .{name}{{")[1].split("}")[0] for name in used) or (
            "row against column" in drawing.decode()
        )


# --- what it says ----------------------------------------------------------------------------------------------------


def test_sections_appear_when_they_are_given(page, study):
    assert [one["attrs"]["id"] for one in page.all("section")] == list(SECTIONS)
    assert [one["attrs"]["href"] for one in page.all("a")] == [f"#{anchor}" for anchor in SECTIONS]
    bare = Elements(arena_page("nothing", Study()))
    assert bare.all("section") == []
    one = Elements(arena_page("one", Study(agreements=study["agreements"])))
    assert [section["attrs"]["id"] for section in one.all("section")] == ["agreement"]


def test_ratings_stand_with_interval_ranks_and_votes(page, study):
    tracker = study["ratings"]["overall"]
    head, *lines = page.table("Ratings, overall")
    assert head[:6] == ["system", "rating", "95 % interval", "rank", "possible ranks", "votes"]
    best = max(tracker.ratings, key=tracker.ratings.get)
    rank = tracker.ranks[best]
    assert lines[0][:6] == [
        best,
        f"{tracker.ratings[best]:.1f}",
        f"{tracker.lower[best]:.1f} … {tracker.upper[best]:.1f}",
        "1",
        f"{rank.best} to {rank.worst}",
        str(tracker.votes_of[best]),
    ]
    said = page.section("ratings")["text"]
    assert tracker.interval.words.rstrip(".") in said
    assert f"Standing on the left is worth {tracker.side.value:+.1f} points" in said
    (first, *_) = page.table("Differences, overall")[1:]
    one = tracker.differences[0]
    assert first == [
        f"{one.a} over {one.b}",
        f"{one.difference:+.1f}",
        f"{one.lower:.1f} … {one.upper:.1f}",
        f"{100 * one.chance:.1f} %",
        "yes" if one.clear else "no",
    ]


def test_the_published_correlations_stand_with_all_that_r_hides(page, study):
    lines = {line[0]: line for line in page.table("Correlation over systems")}
    assert [lines["overall"][place] for place in (1, 2, 3, 7, 8)] == ["9", "0.918", "0.65 … 0.98", "0.950", "0.833"]
    assert [lines["domain"][place] for place in (2, 3, 7, 8)] == ["0.857", "0.45 … 0.97", "0.917", "0.778"]
    without = {line[0]: line[1:] for line in page.table("Correlation without the real videos")}
    assert without["quality"] == ["Source Videos", "8", "0.900", "0.515", "0.400"]
    said = page.section("correlations")["text"]
    assert "No system moves r more than DynamicCrafter: without it r is 0.585 instead of 0.883." in said
    assert "a <s>note." in said
    (joint,) = page.table("Votes and samples drawn together")[1:]
    assert joint[:4] == ["overall", "4", "144", "12 (12)"]
    found = study["joint"]["overall"]
    lower, upper = found.intervals["pearson"]
    assert joint[4] == f"{found.pearson:.3f} [{lower:.2f} … {upper:.2f}]"


def test_metrics_votes_people_and_pairs_have_their_tables(page, study):
    metrics = page.table("Agreement with the overall rating")
    assert [line[0] for line in metrics[1:]] == list(study["metric_comparisons"][0].agreements)
    accuracy = study["accuracies"][0].accuracies["<em>metric"]
    line = next(line for line in page.table("Accuracy of metrics against single votes") if line[0] == "<em>metric")
    assert line[2] == f"{100 * accuracy.accuracy:.1f} %"
    assert line[4:7] == [str(accuracy.n), str(accuracy.ties), "144"]
    measures = {line[0]: line[1] for line in page.table("Agreement on items")}
    quality = study["agreements"][0]
    assert measures["items that several judged"] == "48 of 48"
    assert measures["Krippendorff's alpha, four answers"].startswith(f"{quality.alphas['nominal'].value:.3f} [")
    pair = study["balance"].pairs[0]
    counts = pair.answers["quality"]
    line = page.table("Answers by pair")[1]
    assert line[:3] == [f"{pair.a}, {pair.b}", str(pair.votes), str(pair.samples)]
    assert line[3:7] == [str(one) for one in (counts.a, counts.b, counts.both_good, counts.both_bad)]
    assert page.table("Records that do not count")[1][1] == "self_vote"
    facts = {one["around"][-1]["text"].strip() for one in page.all("dd", within=page.section("parameters"))}
    assert any("resamples" in one and "50" in one for one in facts)


def test_a_single_pass_of_elo_is_called_a_display(votes):
    warned = "it is a display, not an estimate"
    given = arena_page("elo", Study(elo(votes, order="given", permutations=5, resamples=10))).decode()
    assert warned in given
    assert "Ratings over random orders of the same votes" in given
    assert warned not in arena_page("bt", Study(bradley_terry(votes, resamples=10))).decode()


def test_refused_ratings_have_their_reason_and_groups():
    tracker = TrackerRatings(
        "overall", {"a": None, "b": None}, 4, reason=Reason.NOT_CONNECTED, message="ask <more>", groups=(("a",), ("b",))
    )
    found = Elements(arena_page("refused", Study(ArenaRatings("bradley-terry", None, 4, {"overall": tracker}))))
    assert found.table("Systems that cannot be compared")[1:] == [["1", "a"], ["2", "b"]]
    (warning,) = [one for one in found.all("p") if one["attrs"].get("class") == "warning"]
    assert "no ratings from 4 votes. not_connected:" in warning["text"]
    assert "ask <more>" in warning["text"]


def test_lines_of_ratings_and_scores_that_do_not_count_are_listed():
    found = Elements(arena_page("bad", Study(rejected_lines=[REJECTED_LINE])))
    assert [one["attrs"]["id"] for one in found.all("section")] == ["rejected"]
    assert found.table("Lines that do not count")[1:] == [
        [REJECTED_LINE.where, "malformed_record", REJECTED_LINE.message]
    ]


def test_the_pages_of_a_metric_speak_of_comparisons(page):
    said = page.section("automatic")["text"]
    assert "<em>metric: 144 comparisons;" in said
    assert page.table("Ratings by <em>metric")[0][5] == "comparisons"
    assert page.table("Ratings, overall")[0][5] == "votes"


def test_names_are_written_as_people_write_them(content, page):
    text = content.decode()
    assert not [name for name in ("kendall_tau_b", "ties_merged", "protocol_digest", "votes_digest") if name in text]
    assert "largest coefficient (Pearson)" in text
    assert "Pearson over n = 9 systems" in text
    facts = {one["text"] for one in page.all("dt", within=page.section("parameters"))}
    assert "digest of the votes" in facts
    assert not [one for one in page.all("dd", within=page.section("parameters")) if one["text"] in ("", "[]", "none")]


@given(
    st.lists(st.sampled_from(["a", "A", "a b", "a/b", "a_b", "a_b-2", "..", "/", "x" * 120, "x" * 121]), unique=True)
)
def test_no_two_plots_have_one_file(names):
    found = file_names(names)
    assert list(found) == names
    assert len({one.lower() for one in found.values()}) == len(names)
    assert all(re.fullmatch(r"[\w.-]+", one) and not one.startswith(".") for one in found.values())


# --- tables ----------------------------------------------------------------------------------------------------------


def test_csv_holds_unrounded_numbers_and_no_formula(study):
    lines = list(csv.DictReader(io.StringIO(arena_tables.ratings_csv({"": study["ratings"]}).decode())))
    tracker = study["ratings"]["quality"]
    found = {line["model"]: line for line in lines if line["tracker"] == "quality"}
    assert set(found) == {f"'{name}" if name.startswith("=") else name for name in HOSTILE}
    assert float(found[HOSTILE[0]]["rating"]) == tracker.ratings[HOSTILE[0]]
    assert found[HOSTILE[0]]["arena"] == "people"
    (overall, *_) = csv.DictReader(io.StringIO(arena_tables.correlations_csv(study["correlations"]).decode()))
    assert float(overall["pearson"]) == study["correlations"]["overall"].pearson
    assert overall["most_influential"] == "DynamicCrafter"


def test_csv_says_why_there_is_no_number():
    refused = TrackerRatings("q", {"a": None}, 2, reason=Reason.ONE_SIDED)
    (line,) = csv.DictReader(
        io.StringIO(arena_tables.ratings_csv({"m": ArenaRatings("elo", "given", 2, {"q": refused})}).decode())
    )
    assert (line["arena"], line["rating"], line["reason"], line["n"]) == ("m", "", "one_sided", "2")


def test_latex_prints_names_as_they_are(study):
    text = arena_tables.ratings_latex({"": study["ratings"]}).decode()
    assert text.count(r"\begin{table}") == 3
    n = study["ratings"]["quality"].n
    assert f"Ratings (people, quality, Bradley{{-}}Terry), $n = {n}$ votes." in text
    metric = arena_tables.ratings_latex({"a_b": study["ratings"]}).decode()
    assert rf"Ratings (a\_b, quality, Bradley{{-}}Terry), $n = {n}$ comparisons." in metric
    assert r"\input" not in text
    assert r"\$x\_\$ \& \textbackslash{}input\{/etc/passwd\} 100\%" in text
    correlations = arena_tables.correlations_latex(study["correlations"]).decode()
    assert (
        r"quality & 9 & $0.883$ & $[0.53, 0.98]$ & $0.593$ & $0.493$ & $0.900$ & $0.585$ to $0.933$ \\" in correlations
    )


# --- reports of runs -------------------------------------------------------------------------------------------------


def test_a_report_takes_what_people_say(plain_run, study):
    fragment = human_section(Study(**{**study, "rejected_lines": [REJECTED_LINE]}))
    people = People(lambda: fragment, dict)
    runs = [RunResults.read(plain_run)]
    content = render(runs, ".html", people=people)
    found = Elements(re.sub(rb"<(img|br|input|hr)[^>]*>", b"", content))
    check_safe(found, content, found.section("people"))
    assert [one["text"] for one in found.all("h2", within=found.section("people"))] == ["People"]
    assert found.table("Ratings, overall")[1][0] in HOSTILE
    assert [one["text"] for one in found.all("h3", within=found.section("people"))] == [
        "Ratings",
        "Ratings against scores",
        "Rejected records",
    ]
    groups = [one for one in found.all("details") if one["attrs"].get("class") == "group"]
    titles = [found.all("summary", within=one)[0]["text"] for one in groups]
    assert titles == [
        "Automatic arenas",
        "Which metric agrees best with people",
        "Accuracy vote by vote",
        "Agreement between people",
        "The votes",
        "Sources and parameters",
    ]
    said = found.section("people")["text"]
    assert "1 record is no vote: 1 self_vote." in said
    assert "1 line of ratings and scores could not be used: 1 malformed_record." in said
    assert found.table("Lines that do not count")[1] == ["<u>.csv, line 3", "malformed_record", "'x' is no <i>number"]
    assert "a <s>note." in said
    captions = " ".join(one["text"] for one in found.all("figcaption", within=found.section("people")))
    assert "Share of the points of every system against every other, overall" in captions
    assert "with each of the 9 systems left out" in captions
    assert render(runs, ".html", people=people) == content


def test_a_report_without_people_knows_nothing_of_them(plain_run):
    runs = [RunResults.read(plain_run)]
    text = render(runs, ".html").decode()
    nothing = People(lambda: Fragment(()), dict)
    assert "plot" not in text
    assert 'class="people"' not in text
    # one empty line of style is all that a fragment without sections adds, and the digest that names the style
    assert re.sub(r"sha256-[^']+", "", render(runs, ".html", people=nothing).decode()).replace(
        "\n</style>", "</style>"
    ) == re.sub(r"sha256-[^']+", "", text)


def test_long_lists_are_cut_and_say_so():
    rejected = [RejectedVote(str(place), Rejection.MISSING_FIELD, "no sample", "v.csv") for place in range(203)]
    names = [f"m{place:03d}" for place in range(3)]
    tracker = TrackerRatings(
        "overall", dict.fromkeys(names, 1000.0), 9, interval=IntervalRule("none", 0.95, "votes", 9)
    )
    ratings = ArenaRatings("elo", "mean", 9, {"overall": tracker}, rejected=tuple(rejected))
    found = Elements(arena_page("long", Study(replace(ratings, options={"k": 32}))))
    assert len(found.table("Records that do not count")) == 201
    assert "203 records are no votes: 203 missing_field." in found.section("rejected")["text"]
    assert "3 more lines not shown." in found.section("rejected")["text"]

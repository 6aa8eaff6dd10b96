"""Figures: what is drawn, names that try to be something else, equal bytes, labels that do not hide each other."""

import csv
import io
import itertools
import math
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from gen_eval.arena import (
    Answer,
    ArenaRatings,
    IntervalRule,
    Spread,
    SystemColumn,
    TrackerRatings,
    Vote,
    Votes,
    compare_metrics,
    correlate,
    pair_counts,
    plots,
)
from gen_eval.arena.drawing import encoded, label, save
from gen_eval.arena.label_placement import place_labels
from gen_eval.records import InputError, Reason

HOSTILE = (
    "<script>alert(1)</script>",
    "$x_$ \\frac{1}{",
    "=cmd()|' /C calc'!A0",
    "视频 😀",
    "n" * 200,
    "b\x00\n\x1bq\u202e\ud800",
)
XS = ("overall", "domain", "quality")


@pytest.fixture(scope="module")
def table8():
    """Ratings and scores of the published table, by x."""
    from pathlib import Path

    path = Path(__file__).parents[1] / "goldens" / "papers" / "pai_table8.csv"
    rows = list(csv.DictReader(path.read_text().splitlines()))

    def column(prefix, x):
        return SystemColumn(x, {row["model"]: float(row[f"{prefix}_{x}"]) for row in rows})

    return {x: column("elo", x) for x in XS}, {x: column("score", x) for x in XS}


@pytest.fixture(scope="module")
def correlations(table8):
    return correlate(*table8, resamples=100)


def names_of(count):
    return [*HOSTILE, *(f"system-{place:02d}" for place in range(count))][:count]


def tracker_of(names, name="overall", **more):
    ratings = {one: 1000 + 100 * math.cos(3.0 * place + 1) for place, one in enumerate(names)}
    rule = IntervalRule("bootstrap", 0.95, "samples", 40, 100, 0, 0, "words")
    lower, upper = ({one: value + end for one, value in ratings.items()} for end in (-20, 30))
    spread = {one: Spread(value + 2, 15, value - 40, value + 50) for one, value in ratings.items()}
    return TrackerRatings(
        name, ratings, 600, lower=lower, upper=upper, interval=rule, order_spread=spread, rankings=7, **more
    )


def votes_of(names):
    """Each system against the next."""
    pairs = list(itertools.pairwise(names))
    votes = [
        Vote(f"{place}{answer}", "s", None, a, b, quality=answer, plausibility=Answer.A)
        for place, (a, b) in enumerate(pairs)
        for answer in (Answer.A, Answer.BOTH_GOOD)
    ]
    return Votes(tuple(votes))


@cache
def correlated(count):
    return pair_of(names_of(count))


def pair_of(names):
    values = {one: 1000.0 + 10 * place for place, one in enumerate(names)}
    scores = {one: math.sin(place) + place for place, one in enumerate(names)}
    columns = ({"x": SystemColumn("x", values)}, {"x": SystemColumn("x", scores)})
    return correlate(*columns, resamples=20, real=names[:1])["x"]


MAKERS = {
    "rating": lambda names: plots.rating_intervals(tracker_of(names), real=names[:1]),
    "several": lambda names: ArenaRatings(
        "elo", "given", 600, {one: tracker_of(names, one) for one in ("quality", "overall")}
    ).plot(),
    "order": lambda names: plots.order_spread(tracker_of(names)),
    "wins": lambda names: plots.win_matrix(pair_counts(votes_of(names)), "quality"),
    "scatter": lambda names: plots.scatter(
        correlated(len(names)), rating=SystemColumn("x", {}, {names[0]: 990}, {names[0]: 1010})
    ),
    "leave_one_out": lambda names: plots.leave_one_out(correlated(len(names))),
}


@pytest.fixture(
    scope="module",
    params=[*((name, 2) for name in MAKERS), *((name, 50) for name in ("rating", "wins", "scatter"))],
    ids=lambda one: f"{one[0]}-{one[1]}",
)
def drawn(request):
    """A figure of so many systems, hostile names first, made and written without a warning."""
    name, count = request.param
    names = names_of(count)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = MAKERS[name](names)
        return name, names, figure, encoded(figure, ".svg")


def texts_of(svg):
    return [one.text for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


# --- every figure ----------------------------------------------------------------------------------------------------


def test_svg_is_well_formed_and_holds_names_as_text_only(drawn):
    _, names, _, svg = drawn
    tags = {one.tag.rpartition("}")[2] for one in ElementTree.fromstring(svg).iter()}
    assert not tags & {"script", "image", "foreignObject", "a", "animate", "set"}
    longest = 24 if drawn[0] == "wins" else 26 if drawn[0] == "scatter" else 34
    assert {label(name, longest) for name in names} <= set(texts_of(svg))


@pytest.mark.parametrize("name", MAKERS)
def test_equal_figures_give_equal_bytes_however_often_they_are_drawn(name):
    figure = MAKERS[name](names_of(2))
    first = encoded(figure, ".svg")
    assert encoded(figure, ".svg") == first
    assert encoded(MAKERS[name](names_of(2)), ".svg") == first


def test_figures_grow_with_the_number_of_systems(drawn):
    _, names, figure, _ = drawn
    height = figure.get_size_inches()[1]
    assert (height > 8) if len(names) == 50 else (height < 7)


def test_nothing_of_global_state_is_left_or_used():
    before = dict(mpl.rcParams)
    plain = encoded(plots.leave_one_out(pair_of(names_of(4))), ".svg")
    with mpl.rc_context({"font.size": 30, "text.usetex": True, "svg.fonttype": "path", "axes.grid": True}):
        assert encoded(plots.leave_one_out(pair_of(names_of(4))), ".svg") == plain
    assert dict(mpl.rcParams) == before


def test_threads_do_not_draw_in_the_style_of_each_other():
    tracker = tracker_of(names_of(4))

    def drawn(_place):
        return encoded(plots.rating_intervals(tracker), ".svg")

    before, interval = dict(mpl.rcParams), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = set(pool.map(drawn, range(12)))
    finally:
        sys.setswitchinterval(interval)
    assert found == {drawn(0)}
    assert dict(mpl.rcParams) == before


def test_the_package_loads_no_matplotlib():
    code = "import sys, gen_eval.arena, gen_eval.arena.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_files_hold_no_date_no_program_and_equal_bytes(tmp_path, suffix):
    figure = plots.rating_intervals(tracker_of(names_of(4)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(figure, tmp_path / f"a{suffix}")
        save(figure, tmp_path / f"b{suffix.upper()}")
    content = (tmp_path / f"a{suffix}").read_bytes()
    assert content == (tmp_path / f"b{suffix.upper()}").read_bytes()
    assert not [word for word in (b"CreationDate", b"matplotlib.org", b"Software", b"dc:date") if word in content]


def test_png_opens(correlations):
    image = Image.open(io.BytesIO(encoded(plots.scatter(correlations["overall"]), ".png")))
    image.load()
    assert image.size == (1184, 864)


def test_a_study_without_votes_has_an_empty_matrix():
    assert "0 votes; in a cell % of the points and number of votes" in texts_of(encoded(plots.win_matrix(()), ".svg"))


def test_other_endings_and_places_are_refused(tmp_path):
    figure = plots.rating_intervals(tracker_of(["a", "b"]))
    with pytest.raises(InputError, match=r"\.jpg.*\.svg, \.png, \.pdf"):
        save(figure, tmp_path / "a.jpg")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        save(figure, tmp_path / "file" / "a.svg")


def test_figures_of_one_page_share_no_identifier_when_their_salts_differ():
    figure = plots.leave_one_out(pair_of(["a", "b", "c"]))
    one, other = (
        {
            element.get("id")
            for element in ElementTree.fromstring(encoded(figure, ".svg", salt=salt)).iter()
            if element.tag.endswith("clipPath")
        }
        for salt in ("f1", "f2")
    )
    assert one
    assert not one & other


# --- what is drawn ---------------------------------------------------------------------------------------------------


def ticks(figure, panel=0):
    return [one.get_text() for one in figure.axes[panel].get_yticklabels()]


def test_ratings_stand_best_first_with_interval_and_votes():
    tracker = TrackerRatings(
        "quality",
        {"low": 900.0, "high": 1100.0, "Source Videos": 1000.0},
        1234,
        lower={"high": 1080.0},
        upper={"high": 1130.0},
        interval=IntervalRule("bootstrap", 0.9, "annotators", 12, 500),
    )
    figure = tracker.plot()
    texts = texts_of(encoded(figure, ".svg"))
    assert ticks(figure) == ["high", "Source Videos", "low"]
    assert {"1100 [1080, 1130]", "900", "quality: ratings of 3 systems"} <= set(texts)
    assert "1,234 votes; 90 % bootstrap intervals, 500 resamples over 12 annotators" in texts
    assert "points (dashed: mean, 1000); ◆ real videos" in texts


def test_refused_ratings_are_said_in_words():
    tracker = TrackerRatings(
        "overall", {"a": None, "b": None}, 3, reason=Reason.ONE_SIDED, message="a always wins; ask on."
    )
    texts = " ".join(texts_of(encoded(tracker.plot(), ".svg")))
    assert "no ratings: one_sided" in texts
    assert "a always wins; ask on." in texts


def test_trackers_stand_side_by_side_in_one_order():
    first, refused = (
        tracker_of(["a", "b", "c"], "overall"),
        TrackerRatings("q", {"d": None}, 0, reason=Reason.NOT_CONNECTED),
    )
    figure = plots.several_rating_intervals({"people": refused, "metric": first})
    assert [one.get_title(loc="left") for one in figure.axes] == ["people", "metric"]
    best = sorted(first.ratings, key=first.ratings.get, reverse=True)
    assert ticks(figure, 1) == [*best, "d"]
    with pytest.raises(ValueError, match="no tracker"):
        plots.several_rating_intervals({})


def test_order_spread_needs_one():
    with pytest.raises(ValueError, match="carry no spread"):
        plots.order_spread(TrackerRatings("q", {"a": 1000.0}, 1))


def test_win_matrix_says_share_and_votes_of_row_against_column():
    answers = [("a", "b", Answer.A), ("b", "a", Answer.B), ("a", "b", Answer.BOTH_BAD), ("b", "c", Answer.B)]
    votes = Votes(tuple(Vote(str(i), "s", None, x, y, quality=one) for i, (x, y, one) in enumerate(answers)))
    figure = plots.win_matrix(pair_counts(votes), "quality", order=("c", "b", "a"))
    (axes,) = figure.axes
    cells = {one.get_position(): one.get_text() for one in axes.texts if "\n" in one.get_text()}
    # a got 1 + 1 + 1/2 of three points against b, c the one against b; a and c never met
    assert cells == {(1, 2): "83\n3", (2, 1): "17\n3", (1, 0): "100\n1", (0, 1): "0\n1"}
    assert ticks(figure) == ["c", "b", "a"]
    (squares,) = axes.collections
    grey = {
        place
        for place, colour in enumerate(squares.get_facecolors())
        if np.allclose(colour[:3], [0.725, 0.737, 0.769], atol=0.01)
    }
    assert grey == {2, 6}


def test_the_lines_above_a_small_win_matrix_fit():
    figure = plots.win_matrix(pair_counts(votes_of(["a", "b", "c"])), "quality")
    figure.draw_without_rendering()
    edge = figure.bbox.x1
    lines = [one for one in figure.axes[0].texts if "row is ahead" in one.get_text() or "in a cell" in one.get_text()]
    assert len(lines) == 2
    assert all(one.get_window_extent().x1 <= edge for one in lines)


def test_scatter_draws_the_line_of_least_squares_and_its_figures(correlations, table8):
    figure = plots.scatter(correlations["overall"], rating=table8[0]["overall"])
    (axes,) = figure.axes
    lines = [one for one in axes.lines if one.get_linewidth() == 1.4]
    x, y = (
        np.array([getattr(point, side) for point in correlations["overall"].points]) for side in ("score", "rating")
    )
    slope, start = np.polyfit(x, y, 1)
    np.testing.assert_allclose(lines[0].get_ydata(), start + slope * lines[0].get_xdata(), rtol=1e-9)
    texts = texts_of(encoded(figure, ".svg"))
    assert "n = 9, r = 0.918 [0.65, 0.98], Spearman 0.950, Kendall tau-b 0.833" in texts


@pytest.mark.parametrize(
    ("unit", "axis", "tick"),
    [("ratio", "score: x, %", "80"), ("seconds", "score: x, seconds", "0.8"), ("", "score: x", "0.8")],
)
def test_the_axis_of_scores_says_its_unit(unit, axis, tick):
    score = SystemColumn("x", dict(zip("abcd", (0.2, 0.4, 0.6, 0.8), strict=True)), unit=unit)
    rating = SystemColumn("x", dict(zip("abcd", (900.0, 1000.0, 1100.0, 1050.0), strict=True)))
    texts = texts_of(
        encoded(plots.scatter(correlate({"x": rating}, {"x": score}, resamples=5)["x"], score=score), ".svg")
    )
    assert axis in texts
    assert tick in texts


def test_figures_of_a_metric_count_comparisons():
    tracker = tracker_of(names_of(3))
    one = texts_of(encoded(plots.rating_intervals(tracker, title="m", counted="comparisons"), ".svg"))
    assert any(text.startswith("600 comparisons; 95 % bootstrap") for text in one)
    both = plots.several_rating_intervals({"people": tracker, "m": tracker}, counted={"m": "comparisons"})
    assert {"600 votes", "600 comparisons"} <= set(texts_of(encoded(both, ".svg")))
    order = texts_of(encoded(plots.order_spread(tracker, title="m", counted="comparisons"), ".svg"))
    assert "m: sequential Elo over orders of the same comparisons" in order


@pytest.mark.parametrize("x", XS)
def test_names_of_the_published_systems_do_not_overlap(correlations, x):
    figure = plots.scatter(correlations[x])
    (axes,) = figure.axes
    figure.draw_without_rendering()
    boxes = {one.get_text(): one.get_window_extent() for one in axes.texts if one.get_bbox_patch() is not None}
    assert len(boxes) == 9
    frame = axes.get_window_extent()
    for name, box in boxes.items():
        assert frame.x0 <= box.x0, name
        assert box.x1 <= frame.x1, name
        for other, beside in boxes.items():
            width, height = (
                min(box.x1, beside.x1) - max(box.x0, beside.x0),
                min(box.y1, beside.y1) - max(box.y0, beside.y0),
            )
            assert name == other or width <= 1 or height <= 1, (name, other)


def test_a_correlation_without_a_value_is_drawn_as_points_and_a_reason():
    columns = (
        {"x": SystemColumn("x", {"a": 1.0, "b": 2.0, "c": 3.0})},
        {"x": SystemColumn("x", dict.fromkeys("abc", 1.0))},
    )
    pair = correlate(*columns, resamples=5)["x"]
    for figure in (plots.scatter(pair), plots.leave_one_out(pair)):
        assert "no correlation: no_variance, n = 3" in texts_of(encoded(figure, ".svg"))


def test_leave_one_out_is_in_order_and_marks_the_system_that_moves_r_most(correlations):
    figure = plots.leave_one_out(correlations["quality"])
    assert ticks(figure)[0] == "DynamicCrafter"
    assert "0.585" in texts_of(encoded(figure, ".svg"))
    squares = [one for one in figure.axes[0].lines if one.get_marker() == "s"]
    assert [tuple(one.get_ydata()) for one in squares] == [(0,)]


def test_metrics_stand_best_first_with_reasons(table8):
    scores = {**table8[1], "flat": SystemColumn("flat", dict.fromkeys(table8[1]["overall"].values, 1.0))}
    comparison = compare_metrics(table8[0]["overall"], scores, resamples=50)
    figure = plots.metrics_side_by_side(comparison)
    assert ticks(figure) == list(comparison.agreements)
    assert {"0.918", "no value: no_variance"} <= set(texts_of(encoded(figure, ".svg")))


def test_metrics_over_too_few_systems_promise_no_intervals():
    rating = SystemColumn("overall", {"x": 1000.0, "y": 1100.0, "z": 900.0})
    one, two = (SystemColumn(name, {"x": 0.5, "y": best, "z": 0.1}) for name, best in (("one", 0.9), ("two", 0.4)))
    comparison = compare_metrics(rating, {"one": one, "two": two}, resamples=20)
    shown = " ".join(texts_of(encoded(plots.metrics_side_by_side(comparison), ".svg")))
    assert "n = 3 systems, too few for intervals" in shown


# --- names and places ------------------------------------------------------------------------------------------------


@given(st.text(max_size=80), st.integers(4, 40))
def test_labels_are_one_short_line_of_valid_xml(name, longest):
    text = label(name, longest)
    assert 0 < len(text) <= max(longest, len("(no name)"))
    assert len(text.splitlines()) == 1
    assert ElementTree.fromstring(f"<a>{text.replace('&', '&amp;').replace('<', '&lt;')}</a>").text == text


def test_the_ends_of_long_names_stay():
    assert label("model-" + "x" * 60 + "-v2").endswith("xxxx-v2")
    assert label(" ") == "(no name)"


points = st.lists(st.tuples(st.floats(60, 540), st.floats(60, 340)), min_size=1, max_size=12)


@settings(max_examples=30)
@given(points)
def test_labels_stay_in_the_frame_and_depend_on_the_points_alone(at):
    sizes = np.tile([50.0, 12.0], (len(at), 1))
    places = place_labels(np.array(at), sizes, (0, 0, 600, 400))
    assert all(0 <= one.x <= 550 and 0 <= one.y <= 388 for one in places)
    assert places == place_labels(np.array(at), sizes, (0, 0, 600, 400))


def test_labels_give_way_to_points_and_to_each_other():
    """Two points side by side, each in the way of the other's label."""
    at = np.array([[200.0, 200.0], [230.0, 200.0]])
    one, other = place_labels(at, np.tile([60.0, 12.0], (2, 1)), (0, 0, 600, 400))
    apart = one.x + 60 <= other.x or other.x + 60 <= one.x or one.y + 12 <= other.y or other.y + 12 <= one.y
    assert apart
    for place in (one, other):
        covered = (place.x < at[:, 0]) & (at[:, 0] < place.x + 60) & (place.y < at[:, 1]) & (at[:, 1] < place.y + 12)
        assert not covered.any()

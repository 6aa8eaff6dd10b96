"""Scores for the arena commands from every kind of file; which end of them is better, and what they are called."""

import csv
import json

import numpy as np
import pytest

from api.services.results import RunResults
from gen_eval.arena.simulated import simulated_votes
from gen_eval.protocols import total_rules

STRENGTHS = {"alpha": 1.0, "beta": 0.4, "gamma": -0.2, "delta": -1.2}
SAMPLES = [f"s{place}" for place in range(8)]
FORMS = ["csv", "jsonl", "json", "parquet"]
SHORT = ("--resamples", 60, "--json")
ANSWERS = {1.0: "a", 0.0: "b", 0.5: "both_good"}


@pytest.fixture
def save(tmp_path):
    """Write rows under a name, in the form that its ending says."""

    def write(name, rows):
        path = tmp_path / name
        if path.suffix == ".csv":
            names = list(dict.fromkeys(key for row in rows for key in row))
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, names)
                writer.writeheader()
                writer.writerows(rows)
        elif path.suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        elif path.suffix == ".parquet":
            pa = pytest.importorskip("pyarrow")
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(rows), path)
        else:
            path.write_text(json.dumps(rows))
        return path

    return write


@pytest.fixture
def votes(save):
    found = simulated_votes(dict.fromkeys(("quality", "plausibility"), STRENGTHS), SAMPLES, seed=3)
    return save("votes.jsonl", [to_row(vote) for vote in found])


def to_row(vote):
    names = ("id", "sample", "annotator", "model_a", "model_b")
    answers = {name: str(vote.answer(name)) for name in ("quality", "plausibility")}
    return {**{name: getattr(vote, name) for name in names}, **answers}


def as_votes(triples):
    return [
        {"sample": f"s{place}", "model_a": a, "model_b": b, "quality": ANSWERS[score]}
        for place, (a, b, score) in enumerate(triples)
    ]


def videos(metrics, seed=0):
    """A row a video and metric; metric -> sign of its slope on the strengths. ``s0`` has two members."""
    random = np.random.default_rng(seed)
    return [
        {
            "model": model,
            "sample": sample,
            "member": member,
            "metric": metric,
            "protocol": "corrected",
            "value": round(0.5 + 0.1 * sign * strength + 0.03 * random.standard_normal(), 4),
            "status": "ok",
        }
        for metric, sign in metrics.items()
        for model, strength in STRENGTHS.items()
        for sample in SAMPLES
        for member in (("0", "1") if sample == "s0" else ("0",))
    ]


def mean_of(rows, metric, model):
    own = [row for row in rows if (row["metric"], row["model"]) == (metric, model)]
    by_sample = {sample: [row["value"] for row in own if row["sample"] == sample] for sample in SAMPLES}
    return np.mean([np.mean(values) for values in by_sample.values()])


# --- a table of single videos ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_every_form():
    """Form -> what was found from it."""
    return {}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_videos_gives_figures_by_system_by_vote_and_together(cli, save, votes, in_every_form, form):
    rows = videos({"quality": 1, "sharpness": 1, "lpips": -1})
    table = save(f"scores.{form}", rows)
    found = cli("arena", "correlate", "--votes", votes, "--scores", table, "--lower-is-better", "lpips", *SHORT)
    assert found.code == 0, found
    document = found.json
    for metric in ("quality", "sharpness", "lpips"):
        own = document["scores"][metric]
        assert own["values"] == pytest.approx({model: mean_of(rows, metric, model) for model in STRENGTHS})
        assert own["n"] == dict.fromkeys(STRENGTHS, 8)
        assert own["higher_is_better"] is (metric != "lpips")
    pair = document["pairs"]["quality"]
    assert (pair["n"], pair["pearson"] > 0.5) == (4, True)
    assert any("means of systems over n = 8 samples" in note for note in document["notes"])
    # the bootstrap of votes and samples starts from the very same numbers
    assert document["joint"]["quality"]["pearson"] == pytest.approx(pair["pearson"], abs=1e-9)
    together, over_systems = document["comparisons_joint"]["quality"], document["comparisons"]["quality"]
    assert together["drawn"].startswith("samples drawn with their votes")
    assert set(together["metrics"]) == {"quality", "sharpness", "lpips"}
    for name, one in together["metrics"].items():
        assert one["pearson"] == pytest.approx(over_systems["metrics"][name]["pearson"], abs=1e-9)
        assert one["pearson"] > 0  # the error is turned
        assert one["lower"] <= one["pearson"] <= one["upper"]
    assert all(one["accuracy"] > 0.5 for one in document["by_vote"]["quality"]["accuracy"].values())
    rated = cli("arena", "rate", "--scores", table, "--lower-is-better", "lpips", "--ridge", 0.1, *SHORT)
    assert rated.code == 0, rated
    for metric in ("quality", "sharpness", "lpips"):
        ratings = rated.json["automatic"][metric]["trackers"]["overall"]["ratings"]
        assert max(ratings, key=ratings.get) == "alpha"
        assert min(ratings, key=ratings.get) == "delta"
    in_every_form[form] = [document["pairs"], document["joint"], document["by_vote"], rated.json["automatic"]]
    assert in_every_form[form] == next(iter(in_every_form.values()))


def test_what_is_drawn_stands_in_the_terminal_and_on_the_page(cli, save, votes, tmp_path):
    table, page = save("scores.csv", videos({"quality": 1, "sharpness": 1})), tmp_path / "page.html"
    found = cli("arena", "correlate", "--votes", votes, "--scores", table, "--resamples", 60, "--out", page)
    assert found.code == 0, found
    for words in ("systems drawn with replacement", "samples drawn with their votes"):
        assert words in found.out
        assert f"quality: {words}" in page.read_text()
    assert "n = 8 samples" in found.err


def test_ratings_need_no_votes_for_the_means_of_a_table_of_videos(cli, save):
    ratings = save("ratings.csv", [{"model": name, "rating_overall": value} for name, value in STRENGTHS.items()])
    table = save("scores.csv", videos({"overall": 1}))
    found = cli("arena", "correlate", "--ratings", ratings, "--scores", table, *SHORT)
    assert found.code == 0, found
    assert found.json["pairs"]["overall"]["pearson"] > 0.9
    assert (found.json["joint"], found.json["by_vote"]) == ({}, {})


def test_systems_measured_on_different_samples_are_said_and_one_without_a_value_is_left_out(cli, save, votes):
    rows = [row for row in videos({"quality": 1}) if row["model"] != "beta" or row["sample"] in SAMPLES[:5]]
    rows = [{**row, "value": None, "status": "failed"} if row["model"] == "delta" else row for row in rows]
    found = cli("arena", "correlate", "--votes", votes, "--scores", save("scores.jsonl", rows), *SHORT).json
    assert found["scores"]["quality"]["n"] == {"alpha": 8, "beta": 5, "gamma": 8, "delta": 0}
    assert found["scores"]["quality"]["values"]["delta"] is None
    assert any("n = 0 to 8 samples" in note for note in found["notes"])
    assert (found["pairs"]["quality"]["n"], found["pairs"]["quality"]["left_out"]) == (3, ["delta"])


def test_lines_that_cannot_be_used_are_listed_once_and_the_others_count(cli, save, votes):
    rows = videos({"quality": 1})
    rows[3] = {**rows[3], "value": "high"}
    table = save("scores.csv", rows)
    found = cli("arena", "correlate", "--votes", votes, "--scores", table, *SHORT)
    assert found.code == 1
    assert [(one["where"], one["reason"]) for one in found.json["rejected"]] == [("scores.csv:5", "malformed_record")]
    assert found.json["scores"]["quality"]["n"]["alpha"] == 7
    ended = cli("arena", "rate", "--scores", table)
    assert (ended.code, "scores.csv:5" in ended.err) == (2, True)


def test_lines_of_another_protocol_do_not_count(cli, save, votes):
    rows = videos({"quality": 1})
    other = [{**row, "protocol": "reference", "value": 9.0} for row in rows]
    unnamed = [{**row, "protocol": "", "value": 7.0} for row in rows]
    mixed = save("mixed.csv", [*other, *rows, *unnamed])
    alone = save("alone.csv", rows)
    found = [cli("arena", "correlate", "--votes", votes, "--scores", path, *SHORT).json for path in (mixed, alone)]
    assert found[0]["by_vote"] == found[1]["by_vote"]
    assert found[0]["scores"]["quality"]["values"] == found[1]["scores"]["quality"]["values"]
    none = cli("arena", "correlate", "--votes", votes, "--scores", save("other.csv", other))
    assert (none.code, "nothing under the protocol corrected" in none.err) == (2, True)


def test_a_line_without_a_sample_among_those_of_videos_and_the_other_way_round(cli, save, votes):
    rows = videos({"quality": 1})
    by_system = {"model": "alpha", "metric": "quality", "value": 0.5}
    later = cli("arena", "correlate", "--votes", votes, "--scores", save("a.jsonl", [by_system, *rows]))
    assert (later.code, "has no sample, and later rows have" in later.err) == (2, True)
    listed = cli("arena", "correlate", "--votes", votes, "--scores", save("b.jsonl", [*rows, by_system]), *SHORT)
    assert (listed.code, listed.json["rejected"][0]["reason"]) == (1, "missing_field")


def test_totals_follow_from_all_their_parts(cli, save, votes):
    parts = total_rules()["quality"].mean_of
    rows = videos(dict.fromkeys((*parts, "domain_score"), 1))
    found = cli("arena", "correlate", "--votes", votes, "--scores", save("scores.csv", rows), *SHORT).json
    assert set(found["pairs"]) == {"quality", "domain", "overall"}
    expected = {model: np.mean([mean_of(rows, part, model) for part in parts]) for model in STRENGTHS}
    assert found["scores"]["quality"]["values"] == pytest.approx(expected)
    expected = {model: (expected[model] + mean_of(rows, "domain_score", model)) / 2 for model in STRENGTHS}
    assert found["scores"]["overall"]["values"] == pytest.approx(expected)
    for x, pair in found["pairs"].items():
        assert found["joint"][x]["pearson"] == pytest.approx(pair["pearson"], abs=1e-9)
    fewer = [row for row in rows if row["metric"] != parts[0]]
    found = cli("arena", "correlate", "--votes", votes, "--scores", save("scores.csv", fewer), *SHORT).json
    assert set(found["pairs"]) == set(found["joint"]) == {"domain"}


def test_parts_and_systems_in_several_files_join(cli, save, votes):
    rows = videos({"quality": 1})
    parts = [
        save(f"{name}.csv", [row for row in rows if (row["model"] in ("alpha", "beta")) is (name == "first")])
        for name in ("first", "second")
    ]
    given = [part for path in parts for part in ("--scores", path)]
    joined = cli("arena", "correlate", "--votes", votes, *given, *SHORT).json
    whole = cli("arena", "correlate", "--votes", votes, "--scores", save("whole.csv", rows), *SHORT).json
    for name in ("pairs", "joint", "by_vote"):
        assert joined[name] == whole[name]
    twice = cli("arena", "correlate", "--votes", votes, *given, "--scores", parts[0])
    assert (twice.code, "give it once" in twice.err) == (2, True)


# --- which end is better ---------------------------------------------------------------------------------------------


def wide(name, sign=1):
    return [{"model": model, f"score_{name}": 5 + sign * strength} for model, strength in STRENGTHS.items()]


@pytest.mark.parametrize("form", ["wide", "long", "videos"])
def test_the_direction_of_a_metric_is_a_fact_of_it(cli, save, form):
    ratings = save("ratings.csv", [{"model": name, "rating_depth_si_rmse": one} for name, one in STRENGTHS.items()])
    rows = {
        "wide": wide("depth_si_rmse", -1),
        "long": [{"model": name, "metric": "depth_si_rmse", "value": -one} for name, one in STRENGTHS.items()],
        "videos": videos({"depth_si_rmse": -1}),
    }[form]
    found = cli("arena", "correlate", "--ratings", ratings, "--scores", save("scores.csv", rows), *SHORT).json
    assert found["pairs"]["depth_si_rmse"]["score_higher_is_better"] is False
    assert found["pairs"]["depth_si_rmse"]["pearson"] < -0.9
    assert "negative is agreement" in found["pairs"]["depth_si_rmse"]["sign"]


def test_foreign_errors_are_named(cli, save, votes):
    ratings = save("ratings.csv", [{"model": name, "rating_quality": one} for name, one in STRENGTHS.items()])
    scores = save(
        "scores.csv", [first | second for first, second in zip(wide("lpips", -1), wide("sharp"), strict=True)]
    )
    given = ("arena", "correlate", "--ratings", ratings, "--scores", scores)
    plain = cli(*given, *SHORT).json["comparisons"]["quality"]["metrics"]
    assert (plain["lpips"]["pearson"] < 0, plain["lpips"]["higher_is_better"]) == (True, True)
    named = cli(*given, "--lower-is-better", "lpips", *SHORT).json["comparisons"]["quality"]["metrics"]
    assert (named["lpips"]["pearson"] > 0, named["lpips"]["higher_is_better"]) == (True, False)
    assert named["sharp"] == plain["sharp"]
    unknown = cli(*given, "--lower-is-better", "lpisp")
    assert unknown.code == 2
    assert "no lpisp" in unknown.err
    assert "they hold lpips, sharp" in unknown.err
    of_videos = save("videos.csv", videos({"lpips": -1}))
    unknown = cli("arena", "rate", "--scores", of_videos, "--lower-is-better", "sharp")
    assert (unknown.code, "they hold lpips" in unknown.err) == (2, True)
    alone = cli("arena", "rate", "--votes", votes, "--lower-is-better", "lpips")
    assert (alone.code, "--lower-is-better" in alone.err) == (2, True)


# --- ratings that cannot be made -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("place", "reason"), [(0, "one_sided"), (1, "not_connected")])
def test_ratings_that_cannot_be_made_say_why_wherever_they_come_from(cli, goldens, save, tmp_path, place, reason):
    case = json.loads((goldens / "elo" / "bradley_terry.json").read_text())["refused"][place]
    votes = save("votes.jsonl", as_votes(case["votes"]))
    systems = dict.fromkeys(name for a, b, _ in case["votes"] for name in (a, b))
    rows = [{"model": one, "score_quality": place} for place, one in enumerate(systems)]
    scores = save("scores.csv", rows)
    (tmp_path / "ratings.json").write_text(cli("arena", "rate", "--votes", votes, "--json").out)
    cli("arena", "rate", "--votes", votes, "--out", tmp_path / "ratings.csv")
    for given in (("--votes", votes), *(("--ratings", tmp_path / f"ratings.{form}") for form in ("json", "csv"))):
        found = cli("arena", "correlate", *given, "--scores", scores, *SHORT)
        pair = found.json["pairs"]["quality"]
        assert (pair["reason"], pair["pearson"]) == (reason, None), given
        assert any(f"quality has no ratings ({reason})" in note for note in found.json["notes"])
        assert not any("fewer than 3 systems" in note for note in found.json["notes"])
        page = tmp_path / "page.html"
        shown = cli("arena", "correlate", *given, "--scores", scores, "--out", page)
        assert reason in shown.out
        assert f"quality has no ratings ({reason})" in shown.err
        assert reason in page.read_text()
        assert "too_few_systems" not in page.read_text() + shown.out
    message = cli("arena", "rate", "--votes", votes, "--json").json["trackers"]["quality"]["message"]
    assert (
        cli("arena", "correlate", "--votes", votes, "--scores", scores, *SHORT).json["pairs"]["quality"]["message"]
        == message
    )


def test_the_joint_bootstrap_has_the_ridge_of_the_protocol(cli, goldens, save, tmp_path):
    refused = json.loads((goldens / "elo" / "bradley_terry.json").read_text())["refused"]
    votes = save("votes.jsonl", as_votes(refused[1]["votes"]))
    scale = "initial: 1000, base: 10, scale: 400"
    (tmp_path / "mine.yaml").write_text(
        f"rating: {{base: corrected}}\nbradley_terry: {{base: corrected, measure: {{{scale}, ridge: 0.5}}}}\n"
    )
    rows = [
        {"model": model, "sample": vote["sample"], "metric": "quality", "value": sum(map(ord, model)) % 7 + place % 3}
        for place, vote in enumerate(map(json.loads, votes.read_text().splitlines()))
        for model in "wxyz"
    ]
    given = ("arena", "correlate", "--votes", votes, "--scores", save("scores.csv", rows), *SHORT)
    found = [cli(*given, *more).json for more in (("--protocol", tmp_path / "mine.yaml"), ("--ridge", 0.5))]
    assert found[0]["ratings"]["options"]["ridge"] == 0.5
    for one in found:
        assert one["joint"]["quality"]["pearson"] == pytest.approx(one["pairs"]["quality"]["pearson"], abs=1e-6)
    assert found[0]["joint"] == found[1]["joint"]
    without = cli(*given).json["joint"]["quality"]
    assert (without["reason"], without["pearson"]) == ("not_connected", None)


# --- two names of one thing ------------------------------------------------------------------------------------------


def test_one_thing_under_two_names_in_one_table(cli, save, votes):
    both = [first | second for first, second in zip(wide("domain"), wide("domain_score"), strict=True)]
    for path in (save("wide.csv", both), save("videos.csv", videos({"domain": 1, "domain_score": 1}))):
        found = cli("arena", "correlate", "--votes", votes, "--scores", path)
        assert found.code == 2
        assert f"{path} has domain and domain_score, which are one thing" in found.err
        assert "Traceback" not in found.err


@pytest.mark.parametrize("of_videos", [True, False])
def test_one_thing_under_two_names_in_two_files(cli, save, votes, of_videos):
    def rows(name, systems):
        made = videos({name: 1}) if of_videos else wide(name)
        return [row for row in made if row["model"] in systems]

    half = ("alpha", "beta")
    first = save("first.csv", rows("domain", half))
    apart = save("apart.csv", rows("domain_score", STRENGTHS.keys() - {*half}))
    same = save("same.csv", rows("domain_score", half))
    given = ("arena", "correlate", "--votes", votes, "--scores", first, "--scores")
    found = cli(*given, apart, "--metrics", "domain_score", *SHORT)
    assert found.code == 0, found
    assert found.json["pairs"]["domain"]["n"] == 4
    assert bool(found.json["by_vote"]) is bool(found.json["joint"]) is of_videos
    twice = cli(*given, same)
    assert twice.code == 2
    assert "domain of alpha, beta is in" in twice.err
    assert "give it once" in twice.err


# --- documents -------------------------------------------------------------------------------------------------------


@pytest.fixture
def runs(maker):
    """Four runs of an error and a score, whose members and samples are those of the votes."""

    def run_of(model, strength):
        entries = [maker.sample(name, members=("0",), model=model) for name in SAMPLES]
        metrics = dict.fromkeys(("blur_ssim", "depth_si_rmse"), ("corrected",))

        def value(sample, member, metric, protocol):
            noise = 0.01 * (sum(map(ord, sample + model + metric)) % 5)
            return 0.5 + (0.1 if metric == "blur_ssim" else -0.1) * strength + noise

        return maker(model, maker.manifest(entries, model=model, metrics=metrics), value=value, pictures=False)

    return [run_of(model, strength) for model, strength in STRENGTHS.items()]


def test_documents_give_the_same_figures_as_the_runs_that_they_are_of(cli, runs, votes, tmp_path):
    given = [part for run in runs for part in ("--scores", run)]
    assert cli("report", *runs, "--out", tmp_path / "report.json").code == 0
    singles = []
    for place, run in enumerate(runs):
        path = tmp_path / f"run{place}.json"
        path.write_text(json.dumps(RunResults.read(run).to_json()))  # what `score --json` prints
        singles += ["--scores", path]
    whole = ["--scores", tmp_path / "report.json"]
    found = [cli("arena", "correlate", "--votes", votes, *one, *SHORT) for one in (given, whole, singles)]
    assert [one.code for one in found] == [0, 0, 0], found
    first, *others = [one.json for one in found]
    accuracies = first["by_vote"]["quality"]["accuracy"]
    assert all(accuracies[name]["accuracy"] > 0.5 for name in ("blur_ssim", "depth_si_rmse"))
    assert first["scores"]["depth_si_rmse"]["higher_is_better"] is False
    assert first["scores"]["blur_ssim"]["n"] == dict.fromkeys(STRENGTHS, 8)
    for other in others:
        for name in ("by_vote", "comparisons_joint"):
            assert other[name] == first[name]
        for metric, own in first["scores"].items():
            assert other["scores"][metric]["n"] == own["n"]
            assert other["scores"][metric]["values"] == pytest.approx(own["values"])
    rated = [cli("arena", "rate", *one, "--ridge", 0.1, *SHORT).json["automatic"] for one in (given, whole, singles)]
    assert rated[0] == rated[1] == rated[2]
    ratings = rated[0]["depth_si_rmse"]["trackers"]["overall"]["ratings"]
    assert max(ratings, key=ratings.get) == "alpha"


def test_a_document_tells_which_end_of_a_foreign_metric_is_better(cli, runs, votes, tmp_path):
    """A report of a program with a metric that is not installed here."""
    path = tmp_path / "report.json"
    cli("report", *runs, "--out", path)
    path.write_text(path.read_text().replace("depth_si_rmse", "their_error"))
    given = ("arena", "correlate", "--votes", votes, "--scores", path)
    assert '"better": "lower"' in path.read_text()
    told = cli(*given, *SHORT).json
    assert told["scores"]["their_error"]["higher_is_better"] is False
    assert told["by_vote"]["quality"]["accuracy"]["their_error"]["accuracy"] > 0.5
    rated = cli("arena", "rate", "--scores", path, "--ridge", 0.1, *SHORT).json
    ratings = rated["automatic"]["their_error"]["trackers"]["overall"]["ratings"]
    assert max(ratings, key=ratings.get) == "alpha"
    path.write_text(path.read_text().replace('"better": "lower"', '"better": "higher"'))
    named = cli(*given, "--lower-is-better", "their_error", *SHORT).json
    assert named["scores"]["their_error"]["higher_is_better"] is False
    assert named["by_vote"]["quality"]["accuracy"]["their_error"]["accuracy"] > 0.5

"""The arena commands from their door: goldens, the published table, what is refused, runs and votes together."""

import csv
import json
import math

import numpy as np
import pandas as pd
import pytest

STRENGTHS = {"alpha": 1.2, "beta": 0.5, "gamma": 0.0, "delta": -1.2}
ANSWERS = {1.0: "a", 0.0: "b", 0.5: "both_good"}


def lines(path, votes):
    path.write_text("".join(json.dumps(vote) + "\n" for vote in votes))
    return path


def as_votes(triples):
    return [
        {
            "id": f"v{place}",
            "sample": f"s{place}",
            "annotator": "u",
            "model_a": a,
            "model_b": b,
            "quality": ANSWERS[score],
        }
        for place, (a, b, score) in enumerate(triples)
    ]


@pytest.fixture
def elo_cases(goldens):
    return {case["name"]: case for case in json.loads((goldens / "elo" / "elo.json").read_text())["cases"]}


@pytest.fixture
def bradley_terry_golden(goldens):
    return json.loads((goldens / "elo" / "bradley_terry.json").read_text())


@pytest.fixture
def table8(goldens):
    return goldens / "papers" / "pai_table8.csv"


@pytest.fixture
def study(maker, tmp_path):
    """Four systems as runs of one metric, and votes by people who mostly prefer what has the better score."""
    random = np.random.default_rng(5)
    samples = [f"s{place}" for place in range(12)]
    runs = []
    for model, strength in STRENGTHS.items():
        entries = [maker.sample(name, members=("0",), model=model) for name in samples]
        values = {name: 0.6 + 0.1 * strength + 0.02 * random.standard_normal() for name in samples}
        manifest = maker.manifest(
            entries, model=model, metrics={"blur_ssim": ("corrected",), "edge_f1": ("corrected",)}
        )

        def value(sample, member, metric, protocol, values=values):
            return values[sample] if metric == "blur_ssim" else 1 - values[sample]

        runs.append(maker(model, manifest, value=value, pictures=False))
    votes = []
    for place in range(240):
        a, b = random.choice(list(STRENGTHS), 2, replace=False).tolist()
        wins = random.random() < 1 / (1 + math.exp(STRENGTHS[b] - STRENGTHS[a]))
        answer = "both_bad" if place % 7 == 0 else "a" if wins else "b"
        who = {
            "id": f"v{place}",
            "sample": samples[place % 12],
            "annotator": f"u{place % 5}",
            "seed_a": "0",
            "seed_b": "0",
        }
        votes.append({**who, "model_a": a, "model_b": b, "quality": answer, "plausibility": answer})
    return runs, lines(tmp_path / "votes.jsonl", votes)


# --- ratings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_elo_as_published(cli, elo_cases, tmp_path, form):
    case = elo_cases["five_models"]
    path = lines(tmp_path / "votes.jsonl", case["votes"])
    if form == "csv":
        path = tmp_path / "votes.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(case["votes"][0]))
            writer.writeheader()
            writer.writerows(case["votes"])
    if form == "parquet":
        path = tmp_path / "votes.parquet"
        pd.DataFrame(case["votes"]).to_parquet(path)
    found = cli("arena", "rate", "--votes", path, "--method", "elo", "--order", "given", "--resamples", 50, "--json")
    assert found.code == 0
    assert (found.json["method"], found.json["order"], found.json["n_votes"]) == ("elo", "given", 120)
    for tracker, ratings in case["ratings"].items():
        own = found.json["trackers"][tracker]
        assert own["ratings"] == pytest.approx(ratings, abs=1e-9)
        assert all(own["lower"][name] <= own["ratings"][name] <= own["upper"][name] for name in ratings)


def test_the_reference_protocol_is_one_pass_in_the_order_given_and_the_corrected_one_is_free_of_order(
    cli, elo_cases, tmp_path
):
    votes = elo_cases["six_votes"]["votes"]
    path = lines(tmp_path / "votes.jsonl", votes)
    turned = lines(tmp_path / "turned.jsonl", votes[::-1])
    reference = cli("arena", "rate", "--votes", path, "--protocol", "reference", "--resamples", 0, "--json").json
    assert (reference["method"], reference["order"]) == ("elo", "given")
    shown = cli("arena", "rate", "--votes", path, "--protocol", "reference", "--resamples", 0)
    overall = reference["trackers"]["overall"]
    assert f"{overall['rankings']} different rankings occur" in shown.out
    assert f"to {max(one['sd'] for one in overall['order_spread'].values()):.1f} points" in shown.out
    ratings = elo_cases["six_votes"]["ratings"]["overall"]
    assert reference["trackers"]["overall"]["ratings"] == pytest.approx(ratings, abs=1e-9)
    mean = cli("arena", "rate", "--votes", path, "--method", "elo", "--resamples", 0, "--json").json
    assert mean["order"] == "mean"
    both = [cli("arena", "rate", "--votes", one, "--ridge", 0.5, "--json").json for one in (path, turned)]
    assert both[0]["method"] == "bradley-terry"
    assert both[0]["order"] is None
    assert both[0]["trackers"] == both[1]["trackers"]


def test_tables_name_protocol_unit_and_coverage(cli, tmp_path):
    votes = as_votes([("x", "y", 1.0), ("y", "x", 1.0), ("x", "y", 0.5)])
    votes.append({**votes[0], "id": "other", "quality": "", "plausibility": "a"})
    found = cli("arena", "rate", "--votes", lines(tmp_path / "votes.jsonl", votes), "--resamples", 50)
    assert "quality: Bradley-Terry, protocol corrected, 3 of 4 votes" in found.out
    assert "points" in found.out
    scores = tmp_path / "scores.csv"
    scores.write_text("system,score_quality,elo_quality\na,1,1000\nb,2,1010\nc,3,1030\nd,,1040\n")
    pair = cli("arena", "correlate", "--ratings", scores, "--scores", scores)
    assert "3 of 4" in pair.out


def test_bradley_terry_as_recorded(cli, bradley_terry_golden, tmp_path):
    for case in bradley_terry_golden["cases"]:
        if "quality" not in case["name"]:
            continue
        path = lines(tmp_path / f"{case['name']}.jsonl", as_votes(case["votes"]))
        found = cli("arena", "rate", "--votes", path, "--interval", "sandwich", "--resamples", 0, "--json").json
        own = found["trackers"]["quality"]
        assert [own["ratings"][name] for name in case["models"]] == pytest.approx(case["ratings"], abs=1e-5)
        assert [own["lower"][name] for name in case["models"]] == pytest.approx(case["sandwich_95"][0], abs=1e-4)
        assert own["n"] == len(case["votes"])
        assert set(found["trackers"]) == {"quality"}


def test_options_of_bradley_terry_reach_the_fit(cli, bradley_terry_golden, study, tmp_path):
    case = next(one for one in bradley_terry_golden["cases"] if one["name"] == "ties_as_half_quality")
    path = lines(tmp_path / "votes.jsonl", as_votes(case["votes"]))

    def quality(*options, votes=path):
        found = cli("arena", "rate", "--votes", votes, "--resamples", 50, *options, "--json")
        assert found.code == 0, found
        return found.json["trackers"]["quality"]

    golden = bradley_terry_golden["davidson"]
    davidson = quality("--ties", "davidson")
    assert [davidson["ratings"][name] for name in golden["models"]] == pytest.approx(golden["ratings"], abs=5e-5)
    assert davidson["tie_parameter"]["value"] == pytest.approx(golden["tie_parameter_nu"], abs=1e-6)
    plain, side, weighed = quality(), quality("--side"), quality("--pair-floor", 5)
    assert plain["side"] is None
    assert side["side"]["lower"] <= side["side"]["value"] <= side["side"]["upper"]
    assert weighed["ratings"] != plain["ratings"]
    for unit in ("votes", "samples", "annotators"):
        assert quality("--clusters", unit, votes=study[1])["interval"]["unit"] == unit


@pytest.mark.parametrize(("place", "reason"), [(0, "one_sided"), (1, "not_connected")])
def test_what_has_no_maximum_is_refused_or_has_a_stated_ridge(cli, bradley_terry_golden, tmp_path, place, reason):
    path = lines(tmp_path / "votes.jsonl", as_votes(bradley_terry_golden["refused"][place]["votes"]))
    refused = cli("arena", "rate", "--votes", path, "--json")
    own = refused.json["trackers"]["quality"]
    assert own["reason"] == reason
    assert set(own["ratings"].values()) == {None}
    assert len(own["groups"]) == 2
    assert refused.code == 0
    said = cli("arena", "rate", "--votes", path)
    assert reason in said.out
    assert "ridge" in said.out
    assert "finite by the ridge alone" in cli("arena", "rate", "--votes", path, "--ridge", 0.1, "--resamples", 50).out
    ridged = cli("arena", "rate", "--votes", path, "--ridge", 0.1, "--resamples", 200, "--json").json
    assert all(math.isfinite(value) for value in ridged["trackers"]["quality"]["ratings"].values())
    assert ridged["options"]["ridge"] == 0.1


def test_every_protocol_knows_both_methods(cli, elo_cases, tmp_path):
    path = lines(tmp_path / "votes.jsonl", elo_cases["six_votes"]["votes"])

    def rated(*options):
        found = cli("arena", "rate", "--votes", path, "--resamples", 0, "--json", *options).json
        return found["method"], found["order"], {name: one["ratings"] for name, one in found["trackers"].items()}

    published = rated("--protocol", "reference")
    assert published[:2] == ("elo", "given")
    assert rated("--protocol", "reference-v2") == published
    fitted = rated("--ridge", 0.5)
    for name in ("reference", "reference-v2"):
        assert rated("--protocol", name, "--method", "bradley-terry", "--ridge", 0.5) == fitted


def test_an_own_protocol_is_read_or_refused(cli, tmp_path):
    path, own = lines(tmp_path / "votes.jsonl", as_votes([("x", "y", 1.0), ("y", "x", 1.0)])), tmp_path / "own.yaml"
    own.write_text("bradley_terry: {base: corrected, measure: {initial: 1500}}\nrating: {base: corrected}\n")
    ratings = cli("arena", "rate", "--votes", path, "--protocol", own, "--resamples", 0, "--json").json
    assert ratings["trackers"]["quality"]["ratings"] == pytest.approx({"x": 1500, "y": 1500})
    for text, said in (
        ("rating: {base: corrected, measure: {initial: 1500}}\n", "initial"),
        (own.read_text().replace("initial: 1500", "pair_floor: 2.5"), "pair_floor"),
    ):
        own.write_text(text)
        refused = cli("arena", "rate", "--votes", path, "--protocol", own)
        assert (refused.code, "Traceback" in refused.err) == (2, False)
        assert said in refused.err


def test_lines_that_are_no_votes_are_listed_and_the_others_count(cli, tmp_path):
    good = as_votes([("x", "y", 1.0), ("y", "x", 1.0), ("x", "y", 0.5)])
    bad = [
        {**good[0], "id": "self", "model_b": "x"},
        {**good[0], "id": "label", "quality": "left"},
        {**good[0]},
        {"id": "field", "sample": "s", "model_a": "x", "quality": "a"},
        {**good[0], "id": "neither", "quality": ""},
    ]
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps(vote) + "\n" for vote in [*good, *bad]) + "{broken\n")
    found = cli("arena", "rate", "--votes", path, "--json")
    assert found.code == 1
    assert found.json["n_votes"] == 3
    reasons = {one["id"]: one["reason"] for one in found.json["rejected"]}
    assert reasons == {
        "self": "self_vote",
        "label": "unknown_label",
        "v0": "duplicate_vote",
        "field": "missing_field",
        "neither": "missing_field",
        "9": "line_not_json",
    }
    assert "not taken: self: self_vote" in cli("arena", "rate", "--votes", path).err
    path.write_text(json.dumps(bad[0]) + "\n")
    none = cli("arena", "rate", "--votes", path, "--json")
    assert (none.code, none.json["n_votes"], none.json["trackers"]) == (1, 0, {})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to rate"),
        (["--votes", "absent.csv"], "absent.csv"),
        (["--votes", "empty.jsonl"], "holds no vote"),
        (["--votes", "votes.jsonl", "--order", "given"], "--order"),
        (["--votes", "votes.jsonl", "--method", "elo", "--ridge", "1"], "--ridge"),
        (["--votes", "votes.jsonl", "--method", "elo", "--order", "time"], "time"),
        (["--votes", "votes.jsonl", "--protocol", "reference-v3"], "reference-v3"),
        (["--votes", "votes.jsonl", "--out", "ratings.docx"], ".html"),
        (["--votes", "votes.jsonl", "--method", "elo", "--interval", "sandwich"], "--interval"),
        (["--votes", "votes.jsonl", "--tie-threshold", "0.1"], "--tie-threshold"),
        (["--votes", "votes.jsonl", "--ties", "davidson", "--side"], "side"),
        (["--votes", "votes.jsonl", "--interval", "bootstrap", "--resamples", "0"], "resamples is 0"),
    ],
)
def test_bad_arguments_end_with_what_to_do(cli, tmp_path, arguments, said):
    lines(tmp_path / "votes.jsonl", as_votes([("x", "y", 1.0), ("y", "x", 1.0)]))
    (tmp_path / "empty.jsonl").write_text("\n")
    found = cli("arena", "rate", *arguments)
    assert found.code == 2
    assert said in found.err
    assert "Traceback" not in found.err


def test_nothing_is_made_for_reports_that_nobody_asked_for(cli, tmp_path, monkeypatch):
    def made(found):
        pytest.fail("outputs were made")

    monkeypatch.setattr("api.services.arena.rating_outputs", made)
    votes = lines(tmp_path / "votes.jsonl", as_votes([("x", "y", 1.0), ("y", "x", 1.0)]))
    assert cli("arena", "rate", "--votes", votes, "--resamples", 50).code == 0


# --- correlation -----------------------------------------------------------------------------------------------------


def test_the_published_correlation_and_the_whole_table_around_it(cli, goldens, table8):
    found = cli("arena", "correlate", "--ratings", table8, "--scores", table8, "--json")
    assert found.code == 0
    golden = json.loads((goldens / "elo" / "correlation.json").read_text())["correlations"]
    assert set(found.json["pairs"]) == set(golden)
    assert round(found.json["pairs"]["overall"]["pearson"], 3) == 0.918
    for name, recorded in golden.items():
        own = found.json["pairs"][name]
        for field in set(recorded) - {"bootstrap_95", "without_source_videos"}:
            assert own[field] == pytest.approx(recorded[field], abs=1e-9), (name, field)
        for field, value in recorded["without_source_videos"].items():
            assert own["without_source_videos"][field] == pytest.approx(value, abs=1e-9)
        assert own["bootstrap_95"] == pytest.approx(recorded["bootstrap_95"], abs=0.06)
    assert found.json["unpaired"] == {"ratings": [], "scores": []}
    assert [found.json["pairs"][name]["N"] for name in golden] == [9, 9, 9]
    assert found.json["scores_protocol"] == "corrected"
    printed = cli("arena", "correlate", "--ratings", table8, "--scores", table8).out
    assert "9 of 9" in printed
    assert "protocol corrected" in printed
    assert "0.918" in printed
    assert "DynamicCrafter" in printed


@pytest.mark.parametrize(
    ("given", "option", "about"),
    [
        ("--ratings", ("--method", "elo"), "--votes"),
        ("--ratings", ("--order", "given"), "--votes"),
        ("--ratings", ("--ridge", "0.5"), "--votes"),
        ("--ratings", ("--clusters", "samples"), "--votes"),
        ("--ratings", ("--tie-threshold", "0.1"), "--votes"),
        ("--votes", ("--column", "elo"), "--ratings"),
    ],
)
def test_options_of_what_is_not_given_are_refused(cli, table8, tmp_path, given, option, about):
    votes = lines(tmp_path / "votes.jsonl", as_votes([("x", "y", 1.0), ("y", "x", 1.0)]))
    path = {"--ratings": table8, "--votes": votes}[given]
    found = cli("arena", "correlate", given, path, "--scores", table8, *option)
    assert found.code == 2
    assert f"{option[0]} is about {about}" in found.err
    assert "leave it out" in found.err


def test_pairs_without_a_value_are_not_drawn(cli, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("model,elo_quality,elo_overall,score_quality,score_overall\nx,1,,2,3\ny,2,,3,4\n")
    found = cli("arena", "correlate", "--ratings", table, "--scores", table, "--plots", tmp_path / "plots")
    assert found.code == 0
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["scatter-quality.svg"]


def test_ratings_that_were_printed_are_read_again(cli, study, tmp_path):
    _runs, votes = study
    made = cli("arena", "rate", "--votes", votes, "--resamples", 100, "--json")
    (tmp_path / "ratings.json").write_text(made.out)
    cli("arena", "rate", "--votes", votes, "--resamples", 100, "--out", tmp_path / "ratings.csv")
    scores = tmp_path / "scores.csv"
    scores.write_text("system,score_overall\n" + "".join(f"{name},{one}\n" for name, one in STRENGTHS.items()))
    direct = cli("arena", "correlate", "--votes", votes, "--scores", scores, "--resamples", 100, "--json").json
    for form in ("json", "csv"):
        again = cli(
            "arena",
            "correlate",
            "--ratings",
            tmp_path / f"ratings.{form}",
            "--scores",
            scores,
            "--resamples",
            100,
            "--json",
        )
        assert again.code == 0
        assert again.json["pairs"]["overall"]["pearson"] == pytest.approx(
            direct["pairs"]["overall"]["pearson"], abs=1e-12
        )
        assert again.json["pairs"]["overall"]["pearson"] > 0.9


def test_runs_and_votes_give_figures_by_system_and_by_vote(cli, study):
    runs, votes = study
    given = [part for run in runs for part in ("--scores", run)]
    found = cli("arena", "correlate", "--votes", votes, *given, "--resamples", 300, "--json")
    assert found.code == 0
    by_vote = found.json["by_vote"]["quality"]["accuracy"]
    # edge_f1 is one minus the other: what one has right the other has wrong
    assert by_vote["blur_ssim"]["accuracy"] > 0.65
    assert by_vote["blur_ssim"]["accuracy"] + by_vote["edge_f1"]["accuracy"] == pytest.approx(1)
    comparison = found.json["comparisons"]["quality"]
    assert comparison["best"] == "blur_ssim"
    assert comparison["n"] == 4
    assert set(found.json["unpaired"]["scores"]) == {"blur_ssim", "edge_f1"}
    assert found.json["sources"] == {"scores": [run.name for run in runs], "votes": [votes.name]}
    one = cli(
        "arena", "correlate", "--votes", votes, *given, "--metrics", "blur_ssim", "--resamples", 50, "--json"
    ).json
    assert set(one["by_vote"]["quality"]["accuracy"]) == {"blur_ssim"}
    unknown = cli("arena", "correlate", "--votes", votes, *given, "--metrics", "sharpness")
    assert (unknown.code, "sharpness" in unknown.err) == (2, True)


def test_an_automatic_arena_stands_beside_the_human_one(cli, study):
    runs, votes = study
    given = [part for run in runs for part in ("--scores", run)]
    options = ["--metrics", "blur_ssim", "--tie-threshold", 0.05, "--ridge", 0.01, "--resamples", 100]
    found = cli("arena", "rate", "--votes", votes, *given, *options, "--json").json
    automatic = found["automatic"]["blur_ssim"]
    ratings = automatic["trackers"]["overall"]["ratings"]
    assert sorted(ratings, key=ratings.get, reverse=True) == list(STRENGTHS)
    assert automatic["options"]["tie_threshold"] == 0.05
    assert automatic["trackers"]["overall"]["n"] == 12 * 6
    assert set(found["trackers"]) == {"quality", "plausibility", "overall"}
    alone = cli("arena", "rate", *given, *options, "--json").json
    assert alone["automatic"] == found["automatic"]
    assert (alone["n_votes"], alone["trackers"], alone["options"]) == (0, {}, {})


def test_an_automatic_arena_is_a_score_of_its_metric(cli, study, tmp_path):
    runs, votes = study
    given = [part for run in runs for part in ("--scores", run)]
    made = cli("arena", "rate", *given, "--ridge", 0.1, "--resamples", 50, "--json")
    (tmp_path / "automatic.json").write_text(made.out)
    found = cli("arena", "correlate", "--votes", votes, "--scores", "automatic.json", "--resamples", 50, "--json")
    assert set(found.json["comparisons"]["quality"]["metrics"]) == {"blur_ssim", "edge_f1"}
    assert found.json["comparisons"]["quality"]["best"] == "blur_ssim"


def test_an_own_protocol_of_ratings_takes_the_scores_of_another(cli, study, tmp_path):
    runs, votes = study
    given = [part for run in runs for part in ("--scores", run)]
    (tmp_path / "mine.yaml").write_text(
        "rating: {base: corrected}\nbradley_terry: {base: corrected, measure: {ridge: 5.0}}\n"
    )
    common = ["arena", "correlate", "--votes", votes, *given, "--resamples", 50, "--protocol", "mine.yaml"]
    found = cli(*common, "--json").json
    assert found["ratings"]["options"]["ridge"] == 5.0
    assert found["ratings"]["options"]["protocol"] == "mine"
    assert set(found["by_vote"]["quality"]["accuracy"]) == {"blur_ssim", "edge_f1"}
    none = cli(*common, "--scores-protocol", "reference")
    assert "nothing has a score under the protocol reference" in none.err
    assert "no rating or score is of a system named 'alhpa'" in cli(*common, "--real", "alhpa").err


def test_one_run_twice_is_refused(cli, study):
    runs, votes = study
    found = cli("arena", "correlate", "--votes", votes, "--scores", runs[0], "--scores", runs[0])
    assert found.code == 2
    assert "once" in found.err or "second" in found.err


# --- files -----------------------------------------------------------------------------------------------------------


def test_reports_and_plots_are_written_and_equal_twice(cli, study, tmp_path):
    runs, votes = study
    given = [part for run in runs for part in ("--scores", run)]
    for form in ("html", "json", "csv", "tex"):
        contents = []
        for turn in "ab":
            out = tmp_path / f"{turn}.{form}"
            done = cli("arena", "correlate", "--votes", votes, *given, "--resamples", 50, "--out", out)
            assert done.code == 0, done
            contents.append(out.read_bytes())
        assert contents[0] == contents[1]
    done = cli(
        "arena", "rate", "--votes", votes, "--resamples", 50, "--plots", tmp_path / "plots", "--plot-format", "png"
    )
    assert done.code == 0
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    trackers = ("quality", "plausibility", "overall")
    assert names == {f"{kind}-{name}.png" for kind in ("ratings", "wins") for name in trackers}
    agreed = cli("arena", "agree", "--votes", votes, "--out", tmp_path / "agree.html", "--plots", tmp_path / "plots")
    assert agreed.code == 0
    assert (tmp_path / "plots" / "wins-quality.svg").is_file()
    assert b"Krippendorff" in (tmp_path / "agree.html").read_bytes()


def test_a_report_of_runs_says_what_people_say(cli, study, tmp_path):
    runs, votes = study
    plain, with_people = tmp_path / "plain.html", tmp_path / "people.html"
    assert cli("report", *runs, "--out", plain).code == 0
    assert cli("report", *runs, "--out", with_people, "--votes", votes).code == 0
    assert "People" not in plain.read_text()
    assert "People" in with_people.read_text()
    assert cli("report", *runs, "--out", tmp_path / "people.json", "--votes", votes).code == 0
    document = json.loads((tmp_path / "people.json").read_text())
    assert document["people"]["ratings"]["n_votes"] == 240
    refused = cli("report", *runs, "--out", tmp_path / "people.csv", "--votes", votes)
    assert refused.code == 2
    assert ".html" in refused.err


# --- agreement, next, power ------------------------------------------------------------------------------------------


def test_agreement_as_recorded(cli, goldens, tmp_path):
    golden = json.loads((goldens / "elo" / "agreement.json").read_text())
    votes = [
        {"sample": item, "annotator": who, "model_a": "x", "model_b": "y", "quality": label}
        for who, item, label in golden["votes"]
    ]
    found = cli("arena", "agree", "--votes", lines(tmp_path / "votes.jsonl", votes), "--resamples", 0, "--json")
    assert found.code == 0
    own = found.json["questions"]["quality"]
    values = {name: one["value"] for name, one in own["alphas"].items()}
    assert values == pytest.approx(
        {
            "nominal": golden["alpha_nominal_four_labels"],
            "ties_merged": golden["alpha_nominal_ties_merged"],
            "interval": golden["alpha_interval_win_half_loss"],
        },
        abs=1e-9,
    )
    for pair, recorded in zip(own["pairs"], golden["pairwise"], strict=True):
        assert [pair["a"], pair["b"]] == recorded["pair"]
        assert pair["shared"] == recorded["shared"]
        assert [pair["agreement"], pair["kappa"]] == pytest.approx([recorded["agreement"], recorded["kappa"]], abs=1e-9)


def test_warnings_about_annotators_are_said_with_their_rule(cli, tmp_path):
    votes = [
        {"sample": f"s{place}", "annotator": who, "model_a": "x", "model_b": "y", "quality": own}
        for place in range(12)
        for who, own in (("one", "a"), ("two", "a" if place % 2 else "b"), ("three", "b" if place % 3 else "a"))
    ]
    page = tmp_path / "page.html"
    found = cli("arena", "agree", "--votes", lines(tmp_path / "votes.jsonl", votes), "--resamples", 0, "--out", page)
    rule = "the same in all of at least 10 answers"
    assert "always the same answer: one (" in found.out
    assert rule in found.out
    assert rule in page.read_text()


def test_a_file_without_any_vote_says_so(cli, tmp_path):
    votes = [{**vote, "quality": "A"} for vote in as_votes([("x", "y", 1.0), ("y", "x", 1.0)])]
    found = cli("arena", "rate", "--votes", lines(tmp_path / "votes.jsonl", votes))
    assert found.code == 1
    assert "none of the lines is a vote" in found.out


def test_without_annotators_there_is_no_agreement_and_it_is_said(cli, tmp_path):
    votes = as_votes([("x", "y", 1.0), ("y", "x", 1.0)])
    for vote in votes:
        del vote["annotator"]
    found = cli("arena", "agree", "--votes", lines(tmp_path / "votes.jsonl", votes), "--json")
    assert found.code == 0
    assert found.json["questions"]["quality"]["raw"]["value"] is None
    assert found.json["questions"]["quality"]["message"]


def test_next_pairs_link_what_is_apart_and_power_counts_votes(cli, study, bradley_terry_golden, tmp_path):
    _, votes = study
    found = cli("arena", "next", "--votes", votes, "--tracker", "quality", "--count", 3, "--json").json
    assert len(found["pairs"]) == 3
    islands = lines(tmp_path / "islands.jsonl", as_votes(bradley_terry_golden["refused"][1]["votes"]))
    linked = cli("arena", "next", "--votes", islands, "--tracker", "quality", "--json").json
    assert linked["reason"] == "not_connected"
    assert {linked["pairs"][0]["a"], linked["pairs"][0]["b"]} & {"x", "y"}
    assert {linked["pairs"][0]["a"], linked["pairs"][0]["b"]} & {"z", "w"}
    needed = cli(
        "arena", "power", "--votes", votes, "--a", "beta", "--b", "gamma", "--tracker", "quality", "--json"
    ).json
    (pair,) = needed["pairs"]
    assert pair["separated"] or pair["direct"] > 0
    unknown = cli("arena", "power", "--votes", votes, "--a", "beta", "--b", "nobody")
    assert (unknown.code, "nobody" in unknown.err) == (2, True)

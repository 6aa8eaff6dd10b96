"""Result files of PAI-Bench-C become runs, and the published table comes out of them."""

import csv
import io
import json

import pytest
from rich.console import Console

from api.cli.tables import print_published
from api.services.comparison import compare
from api.services.importing import import_results
from api.services.published import tables_of
from api.services.reporting import render
from gen_eval.records import InputError, Reason

KEYS = {
    "dover_tech_score": 8.5, "dover_tech_score_gt": 9.5, "blur_ssim": 0.75, "canny_f1_score": 0.25,
    "canny_precision": 0.5, "canny_recall": 0.125, "depth_si_rmse": 0.625, "seg_m_iou": 0.7, "seg_recall": 0.875,
}  # fmt: skip
GLOBAL = [key for key in KEYS if key != "dover_tech_score_gt"]
SCORES = ("blur_ssim", "edge_f1", "depth_si_rmse", "mask_miou", "visual_quality", "diversity")


def mean(values):
    there = [value for value in values if isinstance(value, float) and value == value]
    return sum(there) / len(there) if there else float("nan")


def fidelity(videos=("task_0000__0", "task_0001__0"), change=None, **values):
    """What the fidelity scorer writes; ``values`` replace numbers of all entries, ``change`` of one."""
    entries = [
        {"pred_video_uuid": name, "pred_video_file": f"/results/videos/{name}.mp4", "fps": 30, **{**KEYS, **values}}
        for name in videos
    ]
    for place, more in (change or {}).items():
        entries[place] |= more
    return {"global": {key: mean([entry.get(key) for entry in entries]) for key in GLOBAL}, "per_video": entries}


def diversity(tasks=("task_0000", "task_0001"), value=0.3, clips=()):
    entries = [
        {"video_id": task, "input_video_file_list": [f"/r/{task}{clip}.mp4" for clip in clips], "fps": 30,
         "diversity_score_lpips": value, "diversity_score_lpips_fg": None}
        for task in tasks
    ]  # fmt: skip
    means = {"diversity_score_lpips": value, "diversity_score_lpips_fg": float("nan")}
    return {"global": means, "per_video": entries}


@pytest.fixture
def bring(tmp_path):
    def to(*contents, out="run", **options):
        paths = []
        for place, content in enumerate(contents):
            paths.append(tmp_path / f"{out}-{place}.json")
            paths[-1].write_text(json.dumps(content))
        return import_results(paths, tmp_path / out, **options)

    return to


def row(run, metric, sample="task_0000", member="0"):
    (found,) = (one for one in run.rows if one.key[1:4] == (sample, member, metric))
    return found


def test_every_published_row_comes_out_as_it_was_printed(bring, goldens):
    with (goldens / "papers" / "pai_table4.csv").open(newline="") as file:
        published = list(csv.DictReader(file))
    assert len(published) == 16
    columns = list(published[0])[2:]
    runs = []
    for place, line in enumerate(reversed(published)):  # the order is the table's, not that of the runs
        numbers = dict(zip(SCORES, (float(line[column]) for column in columns), strict=True))
        content = fidelity(
            blur_ssim=numbers["blur_ssim"], canny_f1_score=numbers["edge_f1"], depth_si_rmse=numbers["depth_si_rmse"],
            seg_m_iou=numbers["mask_miou"], dover_tech_score=numbers["visual_quality"],
        )  # fmt: skip
        runs.append(
            bring(
                content,
                diversity(value=numbers["diversity"]),
                out=f"run{place}",
                model=line["model"],
                condition=line["condition"],
            )
        )
    (table,) = tables_of(runs)
    assert [head.name for head in table.heads if head.ranked] == list(SCORES)
    assert [head.arrow for head in table.heads if head.ranked] == ["↑", "↑", "↓", "↑", "↑", "↑"]
    printed = {
        (line.model, line.condition): [
            cell.printed(head.column) for head, cell in zip(table.heads, line.cells, strict=True) if head.ranked
        ]
        for line in table.whole
    }
    assert printed == {(line["model"], line["condition"]): [line[name] for name in columns] for line in published}
    models = list(dict.fromkeys(line["model"] for line in reversed(published)))
    order = ["blur", "edge", "depth", "seg", "all"]
    by_model = sorted(printed, key=lambda key: (models.index(key[0]), order.index(key[1])))
    assert list(printed) == by_model
    tex = render(runs, ".tex").decode()
    for line in published:
        cells = [tex_cell.split("$")[1].split(" ")[0] for tex_cell in tex_line(tex, line) if "$" in tex_cell]
        assert [cell for place, cell in enumerate(cells) if place != 5] == [line[name] for name in columns]


def tex_line(tex, line):
    name = line["model"].replace("-", "{-}")
    (found,) = (one for one in tex.splitlines() if one.startswith(f"    {name} & {line['condition']} & "))
    return found.split(" & ")


def test_numbers_go_to_the_metrics_that_they_belong_to(bring):
    run = bring(fidelity(), diversity(), model="m", condition="edge")
    assert (run.manifest["track"], run.manifest["protocol"], run.condition) == ("control", "reference", "edge")
    assert run.manifest["imported"]["format"] == "pai-bench-c-results"
    assert {metric: row(run, metric).value for metric in SCORES[:5]} == {
        "blur_ssim": 0.75, "edge_f1": 0.25, "depth_si_rmse": 0.625, "mask_miou": 0.7, "visual_quality": 8.5,
    }  # fmt: skip
    assert row(run, "diversity", member="all").value == 0.3
    assert row(run, "edge_f1").values == {"precision": 0.5, "recall": 0.125}
    assert row(run, "mask_miou").values == {"recall": 0.875}
    assert row(run, "visual_quality").values == {"reference": 9.5}
    assert run.exit_code == 0
    assert run.absent == []
    checks = run.manifest["imported"]["checks"]
    assert set(checks) == {*SCORES, "edge_f1, precision", "edge_f1, recall", "mask_miou, recall"}
    assert all(check["agrees"] for check in checks.values())
    assert run.manifest["imported"]["left_out"] == ["diversity_score_lpips_fg"]


def test_what_was_left_unset_has_that_reason_and_is_left_out_of_the_mean(bring):
    unset = {0: {"canny_f1_score": float("nan"), "canny_precision": None, "seg_m_iou": None}}
    run = bring(fidelity(change=unset))
    assert row(run, "edge_f1").reason is Reason.REFERENCE_UNSET
    assert row(run, "edge_f1").values == {"precision": None, "recall": 0.125}
    assert row(run, "mask_miou").reason is Reason.REFERENCE_UNSET
    main = run.aggregate["edge_f1"]["reference"].main
    assert (main.value, main.n, main.N) == (0.25, 1, 2)
    assert all(check["agrees"] for check in run.manifest["imported"]["checks"].values())
    json.loads(render([run], ".json"), parse_constant=pytest.fail)


def test_a_total_that_does_not_follow_is_named(bring, tmp_path, cli):
    content = fidelity()
    content["global"]["seg_recall"] = 0.5
    run = bring(content)
    assert (
        "the file says 0.5, its records give 0.875" in run.manifest["imported"]["checks"]["mask_miou, recall"]["note"]
    )
    done = cli("import", tmp_path / "run-0.json", "--out", tmp_path / "cli", "--condition", "all", "--json")
    assert done.code == 1
    assert "total of mask_miou, recall" in done.err
    assert done.json["condition"] == "all"


@pytest.mark.parametrize("spelled", ["task_0000_caption3", "task_0000__3"])
def test_both_ways_of_naming_are_read(bring, spelled):
    run = bring(fidelity(videos=("task_0000", spelled)))
    assert [member["id"] for member in run.manifest["samples"][0]["members"]] == ["0", "3"]
    assert row(run, "blur_ssim", member="3").value == 0.75


def test_diversity_alone_names_the_clips_of_each_task(bring):
    run = bring(diversity(clips=("", *(f"_caption{k}" for k in range(1, 6)))))
    assert [[one["id"] for one in sample["members"]] for sample in run.manifest["samples"]] == [list("012345")] * 2
    assert [one.member for one in run.rows] == ["all", "all"]
    assert run.absent == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"global": {}, "per_video": {}}, "must be"),
        ({"global": {}, "per_video": [3]}, "entry 0 of per_video must be an object"),
        ({"global": {}, "per_video": [{"blur_ssim": 0.5}]}, "pred_video_file must name a file"),
        (fidelity(blur_ssim=1.5), "blur_ssim is 1.5, which lies outside of its range"),
        (fidelity(seg_m_iou="high"), "seg_m_iou must be a number, NaN or null"),
        (fidelity(canny_precision=7.0), "canny_precision is 7, which lies outside of its range, 0 to 1"),
        (fidelity(seg_recall=-1.0), "seg_recall is -1, which lies outside of its range, 0 to 1"),
        (fidelity(dover_tech_score_gt=101.0), "dover_tech_score_gt is 101, which lies outside of its range, 0 to 100"),
        (diversity(value=-0.5), "diversity_score_lpips is -0.5, which lies outside of its range, 0 or more"),
        (fidelity(depth_si_rmse=10**400), "the number .* no score is above 1e\\+100"),
        (fidelity(depth_si_rmse=1.7e308), "the number .* no score is above 1e\\+100"),
    ],
)
def test_malformed_files_are_refused_with_the_entry(bring, content, said):
    with pytest.raises(InputError, match=said):
        bring(content)


def test_numbers_as_large_as_a_network_may_give_are_kept(bring):
    run = bring(fidelity(depth_si_rmse=3.4e38, canny_precision=1.0, seg_recall=0.0, dover_tech_score_gt=100.0))
    assert row(run, "depth_si_rmse").value == 3.4e38
    assert row(run, "edge_f1").values["precision"] == 1
    assert row(run, "mask_miou").values == {"recall": 0}
    assert row(run, "visual_quality").values == {"reference": 100}


def test_files_of_two_tracks_are_no_one_run(bring):
    quality = {"i2v_subject": [0.5, [{"video_path": "a__0.mp4", "video_results": 0.5}]]}
    with pytest.raises(InputError, match="belong to different tracks"):
        bring(fidelity(), quality)
    with pytest.raises(InputError, match="unknown condition 'colour'; expected blur, edge, depth, seg, all"):
        bring(fidelity(), condition="colour")
    with pytest.raises(InputError, match="the quality track has none"):
        bring(quality, condition="edge")
    with pytest.raises(InputError, match="follow reference or reference-v2"):
        bring(fidelity(), protocol="corrected")


# --- the table ----------------------------------------------------------------------------------------------------


def test_the_ground_truth_has_its_own_mean_and_n(bring):
    change = {0: {"dover_tech_score_gt": 10.5}, 1: {"dover_tech_score_gt": None}}
    run = bring(fidelity(change=change), model="m", condition="blur")
    (table,) = tables_of([run])
    names = [head.name for head in table.heads]
    assert names[names.index("visual_quality") + 1] == "visual_quality.reference"
    (line,) = table.lines
    cell = dict(zip(names, line.cells, strict=True))["visual_quality.reference"]
    assert (cell.value, cell.n, cell.N) == (10.5, 1, 2)
    assert dict(zip(names, line.cells, strict=True))["diversity"] is None
    document = run.to_json()["tables"][0]
    assert document["lines"][0]["scores"]["visual_quality.reference"]["value"] == 10.5
    assert [one["better"] for one in document["columns"] if "." in one["name"]] == [None]
    page = render([run], ".html").decode()
    assert "quality of the ground truth" in page
    assert "given blur" in page


def test_conditions_of_one_model_stand_side_by_side(bring):
    runs = [
        bring(fidelity(blur_ssim=value), out=given, model="m", condition=given)
        for given, value in (("all", 0.9), ("blur", 0.5))
    ]
    text = Console(file=io.StringIO(), width=160)
    print_published(text, runs)
    shown = text.file.getvalue()
    assert shown.index("blur ") < shown.index("│ all")
    assert "2 of 2 samples" in shown
    lines = list(csv.DictReader(io.StringIO(render(runs, ".csv", table=True).decode())))
    assert [(line["model"], line["condition"], line["blur_ssim"]) for line in lines] == [
        ("m", "blur", "0.5"),
        ("m", "all", "0.9"),
    ]
    assert (lines[0]["blur_ssim.n"], lines[0]["blur_ssim.N"], lines[0]["diversity"]) == ("2", "2", "")
    several = json.loads(render(runs, ".json"))
    assert json.loads(render(runs, ".json", table=True))["tables"] == several["tables"]
    found = compare(*reversed(runs)).others[0]
    assert found.label == "m, all"
    assert "what the generators were given: blur and all" in [one.text for one in found.differences]
    with pytest.raises(InputError, match=r"the table alone cannot be written as '.html'; use .csv, .json, .tex"):
        render(runs, ".html", table=True)


def test_a_metric_that_no_benchmark_prints_comes_last_in_a_paper_table(maker):
    from api.services.results import RunResults

    metrics = dict.fromkeys(("edge_f1", "blur_ssim", "dynamic_degree"), ("corrected",))
    run = RunResults.read(maker("r", maker.manifest([maker.sample("s1"), maker.sample("s2")], metrics=metrics)))
    head = next(line for line in render([run], ".tex").decode().splitlines() if line.startswith("    system"))
    assert head.index("blur SSIM") < head.index("edge F1") < head.index("dynamic")
    (table,) = tables_of([run])
    assert [(line.domain, line.cells[0].n) for line in table.lines] == [(None, 2), ("robot", 2)]
    assert all(line.cells[0].lower < line.cells[0].upper for line in table.lines)

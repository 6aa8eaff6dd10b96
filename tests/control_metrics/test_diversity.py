"""Diversity: goldens of LPIPS with its published heads, small cases by hand, rules of both protocols, properties."""

import re
from itertools import combinations

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from bench.stand_in import write
from control_metrics import diversity
from control_metrics.diversity import METRIC, DiversityCounts
from gen_eval import weights
from gen_eval.data.signal_files import write_masks
from gen_eval.features.plan import Plan
from gen_eval.features.planner import score_group
from gen_eval.media import write_clip
from gen_eval.networks import distances, placed, placement_of
from gen_eval.networks.loading import loaded
from gen_eval.networks.memory import memory_errors
from gen_eval.protocols import Preset, load_protocol
from gen_eval.records import Flag, Generation, Group, InputError, Reason, Sample
from gen_eval.settings import settings

BACKBONES = {"vgg": ("lpips_vgg", "vgg16", "vgg16_features"), "alex": ("lpips_alex", "alexnet", "alexnet_features")}


@pytest.fixture(scope="module")
def use():
    """Find networks in the folders that environment variables name, until the module's tests are over."""
    with pytest.MonkeyPatch.context() as patch:

        def choose(variables):
            for name, value in variables.items():
                patch.setenv(name, value)
            settings.cache_clear()

        yield choose
    settings.cache_clear()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write(tmp_path_factory.mktemp("small"), ["lpips_vgg"], small=True)


@pytest.fixture(scope="module")
def seeded_backbones(tmp_path_factory, golden, seeded_array):
    """Backbones with the numbers of the goldens under torchvision's names; heads are those of the package."""
    from safetensors.numpy import save_file

    folder, entries = tmp_path_factory.mktemp("seeded"), {}
    for short, (_, backbone, names) in BACKBONES.items():
        state = {}
        for name, shape in golden(f"lpips_{short}_manifest.json")["state_dict"].items():
            if layer := re.fullmatch(r"net\.slice\d\.(.+)", name):
                state[f"features.{layer[1]}"] = seeded_array(name, tuple(shape))
        home = folder / "weights" / backbone
        home.mkdir(parents=True)
        save_file({**state, "classifier.0.bias": np.zeros(3, np.float32)}, home / "seeded.safetensors")
        entries[backbone] = {
            **weights.checkpoint(backbone).model_dump(exclude={"name", "note", "sources"}),
            "sources": [{"file": "seeded.safetensors", "container": "safetensors", "keep": ["features."]}],
            "manifest": names,
        }
    (folder / "configs" / "weights").mkdir(parents=True)
    (folder / "configs" / "weights" / "own.yaml").write_text(yaml.safe_dump(entries))
    return {"GEN_EVAL_CONFIGS": str(folder / "configs"), "GEN_EVAL_WEIGHTS": str(folder / "weights")}


@pytest.fixture(scope="module")
def golden_clips(golden):
    clips = golden("lpips_clips.npz")
    return [clips[f"v{number}"] for number in range(3)]


@pytest.mark.parametrize("short", BACKBONES)
def test_goldens_of_pairs_frames_and_layers(short, use, seeded_backbones, golden, golden_clips):
    use(seeded_backbones)
    network = BACKBONES[short][0]
    expected = golden("lpips_metrics.json")["nets"][short]
    frames = np.stack(golden_clips, axis=1)
    found = distances(frames, network=network)
    assert found == pytest.approx(np.transpose([pair["per_frame"] for pair in expected["pairs"]]), rel=1e-5)
    assert found.mean() == pytest.approx(expected["diversity"], rel=1e-5)
    there_and_back = distances(np.stack([*golden_clips, *golden_clips], axis=1)[:1], network=network)
    pairs = {pair: place for place, pair in enumerate(combinations(range(6), 2))}
    for i, j in combinations(range(3), 2):
        gap = np.abs(there_and_back[:, pairs[i, j + 3]] - there_and_back[:, pairs[j, i + 3]])
        assert gap.max() == pytest.approx(expected["max_asymmetry"], abs=1e-7)
    for one in range(3):
        same = there_and_back[:, pairs[one, one + 3]]
        assert same == pytest.approx(np.full(len(same), expected["self_distance"]), abs=1e-7)
    import torch

    with torch.inference_mode():
        terms = loaded(network).terms(torch.from_numpy(frames[0]).permute(0, 3, 1, 2))
    assert terms[:, 0].numpy() == pytest.approx(expected["layer_terms_v0_v1_frame0"], rel=1e-5)


def test_golden_of_the_score(use, seeded_backbones, golden, golden_clips):
    use(seeded_backbones)
    expected = golden("lpips_metrics.json")["nets"]["vgg"]
    result = diversity(golden_clips)
    assert float(result) == pytest.approx(expected["diversity"], rel=1e-5)
    assert [(pair["clips"], pair["distance"]) for pair in result.detail["pairs"]] == [
        ([pair["i"], pair["j"]], pytest.approx(pair["mean"], rel=1e-5)) for pair in expected["pairs"]
    ]
    assert result.curves["diversity"] == pytest.approx(np.mean([p["per_frame"] for p in expected["pairs"]], axis=0))
    assert result.flags == (Flag.CLIP_COUNT,)


def test_black_and_white_as_the_package_says_with_pictures_from_minus_one_to_one(use, seeded_backbones):
    import torch

    use(seeded_backbones)
    black = np.zeros((2, 20, 24, 3), np.uint8)
    module = loaded("lpips_vgg")
    with torch.inference_mode():
        ones = torch.ones(1, 3, 20, 24)
        expected = module(-ones, ones).item()
        wrong = module(0 * ones, ones).item()
    assert float(diversity([black, black + 255])) == pytest.approx(expected, rel=1e-5)
    assert abs(wrong - expected) > 0.01 * expected
    for number in (black / np.float32(255), black.astype(np.float64)):
        with pytest.raises(ValueError, match="uint8"):
            diversity([number, number])
        with pytest.raises(TypeError, match="uint8"):
            distances(number[None], network="lpips_vgg")


def test_both_checkpoints_are_named_needed_and_identified(use, seeded_backbones):
    use(seeded_backbones)
    measure = load_protocol("diversity", "corrected").measure
    assert METRIC.networks(measure) == ("lpips_vgg", "vgg16")
    assert weights.digest("lpips_vgg") not in (None, weights.locate("lpips_vgg").sha256, weights.digest("vgg16"))


def test_an_absent_backbone_is_named(use, tmp_path, noise):
    use({"GEN_EVAL_CONFIGS": "", "GEN_EVAL_WEIGHTS": str(tmp_path)})
    result = diversity([noise(), noise()])
    assert result.reason is Reason.MISSING_WEIGHTS
    assert "weights fetch vgg16" in result.detail["message"]


@pytest.fixture
def clips(use, small, noise):
    use(small)
    return [noise(4, 20, 24, seed) for seed in range(8)]


def by_pair(result):
    return {tuple(pair["clips"]): pair["distance"] for pair in result.detail["pairs"]}


@pytest.mark.parametrize("count", [2, 3, 6, 8])
def test_any_number_of_clips_from_two(count, clips):
    result = diversity(clips[:count])
    pairs = by_pair(result)
    assert list(pairs) == list(combinations(range(count), 2))
    assert pairs[0, 1] == pytest.approx(float(diversity([clips[1], clips[0]])), rel=1e-5)
    assert float(result) == pytest.approx(np.mean(list(pairs.values())))
    assert (Flag.CLIP_COUNT in result.flags) == (count != 6)
    for protocol in ("reference", "reference-v2"):
        other = diversity(clips[:count], protocol=protocol)
        assert (other.reason is None) == (count == 6)
        assert other.reason in (None, Reason.REFERENCE_UNSET)
        assert count != 6 or float(other) == float(result)


def test_each_frame_goes_through_each_layer_once(clips, monkeypatch):
    seen = []
    with placed(placement_of("cpu")):
        module = loaded("lpips_vgg")
    layer = type(module).features
    monkeypatch.setattr(
        type(module), "features", lambda *given: seen.append((given[1], len(given[2]))) or layer(*given)
    )
    diversity(clips[:6])
    passes = [sum(count for number, count in seen if number == one) for one in range(5)]
    assert passes == [6 * 4] * 5  # the public code: 60 * 4


@pytest.mark.parametrize("side", [(16, 40), (40, 16), (16, 16)])
def test_sides_of_sixteen_pixels_have_a_value(side, clips):
    result = diversity([clip[:1, : side[0]].repeat(2, 2)[:, :, : side[1]].repeat(3, 1)[:, : side[0]] for clip in clips])
    assert result.value is not None
    assert result.value > 0


SMALL_FRAMES = ("reference_stops", "reference_stops", "too_small")
TABLE = {
    "five clips": (lambda clips: clips[:5], ("reference_unset", "reference_unset", None), ("clip_count",)),
    "seven clips": (lambda clips: clips[:7], ("reference_unset", "reference_unset", None), ("clip_count",)),
    "one clip": (lambda clips: clips[:1], ("reference_unset", "reference_unset", "too_few_clips"), ()),
    "no clip": (lambda clips: [], ("reference_unset", "reference_unset", "too_few_clips"), ()),
    "shorter": (
        lambda clips: [*clips[:5], clips[5][:3]], ("reference_stops", "reference_stops", None), ("short_clip",)
    ),
    "shorter first": (
        lambda clips: [clips[5][:3], *clips[:5]], ("reference_stops", "reference_stops", None), ("short_clip",)
    ),
    "last frame stands": (lambda clips: [*clips[:5], clips[5][:1]], (None, None, None), ("short_clip",)),
    "three lengths": (
        lambda clips: [*clips[:4], clips[4][:2], clips[5][:1]],
        ("reference_stops", "reference_stops", None),
        ("short_clip",),
    ),
    "unequal size": (
        lambda clips: [*clips[:5], clips[5][:, :, 1:]], ("reference_stops", "reference_stops", "size_mismatch"), ()
    ),
    "unequal size of five": (
        lambda clips: [*clips[:4], clips[5][:, :, 1:]], ("reference_unset", "reference_unset", "size_mismatch"), ()
    ),
    "side of 15 of three": (
        lambda clips: [clip[:, :15] for clip in clips[:3]], ("reference_unset", "reference_unset", "too_small"), ()
    ),
    "side of 15": (lambda clips: [clip[:, :15] for clip in clips[:6]], SMALL_FRAMES, ()),
    "side of 15 in the other direction": (lambda clips: [clip[:, :, 4:19] for clip in clips[:6]], SMALL_FRAMES, ()),
    "one frame": (lambda clips: [clip[:1] for clip in clips[:6]], (None, None, None), ()),
}  # fmt: skip


@pytest.mark.parametrize("row", TABLE)
def test_table_of_decisions(row, clips):
    given, reasons, flags = TABLE[row]
    for protocol, reason in zip(("reference", "reference-v2", "corrected"), reasons, strict=True):
        result = diversity(given(clips), protocol=protocol)
        assert (result.reason or None) == reason, protocol
        assert result.protocol == protocol
        if reason == "reference_stops":
            assert result.detail["reference_exception"] == "RuntimeError"
    assert result.flags == tuple(map(Flag, flags))


def test_unequal_lengths_take_the_frames_that_all_have(clips):
    cut = [clips[0], clips[1][:2], clips[2][:3]]
    result = diversity(cut)
    assert float(result) == float(diversity([clip[:2] for clip in cut]))
    assert len(result.curves["diversity"]) == 2
    assert result.detail["lengths"] == [4, 2, 3]
    assert result.detail["covered"] == 0.5


@pytest.mark.parametrize(("long", "short"), [(4, 1), (10, 1), (20, 11), (12, 11)])
def test_reference_repeats_a_single_last_frame_in_one_order_only(long, short):
    """By the definition, from distances as the network would give them with clips 1 and 5 standing still."""
    frames = np.random.default_rng(0).random((long, 15))
    lengths = [long, short, long, long, long, short]
    pairs = {pair: place for place, pair in enumerate(combinations(range(6), 2))}
    expected = np.mean([
        frames[: lengths[i], pairs[min(i, j), max(i, j)]].mean() for i in range(6) for j in range(6) if i != j
    ])  # fmt: skip
    result = METRIC.decide(DiversityCounts(6, lengths, list(frames)), load_protocol("diversity", "reference").decide)
    assert float(result) == pytest.approx(expected, rel=1e-12)
    assert result.flags == (Flag.SHORT_CLIP,)


def test_clips_that_ended_stand_still_under_reference(clips):
    cut = [*clips[:5], clips[5][:1]]
    held = diversity([*clips[:5], clips[5][:1].repeat(4, 0)])
    pairs, still, first = (by_pair(one) for one in (diversity(cut, protocol="reference"), held, diversity(cut)))
    assert all(pairs[i, j] == pytest.approx(still[i, j], rel=1e-5) for i, j in pairs if j < 5)
    assert all(pairs[i, 5] == pytest.approx((still[i, 5] + first[i, 5]) / 2, rel=1e-5) for i in range(5))


@pytest.mark.parametrize(
    ("lengths", "recorded"),
    [
        ((12, 2), True), ((11, 9), True), ((12, 1), True), ((12, 10), True), ((22, 11), True), ((20, 10), True),
        ((9, 5, 1), True), ((11, 1), False), ((11, 10), False), ((21, 11), False), ((21, 20), False),
        ((11, 10, 3), False),
    ],
)  # fmt: skip
def test_reference_stops_where_a_batch_cannot_be_subtracted(lengths, recorded):
    """A frame that is alone in its batch and meets none is subtracted from nothing: no exception is known of that."""
    longest, *others = lengths
    counts = DiversityCounts(6, [longest] * (6 - len(others)) + others, [np.ones(15)] * min(longest, min(lengths) + 9))
    result = METRIC.decide(counts, load_protocol("diversity", "reference").decide)
    assert result.reason is Reason.REFERENCE_STOPS
    assert result.detail.get("reference_exception") == ("RuntimeError" if recorded else None)
    assert ("not recorded" in result.detail["message"]) == (not recorded)


def test_by_hand():
    """Three clips: frame 0 has distances 1, 2, 6, frame 1 has 3, 4, 2."""
    frames = [np.array([1.0, 2.0, 6.0]), np.array([3.0, 4.0, 2.0])]
    decide = load_protocol("diversity", "corrected").decide
    result = METRIC.decide(DiversityCounts(3, [2, 2, 2], frames), decide)
    assert float(result) == 3.0
    assert by_pair(result) == {(0, 1): 2.0, (0, 2): 3.0, (1, 2): 4.0}
    assert result.curves["diversity"].tolist() == [3.0, 3.0]
    broken = METRIC.decide(DiversityCounts(3, [2, 2, 2], [frames[0], frames[1] * [np.nan, 1, 1]]), decide)
    assert broken.reason is Reason.NOT_FINITE
    assert by_pair(broken)[0, 1] is None
    for name in ("clips", "unequal_length"):
        with pytest.raises(InputError, match=f"unknown rule {name}"):
            METRIC.decide(DiversityCounts(3, [2, 2, 2], frames), {**decide, name: "other"})


def test_foreground_and_background(clips, box_mask):
    masks = box_mask(3, 12, 5, 18, size=(6, 20, 24))
    two = clips[:2]
    result = diversity(two, masks)
    for region, shown in (("foreground", masks[:4]), ("background", ~masks[:4])):
        painted = [clip.copy() for clip in two]
        for clip in painted:
            clip[~shown] = 255
        assert result.values[region] == float(diversity(painted)) > 0
    assert float(result) == float(diversity(two))
    everything = diversity(two, np.ones((4, 20, 24), bool))
    assert everything.values == {"foreground": float(result), "background": 0.0}
    assert not diversity(clips[:1], masks).values
    with pytest.raises(TypeError, match="NumPy"):
        diversity(two, [[True]])
    with pytest.raises(ValueError, match="bool"):
        diversity(two, masks.astype(np.uint8))
    with pytest.raises(ValueError, match=r"clips\[0\]"):
        diversity(two, masks[:3])


@examples(max_examples=10)
@given(st.permutations(range(4)), st.integers(0, 9))
def test_the_order_of_clips_does_not_matter(use, small, order, seed):
    use(small)
    rng = np.random.default_rng(seed)
    clips = rng.integers(0, 256, (4, 2, 16, 18, 3), dtype=np.uint8)
    straight, mixed = diversity(list(clips)), diversity([clips[place] for place in order])
    assert float(mixed) == pytest.approx(float(straight), rel=1e-5)
    pairs, moved = by_pair(straight), by_pair(mixed)
    for i, j in moved:
        assert moved[i, j] == pytest.approx(pairs[tuple(sorted((order[i], order[j])))], rel=1e-5)


@examples(max_examples=10)
@given(st.integers(2, 6), st.integers(1, 2), st.integers(16, 33), st.integers(16, 33), st.integers(0, 9))
def test_equal_clips_have_none(use, small, count, frames, height, width, seed):
    use(small)
    clip = np.random.default_rng(seed).integers(0, 256, (frames, height, width, 3), dtype=np.uint8)
    assert float(diversity([clip] * count)) == 0.0
    other = np.flip(clip, 0) ^ 128
    assert float(diversity([clip, other])) > 0.0


def test_memory_errors_halve_the_frames_and_change_nothing(clips, monkeypatch):
    expected = diversity(clips[:3])
    module = loaded("lpips_vgg")
    whole, calls = type(module).terms, []

    def tight(self, pictures):
        calls.append(len(pictures))
        if len(calls) in (2, 4):
            with memory_errors():
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return whole(self, pictures)

    monkeypatch.setattr(type(module), "terms", tight)
    assert by_pair(diversity(clips[:3])) == by_pair(expected)
    monkeypatch.setattr(type(module), "terms", lambda *_: (_ for _ in ()).throw(MemoryError))
    assert diversity(clips[:3]).reason is Reason.OUT_OF_MEMORY


def test_half_precision_is_near(clips):
    exact, rough = diversity(clips[:3]), diversity(clips[:3], dtype="bfloat16")
    assert float(rough) == pytest.approx(float(exact), rel=0.03)
    assert float(rough) != float(exact)


def test_both_doors_agree(clips, tmp_path):
    given = [*clips[:4], clips[4][:1], clips[5]]
    for place, clip in enumerate(given):
        write_clip(tmp_path / f"s__{place}.mp4", clip, 8.0, lossless=True)
    group = Group("m", Sample("s"), tuple(Generation("s", str(n), tmp_path / f"s__{n}.mp4") for n in range(6)))
    protocols = [load_protocol("diversity", name) for name in ("reference", "corrected")]
    plan = Plan.of([(METRIC, protocols)], Preset("all", None), 3)
    assert len(plan.measurements) == 1
    outcomes = score_group(group, plan).outcomes
    assert len(outcomes) == 2
    for outcome in outcomes:
        expected = diversity(given, protocol=outcome.protocol.name)
        assert float(outcome.result) == pytest.approx(float(expected), rel=1e-6)
        assert {*expected.flags} <= {*outcome.result.flags}
        assert outcome.result.detail["frames"] == [4, 4, 4, 4, 1, 4]


# --- regions in the track


@pytest.fixture
def regions(tmp_path):
    """The protocol that asks for all regions."""

    def make(wanted=("whole", "foreground", "background"), base="corrected"):
        path = tmp_path / "regions.yaml"
        path.write_text(yaml.safe_dump({"diversity": {"base": base, "measure": {"regions": list(wanted)}}}))
        return load_protocol("diversity", str(path))

    return make


def of_files(tmp_path, clips_, protocol, masks=None):
    members = []
    for number, clip in enumerate(clips_):
        write_clip(tmp_path / f"c{number}.mp4", clip, 24.0, lossless=True)
        members.append(Generation("s", str(number), tmp_path / f"c{number}.mp4"))
    plan = Plan.of([(METRIC, [protocol])], Preset("all", None), 2)
    (outcome,) = score_group(Group("m", Sample("s", masks=masks), tuple(members)), plan).outcomes
    return outcome.result


@pytest.mark.parametrize("scale", [1, 2])
def test_regions_follow_the_masks_of_the_reference(clips, tmp_path, regions, box_mask, scale):
    three = clips[:3]
    left, right = box_mask(2, 9, 3, 12, (4, 20, 24)), box_mask(11, 18, 10, 22, (4, 20, 24))
    large = [(name, mask.repeat(scale, 1).repeat(scale, 2)) for name, mask in (("a", left), ("b", right))]
    write_masks(tmp_path / "m.json", large)
    found = of_files(tmp_path, three, regions(), tmp_path / "m.json")
    expected = diversity(three, left | right)
    assert found.value == pytest.approx(expected.value, rel=1e-6)
    assert found.values == pytest.approx(dict(expected.values), rel=1e-6)
    assert set(found.values) == {"foreground", "background"}
    assert of_files(tmp_path, three, regions(["whole", "background"]), tmp_path / "m.json").values == pytest.approx(
        {"background": expected.values["background"]}, rel=1e-6
    )


def test_without_masks_the_whole_stays_and_the_row_says_why(clips, tmp_path, regions, box_mask):
    two = clips[:2]
    write_masks(tmp_path / "short.json", [("a", box_mask(2, 9, 3, 12, (2, 20, 24)))])
    (tmp_path / "broken.json").write_text("{")
    for masks, reason in (
        (None, "missing_ground_truth"),
        (tmp_path / "short.json", "missing_ground_truth"),
        (tmp_path / "broken.json", "undecodable"),
    ):
        found = of_files(tmp_path, two, regions(), masks)
        assert found.value is not None
        assert found.values == {"foreground": None, "background": None}
        assert found.detail["regions"]["reason"] == reason


@pytest.mark.parametrize("wanted", [["foreground"], ["whole", "sky"], []])
def test_regions_that_are_not_known_end_the_command(clips, tmp_path, regions, wanted):
    with pytest.raises(InputError, match="expected a list of whole"):
        of_files(tmp_path, clips[:2], regions(wanted))


def test_a_distance_is_no_ratio():
    assert METRIC.unit == "LPIPS", "ratios are printed in percent"

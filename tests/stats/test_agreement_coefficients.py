import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.records import ItemError, Reason
from gen_eval.stats import cohen_kappa, krippendorff_alpha

LABELS = ("a", "b", "both_good", "both_bad")
SCORES = {"a": 1.0, "b": 0.0, "both_good": 0.5, "both_bad": 0.5}
label = st.sampled_from(LABELS)
units = st.lists(st.lists(st.one_of(st.none(), label), max_size=5), min_size=1, max_size=8)


@pytest.fixture
def golden(goldens):
    return json.loads((goldens / "elo" / "agreement.json").read_text())


@pytest.fixture
def by_item(golden):
    found = {}
    for who, item, answer in golden["votes"]:
        found.setdefault(item, {})[who] = answer
    return found


def test_golden_alphas(golden, by_item):
    answers = [list(own.values()) for own in by_item.values()]
    scores = [[SCORES[answer] for answer in own] for own in answers]
    nominal = krippendorff_alpha(answers)
    assert nominal.value == pytest.approx(golden["alpha_nominal_four_labels"], abs=1e-9)
    assert krippendorff_alpha(scores).value == pytest.approx(golden["alpha_nominal_ties_merged"], abs=1e-9)
    interval = krippendorff_alpha(scores, level="interval")
    assert interval.value == pytest.approx(golden["alpha_interval_win_half_loss"], abs=1e-9)
    assert (nominal.n, nominal.labels, nominal.left_out) == (28, 83, 2)


def test_golden_kappas(golden, by_item):
    for pair in golden["pairwise"]:
        columns = [[own.get(who) for own in by_item.values()] for who in pair["pair"]]
        found = cohen_kappa(*columns)
        assert found.value == pytest.approx(pair["kappa"], abs=1e-9)
        assert (found.n, found.observed) == (pair["shared"], pytest.approx(pair["agreement"], abs=1e-9))


def test_kappa_by_hand():
    # Equal in 3 of 5. The first says x, y in 3/5, 2/5, the second x, y, z in 2/5, 2/5, 1/5: by chance 10/25.
    found = cohen_kappa(["x", "x", "x", "y", "y", "x"], ["x", "x", "y", "y", "z", None])
    assert found.value == pytest.approx(1 / 3)
    assert (found.n, found.labels, found.left_out, found.reason) == (5, 10, 1, None)


def test_alpha_by_hand():
    # Items (0, 1), (1, 1), (0, 0, 2): pairs apart 2/1, 0, 4/2; 7 labels: three 0, three 1, one 2.
    data = [[0, 1], [1, 1], [0, 0, 2], [2], []]
    nominal = krippendorff_alpha(data)
    assert nominal.value == pytest.approx(1 - 6 * 4 / (49 - 19))
    assert (nominal.n, nominal.labels, nominal.left_out, nominal.observed) == (3, 7, 2, pytest.approx(4 / 7))
    # Squared: 2 * 1 and 4 * 4 / 2 = 10; all pairs: 9 * 1 + 3 * 4 + 3 * 1 = 24, twice.
    assert krippendorff_alpha(data, level="interval").value == pytest.approx(1 - 6 * 10 / 48)


def test_alpha_against_the_definition():
    generator = np.random.default_rng(3)
    data = [generator.normal(size=size).round(1).tolist() for size in generator.integers(0, 5, 30)]
    pairable = [own for own in data if len(own) > 1]
    everything = [x for own in pairable for x in own]
    n = len(everything)
    observed = sum((x - y) ** 2 / (len(own) - 1) for own in pairable for x in own for y in own)
    expected = sum((x - y) ** 2 for x in everything for y in everything) / (n - 1)
    assert krippendorff_alpha(data, level="interval").value == pytest.approx(1 - observed / expected, abs=1e-12)


def test_no_value():
    nobody = krippendorff_alpha([["a"], ["b", None], []])
    assert (nobody.value, nobody.reason, nobody.n, nobody.left_out) == (None, Reason.NOT_CONNECTED, 0, 3)
    assert cohen_kappa([None, "a"], ["a", None]).reason is Reason.NOT_CONNECTED
    for constant in (krippendorff_alpha([["a", "a"], ["a", "a"]]), cohen_kappa(["a", "a"], ["a", "a"])):
        assert (constant.value, constant.reason, constant.n) == (None, Reason.NO_VARIANCE, 2)
        with pytest.raises(ItemError, match="no_variance") as caught:
            float(constant)
        assert caught.value.reason is Reason.NO_VARIANCE
    assert krippendorff_alpha([[0.3, 0.3], [0.3, 0.3, 0.3]], level="interval").reason is Reason.NO_VARIANCE
    assert json.loads(json.dumps(nobody.to_json()))["reason"] == "not_connected"
    assert "not_connected" in str(nobody)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cohen_kappa(["a"], []), "1 entries and b 0"),
        (lambda: krippendorff_alpha([["a", "b"]], level="ordinal"), "'ordinal'; expected nominal"),
        (lambda: krippendorff_alpha([["a", "b"]], coverage=95), "95; it lies strictly"),
        (lambda: krippendorff_alpha([["a", "b"]], resamples=-1), "-1; expected 0"),
        (lambda: krippendorff_alpha([["a", "b"]], clusters=[1, 2]), "2 cluster labels for 1 items"),
        (lambda: krippendorff_alpha([[1.0, math.nan]], level="interval"), "nan"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_numbers_of_any_size():
    assert krippendorff_alpha([[1e300, -1e300], [1e300, 1e300]], level="interval").value == pytest.approx(0.0)
    small, large = ([[x * scale for x in own] for own in ([1, 2], [3, 3], [5, 4])] for scale in (1e-200, 1e200))
    assert krippendorff_alpha(small, level="interval").value == pytest.approx(
        krippendorff_alpha(large, level="interval").value
    )


def test_intervals():
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 2, 60)
    data = [[int(x) if generator.random() < 0.8 else int(1 - x) for _ in range(3)] for x in truth]
    alpha = krippendorff_alpha(data, resamples=2000)
    assert alpha.interval.lower < alpha.value < alpha.interval.upper
    assert alpha.interval == krippendorff_alpha(data, resamples=2000).interval
    # Items that come in identical pairs hold half of what they seem to.
    twice = [own for own in data[:30] for _ in range(2)]
    clusters = [place // 2 for place in range(60)]
    items, whole = (krippendorff_alpha(twice, resamples=2000, clusters=by) for by in (None, clusters))
    assert whole.value == items.value
    assert whole.interval.half_width > 1.2 * items.interval.half_width
    kappa = cohen_kappa(*zip(*[own[:2] for own in data], strict=True), resamples=2000)
    assert kappa.interval.lower < kappa.value < kappa.interval.upper
    assert krippendorff_alpha(data, resamples=100, clusters=[0] * 60).interval is None


@given(data=units, random=st.randoms())
@settings(max_examples=60)
def test_alpha_properties(data, random):
    found = krippendorff_alpha(data)
    kept = [[one for one in own if one is not None] for own in data]
    pairable = [one for own in kept if len(own) > 1 for one in own]
    assert found.labels == len(pairable)
    shuffled = random.sample([random.sample(own, len(own)) for own in data], len(data))
    assert krippendorff_alpha(shuffled).value == found.value
    renamed = dict(zip(LABELS, random.sample(LABELS, 4), strict=True))
    assert krippendorff_alpha([[renamed.get(one) for one in own] for own in data]).value == found.value
    if len(set(pairable)) < 2:
        assert found.reason is (Reason.NO_VARIANCE if pairable else Reason.NOT_CONNECTED)
        return
    assert found.value <= 1
    assert krippendorff_alpha([own[:1] * len(own) for own in kept]).value in (None, 1.0)
    scores = [[SCORES[one] for one in own] for own in kept]
    straight = krippendorff_alpha(scores, level="interval").value
    turned = krippendorff_alpha([[3 - 4 * one for one in own] for own in scores], level="interval").value
    assert turned == (None if straight is None else pytest.approx(straight, abs=1e-9))


@given(data=st.lists(st.tuples(label, label), min_size=1, max_size=12), random=st.randoms())
@settings(max_examples=60)
def test_kappa_properties(data, random):
    a, b = zip(*data, strict=True)
    found = cohen_kappa(a, b)
    assert cohen_kappa(b, a).value == found.value
    assert cohen_kappa(*zip(*random.sample(data, len(data)), strict=True)).value == found.value
    if found.value is None:
        assert len({*a, *b}) == 1
        return
    assert -1 <= found.value <= 1
    assert cohen_kappa(a, a).value in (None, 1.0)

"""Every kind of scene against its law, through numerical derivatives and independent solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import ellipj

from gen_eval.scenes import KINDS, render, scene
from gen_eval.scenes.kinds.swinging import jacobi, pendulum, period

STEP = 1e-4
SEEDS = range(4)


def derivatives(function, times):
    """First and second derivative by central differences."""
    before, here, after = (np.asarray(function(times + shift)) for shift in (-STEP, 0.0, STEP))
    return (after - before) / (2 * STEP), (after - 2 * here + before) / STEP**2


def coordinate(drawn, body, axis, **options):
    return lambda times: drawn.simulate(np.asarray(times), **options).centre[body, :, axis]


def inside(low, high, count=15):
    return np.linspace(low, high, count + 2)[1:-1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pull", [1.0, 0.4])
def test_falling_is_free_fall_and_then_rest(seed, pull):
    drawn = scene("falling", seed)
    landing = drawn.parameters["landing"] / np.sqrt(pull)
    height = coordinate(drawn, 0, 1, gravity=pull)
    _, acceleration = derivatives(height, inside(0.01, landing - 0.01))
    np.testing.assert_allclose(acceleration, -pull * drawn.parameters["gravity"], rtol=1e-5)
    np.testing.assert_allclose(height(np.array([landing, landing + 0.3, 9.0])), drawn.bodies[0].base, atol=1e-12)
    speed, _ = derivatives(height, np.array([2 * STEP]))
    assert abs(speed[0]) < 1e-2  # let go at rest


def test_gravity_is_that_of_the_earth_in_scene_units():
    for kind in ("falling", "bouncing", "swinging", "pushed", "rolling"):
        parameters = scene(kind, 5).parameters
        assert parameters["gravity"] * parameters["metres_per_unit"] == pytest.approx(9.81)


@pytest.mark.parametrize("seed", SEEDS)
def test_bouncing_keeps_the_stated_share_of_speed_at_each_contact(seed):
    drawn = scene("bouncing", seed)
    gravity, restitution = drawn.parameters["gravity"], drawn.parameters["restitution"]
    radius, height = drawn.parameters["radius"], coordinate(drawn, 0, 1)
    contact = drawn.parameters["first_contact"]
    for _ in range(3):
        assert height(np.array([contact]))[0] == pytest.approx(radius, abs=1e-9)
        (falling,), _ = derivatives(height, np.array([contact - 2 * STEP]))
        (rising,), _ = derivatives(height, np.array([contact + 2 * STEP]))
        assert rising == pytest.approx(-restitution * falling, rel=5e-3)
        flight = 2 * (rising + 2 * STEP * gravity) / gravity
        during = inside(contact + 0.01, contact + flight - 0.01)
        speed, acceleration = derivatives(height, during)
        np.testing.assert_allclose(acceleration, -gravity, rtol=1e-4)
        energy = gravity * height(during) + speed**2 / 2
        np.testing.assert_allclose(energy, energy[0], rtol=1e-6)
        contact = contact + flight
    sideways, _ = derivatives(coordinate(drawn, 0, 0), inside(0, 2))
    np.testing.assert_allclose(np.abs(sideways), drawn.parameters["speed"], rtol=1e-6)


def test_a_ball_comes_to_rest_and_never_goes_through_the_floor():
    drawn = scene("bouncing", 3)
    height = coordinate(drawn, 0, 1)(np.linspace(0, 60, 6001))
    assert height.min() >= drawn.parameters["radius"] - 1e-12
    assert height[-1] == drawn.parameters["radius"]


@pytest.mark.parametrize("seed", SEEDS)
def test_colliding_keeps_momentum_and_loses_the_stated_energy(seed):
    drawn = scene("colliding", seed)
    impact, restitution = drawn.parameters["impact"], drawn.parameters["restitution"]
    masses = np.array([drawn.parameters["half_1"], drawn.parameters["half_2"]]) ** 2
    before, after = (
        np.array([derivatives(coordinate(drawn, body, 0), np.array([moment]))[0][0] for body in (0, 1)])
        for moment in (impact / 2, impact * 1.5)
    )
    assert masses @ after == pytest.approx(masses @ before, rel=1e-7)
    assert after[1] - after[0] == pytest.approx(-restitution * (before[1] - before[0]), rel=1e-7)
    reduced = masses.prod() / masses.sum()
    lost = (masses @ before**2 - masses @ after**2) / 2
    assert lost == pytest.approx(reduced * (1 - restitution**2) * (before[0] - before[1]) ** 2 / 2, rel=1e-6)
    times = np.linspace(0, 3, 301)
    gap = np.abs(coordinate(drawn, 0, 0)(times) - coordinate(drawn, 1, 0)(times))
    reach = drawn.parameters["half_1"] + drawn.parameters["half_2"]
    assert gap.min() >= reach - 1e-9
    touching = np.ptp(drawn.simulate(np.array([impact])).centre[:2, 0, 0])
    assert touching == pytest.approx(reach, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_occluded_car_drives_uniformly_and_its_wheels_roll(seed):
    drawn = scene("occluded", seed)
    speed, acceleration = derivatives(coordinate(drawn, 0, 0), inside(0, 2))
    np.testing.assert_allclose(speed, speed[0], rtol=1e-8)
    np.testing.assert_allclose(acceleration, 0, atol=1e-5)
    turning, _ = derivatives(lambda times: drawn.simulate(times).spin[0], inside(0, 2))
    wheel = next(part.shape for part in drawn.bodies[0].parts if part.finish == "wheel")
    np.testing.assert_allclose(-turning * wheel.axes[0], speed, rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_pushed_crate_follows_force_and_friction(seed):
    drawn = scene("pushed", seed)
    p = drawn.parameters
    side = np.sign(-drawn.simulate(np.array([0.0])).centre[0, 0, 0])
    crate, tip = coordinate(drawn, 0, 0), coordinate(drawn, 1, 0)
    end = p["contact"] + p["duration"]
    _, pushing = derivatives(crate, inside(p["contact"] + 0.01, end - 0.01))
    np.testing.assert_allclose(side * pushing, p["push"], rtol=1e-5)
    _, sliding = derivatives(crate, inside(end + 0.01, p["stop"] - 0.01))
    np.testing.assert_allclose(side * sliding, -p["friction_coefficient"] * p["gravity"], rtol=1e-5)
    assert np.ptp(crate(np.linspace(p["stop"], p["stop"] + 2, 9))) < 1e-12
    assert np.ptp(crate(np.linspace(0, p["contact"], 9))) == 0
    times = np.linspace(0, 3, 601)
    gap = side * (crate(times) - tip(times)) - p["half"] - 0.035
    assert gap.min() > -1e-9
    touching = (times >= p["contact"]) & (times <= end)
    np.testing.assert_allclose(gap[touching], 0, atol=1e-9)


@given(st.floats(-40, 40), st.floats(0, 0.999))
@settings(max_examples=60, deadline=None)
def test_elliptic_functions_agree_with_an_independent_implementation(u, modulus):
    expected = ellipj(u, modulus**2)[:3]
    for ours, theirs in zip(jacobi(np.array([u]), modulus), expected, strict=True):
        assert ours[0] == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_swinging_keeps_energy_and_period(seed):
    drawn = scene("swinging", seed)
    length, gravity = drawn.parameters["length"], drawn.parameters["gravity"]
    amplitude, swing = drawn.parameters["amplitude"], drawn.parameters["period"]
    times = np.linspace(0, swing, 25)

    def angle(at):
        return pendulum(at, amplitude, np.sqrt(gravity / length))

    speed, _ = derivatives(angle, times)
    energy = (length * speed) ** 2 / 2 - gravity * length * np.cos(angle(times))
    np.testing.assert_allclose(energy, -gravity * length * np.cos(amplitude), rtol=1e-6)
    assert angle(np.array([swing]))[0] == pytest.approx(amplitude, abs=1e-9)
    assert angle(np.array([swing / 4]))[0] == pytest.approx(0, abs=1e-9)
    solved = solve_ivp(
        lambda _, state: [state[1], -gravity / length * np.sin(state[0])],
        (0, 2),
        [amplitude, 0.0],
        rtol=1e-10,
        atol=1e-12,
        t_eval=[0.5, 1.0, 2.0],
    )
    np.testing.assert_allclose(angle(np.array([0.5, 1.0, 2.0])), solved.y[0], atol=1e-7)
    centre = drawn.simulate(times).centre
    np.testing.assert_allclose(np.hypot(*(centre[0] - centre[1]).T), length, rtol=1e-12)


def test_elliptic_functions_settle_for_every_modulus():
    for modulus in np.linspace(0, 0.9999, 20001):
        sn, cn, dn = jacobi(np.array([0.7]), float(modulus))
        assert abs(sn[0] ** 2 + cn[0] ** 2 - 1) < 1e-12
        assert 0 < dn[0] <= 1


def test_small_swings_have_the_period_of_the_textbook():
    assert period(1e-4, 3.0) == pytest.approx(2 * np.pi / 3.0, rel=1e-8)
    assert period(np.pi / 2, 1.0) == pytest.approx(7.416298709205487, rel=1e-12)  # 4 K(1/sqrt 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_rolling_follows_the_slope_without_slipping(seed):
    drawn = scene("rolling", seed)
    p = drawn.parameters
    during = inside(0.01, p["leaves"] - 0.01)
    speeds, accelerations = zip(*(derivatives(coordinate(drawn, 0, axis), during) for axis in (0, 1)), strict=True)
    np.testing.assert_allclose(np.hypot(*accelerations), p["gravity"] * np.sin(p["slope"]) * 5 / 7, rtol=1e-5)
    np.testing.assert_allclose(accelerations[1] / np.abs(accelerations[0]), -np.tan(p["slope"]), rtol=1e-5)
    height = coordinate(drawn, 0, 1)(during)
    energy = p["gravity"] * height + 0.7 * np.hypot(*speeds) ** 2  # 1/2 (1 + 2/5)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)
    turning, _ = derivatives(lambda times: drawn.simulate(times).spin[0], during)
    np.testing.assert_allclose(np.abs(turning) * p["radius"], np.hypot(*speeds), rtol=1e-6)
    (foot, _), (top_x, top_y) = (drawn.bodies[1].parts[0].shape.vertices[index] for index in (1, 2))
    normal = np.array([top_y, abs(foot - top_x)]) / np.hypot(top_y, foot - top_x)
    centre = drawn.simulate(during).centre[0] - np.array([foot, 0.0])
    distance = centre @ (normal * np.array([np.sign(foot - top_x), 1.0]))
    np.testing.assert_allclose(distance, p["radius"], rtol=1e-9)
    after, _ = derivatives(coordinate(drawn, 0, 0), p["leaves"] + inside(0.01, 1))
    np.testing.assert_allclose(np.abs(after), np.sqrt(2 * p["acceleration"] * p["way"]), rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_floating_balloon_obeys_linear_drag(seed):
    drawn = scene("floating", seed)
    height = coordinate(drawn, 0, 1)
    speed, acceleration = derivatives(height, inside(0.01, 2))
    terminal, settling = drawn.parameters["terminal"], drawn.parameters["settling"]
    np.testing.assert_allclose(acceleration, (terminal - speed) / settling, atol=1e-6)
    assert derivatives(height, np.array([60.0]))[0][0] == pytest.approx(terminal, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_gravity_changes_the_motion_and_a_clip_starts_right(kind):
    drawn = scene(kind, 1)
    times = np.array([0.0, 0.8])
    right, wrong = drawn.simulate(times).centre, drawn.simulate(times, gravity=0.15).centre
    np.testing.assert_allclose(right[:, 0], wrong[:, 0], atol=1e-12)
    assert np.abs(right[drawn.main, 1] - wrong[drawn.main, 1]).max() > 0.02


@given(st.sampled_from(KINDS), st.integers(0, 30), st.integers(1, 16))
@settings(max_examples=25, deadline=None)
def test_motion_does_not_depend_on_frame_rate_or_size(kind, seed, frames):
    slow = render(kind, seed=seed, size=(16, 24), fps=8, frames=frames)
    fast = render(kind, seed=seed, size=(16, 24), fps=24, frames=3 * frames - 2)
    large = render(kind, seed=seed, size=(37, 30), fps=8, frames=frames)
    np.testing.assert_array_equal(slow.frames, fast.frames[::3])
    for own, other, bigger in zip(slow.tracks, fast.tracks, large.tracks, strict=True):
        np.testing.assert_array_equal(own.centre, other.centre[::3])
        np.testing.assert_array_equal(own.centre, bigger.centre)
    assert slow.times[-1] == pytest.approx(fast.times[-1])


@given(st.sampled_from(KINDS), st.integers(0, 500))
@settings(max_examples=60, deadline=None)
def test_every_drawn_scene_starts_in_view_above_the_floor(kind, seed):
    drawn = scene(kind, seed)
    x, y = drawn.simulate(np.array([0.0])).centre[drawn.main, 0]
    body = drawn.bodies[drawn.main]
    assert -0.8 < x < 0.8
    assert body.base - 1e-9 <= y < 0.95

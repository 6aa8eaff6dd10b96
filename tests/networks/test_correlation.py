"""Correlation volumes against the definition: all products, averaged, sampled position by position."""

import pytest
import torch
from torch.nn import functional

from gen_eval.networks.correlation import CorrelationPyramid, Scratch

pytestmark = pytest.mark.usefixtures("no_gradients")


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def literal(source, target, positions, levels, radius):
    """All products, their averages over 2x2 target positions, and a bilinear sample for each place of each window."""
    batch, channels, height, width = source.shape
    products = torch.einsum("bcij,bckl->bijkl", source, target) / channels**0.5
    volume = products.reshape(-1, 1, height, width)
    around = torch.arange(-radius, radius + 1.0)
    windows = []
    for level in range(levels):
        rows, columns = volume.shape[2:]
        x, y = (positions / 2**level).permute(1, 0, 2, 3).reshape(2, -1, 1, 1)
        x, y = x + around[:, None], y + around[None, :]
        x, y = torch.broadcast_tensors(2 * x / (columns - 1) - 1, 2 * y / (rows - 1) - 1)
        sampled = functional.grid_sample(volume, torch.stack([x, y], -1), align_corners=True)
        windows.append(sampled.reshape(batch, height, width, -1))
        volume = functional.avg_pool2d(volume, 2)
    return torch.cat(windows, -1).permute(0, 3, 1, 2)


@pytest.mark.parametrize(("height", "width"), [(16, 20), (18, 16), (17, 19)])
@pytest.mark.parametrize("spread", [0.0, 2.5, 40.0])
@pytest.mark.parametrize("radius", [3, 4])
def test_windows_are_those_of_the_definition(height, width, spread, radius):
    source, target = draw(1, 2, 12, height, width), draw(2, 2, 12, height, width)
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    positions = torch.stack([columns, rows]).float() + spread * draw(3, 2, 2, height, width)
    expected = literal(source, target, positions, 4, radius)
    found = CorrelationPyramid.of(source, target, levels=4, radius=radius).lookup(positions)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    forth, back = CorrelationPyramid.both_ways(source, target, levels=4, radius=radius)
    torch.testing.assert_close(forth.lookup(positions), expected, rtol=0, atol=1e-4)
    expected = literal(target, source, positions, 4, radius)
    torch.testing.assert_close(back.lookup(positions), expected, rtol=0, atol=1e-4)


def test_by_hand():
    """One channel, a 2x2 map: at (0.5, 0) between the products with 1 and 2, and outside nothing."""
    source = torch.full((1, 1, 2, 2), 3.0)
    target = torch.tensor([[[[1.0, 2.0], [4.0, 8.0]]]])
    positions = torch.zeros(1, 2, 2, 2)
    positions[0, 0] = 0.5
    window = CorrelationPyramid.of(source, target, levels=1, radius=1).lookup(positions)[0, :, 0, 0].view(3, 3)
    # x varies slowest: rows of the window are x = -0.5, 0.5, 1.5 and its columns y = -1, 0, 1
    torch.testing.assert_close(window, torch.tensor([[0, 1.5, 6.0], [0, 4.5, 18.0], [0, 3.0, 12.0]]))


def test_scratch_hands_out_the_same_memory_until_the_size_changes():
    scratch, like = Scratch(), torch.zeros(1)
    first = scratch.empty("a", (2, 3), like)
    assert scratch.empty("a", (2, 3), like).data_ptr() == first.data_ptr()
    assert scratch.empty("b", (2, 3), like).data_ptr() != first.data_ptr()
    assert scratch.empty("a", (3, 3), like).shape == (3, 3)
    assert scratch.empty("a", (3, 3), like.double()).dtype == torch.float64

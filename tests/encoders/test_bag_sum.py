import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encoders.interpreter import check_interpreted
from torch import Tensor

from nodepiece.encoders import bag_sum as module
from nodepiece.encoders.bag_sum import (
    HAS_TRITON,
    Bags,
    bag_sum,
    bags_of_width,
    cut_into_chunks,
    sum_members,
    sum_rows,
)

NUM_ROWS = 6

# Bags may be empty, hold a row twice, and leave rows out.
contents = st.lists(st.lists(st.integers(0, NUM_ROWS - 1), max_size=12), min_size=1, max_size=8)


def bags_of(lists: list[list[int]], num_rows: int = NUM_ROWS) -> Bags:
    sizes = torch.tensor([0] + [len(members) for members in lists])
    members = torch.tensor([row for members in lists for row in members], dtype=torch.int32)
    return Bags(members, sizes.cumsum(0).int(), num_rows)


def counts_of(lists: list[list[int]], num_rows: int = NUM_ROWS) -> Tensor:
    """The dense reference: how often each bag holds each row, (num_bags, num_rows)."""
    dense = torch.zeros(len(lists), num_rows, dtype=torch.float64)
    for bag, members in enumerate(lists):
        for row in members:
            dense[bag, row] += 1
    return dense


def random_rows(num_rows: int = NUM_ROWS, dim: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_rows, dim, generator=generator, dtype=torch.float64).requires_grad_()


def skewed_lists(num_bags: int = 40, num_rows: int = NUM_ROWS) -> list[list[int]]:
    """Bags of sizes around the length of a chunk, empty ones, and a very long one."""
    generator = torch.Generator().manual_seed(3)
    sizes = [0, 1, 127, 128, 129, 0, 255, 256, 257, 1000, 0] + [5] * (num_bags - 12) + [0]
    return [torch.randint(num_rows, (size,), generator=generator).tolist() for size in sizes]


@settings(deadline=None)
@given(contents)
def test_forward_and_gradient_are_those_of_the_dense_matrix(lists: list[list[int]]) -> None:
    bags, rows = bags_of(lists), random_rows()
    upstream = random_rows(len(lists), seed=1).detach()

    sums = bag_sum(rows, bags, bags.transposed())
    sums.backward(upstream)  # type: ignore[no-untyped-call]

    dense = counts_of(lists)
    torch.testing.assert_close(sums, dense @ rows)
    torch.testing.assert_close(rows.grad, dense.T @ upstream)


@settings(deadline=None)
@given(contents)
def test_transposed_bags_hold_for_each_row_the_bags_it_is_in(lists: list[list[int]]) -> None:
    transposed = bags_of(lists).transposed()

    expected = [
        [bag for bag, members in enumerate(lists) for row in members if row == wanted]
        for wanted in range(NUM_ROWS)
    ]
    ends = transposed.offsets.tolist()
    found = [transposed.members[a:b].tolist() for a, b in itertools.pairwise(ends)]
    assert found == expected
    assert (transposed.num_bags, transposed.num_rows) == (NUM_ROWS, len(lists))


@settings(deadline=None)
@given(contents)
def test_transposing_twice_gives_the_bags_with_their_members_in_order(
    lists: list[list[int]],
) -> None:
    twice = bags_of(lists).transposed().transposed()
    in_order = bags_of([sorted(members) for members in lists])
    assert twice.members.tolist() == in_order.members.tolist()
    assert twice.offsets.tolist() == in_order.offsets.tolist()


@settings(deadline=None, max_examples=50)
@given(contents)
def test_chunks_cut_every_bag_and_leave_the_rest_empty(lists: list[list[int]]) -> None:
    bags = bags_of([members * 40 for members in lists])  # up to 480 members
    chunks, bag_chunks = cut_into_chunks(bags)
    sizes = chunks.diff()
    assert sizes.min() >= 0
    assert sizes.max() <= module.CHUNK
    assert chunks[0] == 0
    assert chunks[-1] == len(bags.members)
    torch.testing.assert_close(chunks[bag_chunks.long()], bags.offsets)


def test_sums_in_two_levels_are_those_in_one() -> None:
    bags, rows = bags_of(skewed_lists()), random_rows().detach()
    chunks, bag_chunks = bags.chunks
    partial = sum_rows(rows, bags.members, chunks)
    every = torch.arange(len(partial), dtype=torch.int32)
    in_two_levels = sum_rows(partial, every, bag_chunks)
    torch.testing.assert_close(in_two_levels, sum_members(rows, bags))
    torch.testing.assert_close(in_two_levels, counts_of(skewed_lists()) @ rows)


def test_shapes_of_chunks_depend_on_the_sizes_alone() -> None:
    one_long = bags_of([[0] * 300, [], [1]])
    spread = bags_of([[0] * 100, [1] * 100, [2] * 101])
    shapes = [[part.shape for part in bags.chunks] for bags in (one_long, spread)]
    assert shapes[0] == shapes[1]


def test_bags_take_over_the_contents_of_others_in_place() -> None:
    bags, other = bags_of([[0] * 300, [], [1]]), bags_of([[2] * 100, [3] * 100, [4] * 101])
    places = [bags.members.data_ptr(), bags.offsets.data_ptr(), bags.chunks[0].data_ptr()]
    bags.copy_from(other)
    assert places == [bags.members.data_ptr(), bags.offsets.data_ptr(), bags.chunks[0].data_ptr()]
    assert bags.members.tolist() == other.members.tolist()
    assert bags.offsets.tolist() == other.offsets.tolist()
    assert [part.tolist() for part in bags.chunks] == [part.tolist() for part in other.chunks]


def test_bags_of_one_width_hold_the_rows_of_a_matrix() -> None:
    bags = bags_of_width(torch.tensor([[3, 1], [0, 0], [5, 2]]), NUM_ROWS)
    assert bags.members.tolist() == [3, 1, 0, 0, 5, 2]
    assert bags.offsets.tolist() == [0, 2, 4, 6]
    assert bags.width == 2


def test_no_bags_at_all_give_no_sums() -> None:
    bags = bags_of([])
    assert bag_sum(random_rows(), bags, bags.transposed()).shape == (0, 5)
    assert cut_into_chunks(bags)[0].tolist() == [0]


def test_the_same_sums_to_the_last_digit_every_time() -> None:
    bags, rows = bags_of(skewed_lists()), random_rows().detach().float()
    assert torch.equal(sum_members(rows, bags), sum_members(rows, bags))


def check_kernels() -> None:
    """The kernels in Triton beside sums in double precision."""
    from nodepiece.encoders import bag_sum_cuda

    generator = torch.Generator().manual_seed(0)
    sizes = [0, 1, 7, 8, 9, 0, 40, 0]
    offsets = torch.tensor([0, *sizes]).cumsum(0).int()
    members = torch.randint(6, (sum(sizes),), generator=generator, dtype=torch.int32)
    for dim in (1, 5, 40, 600):
        rows = torch.randn(6, dim, generator=generator)
        parts = torch.split(rows[members.long()].double(), sizes)
        expected = torch.stack([part.sum(dim=0) for part in parts]).float()
        torch.testing.assert_close(bag_sum_cuda.sum_rows(rows, members, offsets), expected)
        torch.testing.assert_close(bag_sum_cuda.sum_runs(rows[members.long()], offsets), expected)
    assert bag_sum_cuda.sum_rows(rows, members[:0], offsets[:1]).shape == (0, 600)


@pytest.mark.skipif(not HAS_TRITON, reason="Triton comes with PyTorch for CUDA")
def test_the_kernels_interpreted_compute_what_they_stand_for() -> None:
    check_interpreted("tests.encoders.test_bag_sum")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("dim", [1, 5, 200, 400, 1000])
def test_sums_on_a_gpu_are_those_of_the_dense_matrix(dtype: torch.dtype, dim: int) -> None:
    lists, dense = skewed_lists(), counts_of(skewed_lists())
    bags = bags_of(lists)
    on_gpu = Bags(bags.members.cuda(), bags.offsets.cuda(), NUM_ROWS)
    rows = random_rows(dim=dim).detach().to("cuda", dtype).requires_grad_()

    sums = bag_sum(rows, on_gpu, on_gpu.transposed())
    sums.backward(torch.ones_like(sums))  # type: ignore[no-untyped-call]

    tolerance = {torch.bfloat16: 2e-2, torch.float32: 1e-4, torch.float64: 1e-9}[dtype]
    of_sizes = dense.sum(dim=1, keepdim=True).clamp_min(1)  # errors grow with the bags
    expected = (dense @ rows.detach().double().cpu()) / of_sizes
    torch.testing.assert_close(
        sums.detach().double().cpu() / of_sizes, expected, rtol=tolerance, atol=tolerance
    )
    uses = dense.sum(dim=0)[:, None].expand(-1, dim)
    assert rows.grad is not None
    torch.testing.assert_close(rows.grad.double().cpu(), uses, rtol=tolerance, atol=tolerance)


@pytest.mark.gpu
def test_sums_fit_into_a_cuda_graph_and_see_bags_copied_into_place() -> None:
    generator = torch.Generator("cuda").manual_seed(0)
    bags, fresh = (
        bags_of_width(torch.randint(6, (50, 200), generator=generator, device="cuda"), 6)
        for _ in range(2)
    )
    transposed = bags.transposed()
    rows = random_rows().detach().float().cuda().requires_grad_()

    def gradient() -> Tensor:
        return torch.autograd.grad(bag_sum(rows, bags, transposed).square().sum(), rows)[0]

    gradient()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = gradient()
    bags.copy_from(fresh)
    transposed.copy_from(fresh.transposed())
    graph.replay()
    torch.testing.assert_close(captured, gradient())

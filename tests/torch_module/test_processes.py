"""Two processes that train together learn what one process with all rows learns."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

from latentmetric.torch import LatentVoteLoss

N_PROCESSES, N_STEPS, N_ROWS = 2, 4, 24

if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("PyTorch was built without gloo", allow_module_level=True)


def batches():
    generator = torch.Generator().manual_seed(1)
    for _ in range(N_STEPS):
        rows = torch.randn(N_ROWS, 5, generator=generator).double()
        yield rows, torch.randint(0, 3, (N_ROWS,), generator=generator)


def parts():
    torch.manual_seed(2)
    net = torch.nn.Linear(5, 4).double()
    return net, LatentVoteLoss(3, 4, 2).double()


def train(net, loss, part):
    """A few steps with a part of each batch."""
    plain = getattr(loss, "module", loss)
    groups = [{"params": net.parameters()}, *plain.param_groups(lr=1e-2)]
    optimizer = torch.optim.SGD(groups, lr=1e-2)
    for rows, labels in batches():
        optimizer.zero_grad()
        loss(net(rows[part]), labels[part]).backward()
        optimizer.step()
    return copy.deepcopy((getattr(net, "module", net).state_dict(), plain.state_dict()))


def train_part(rank):
    net, loss = map(torch.nn.parallel.DistributedDataParallel, parts())
    return train(net, loss, slice(rank * N_ROWS // 2, (rank + 1) * N_ROWS // 2))


def one_of_two(rank, folder):
    torch.set_num_threads(1)
    store = torch.distributed.FileStore(f"{folder}/store", N_PROCESSES)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=N_PROCESSES)
    torch.save(train_part(rank), f"{folder}/{rank}.pt")
    # gloo aborts if its peer closes the connection during a call, even a barrier: so the processes
    # wait for each other by the store, and close when no call is under way.
    store.set(f"done_{rank}", "")
    store.wait([f"done_{other}" for other in range(N_PROCESSES)])
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(tmp_path):
    torch.multiprocessing.spawn(one_of_two, (str(tmp_path),), nprocs=N_PROCESSES)
    expected = train(*parts(), slice(None))
    for rank in range(N_PROCESSES):
        found = torch.load(tmp_path / f"{rank}.pt")
        for before, now in zip(expected, found, strict=True):
            for name, value in before.items():
                assert torch.allclose(now[name], value, rtol=1e-6, atol=1e-9), (rank, name)

"""A worker computes gradients, and asks a server by RPC to step; ranks are processes of mp.spawn."""

import os
import socket

import torch
import torch.multiprocessing as mp
from torch import nn
from torch.distributed import rpc

NUM_STEPS = 12


class Server:
    """Holds the parameters and their optimizer; never calls the model."""

    def __init__(self):
        """Starts as each worker does."""
        self.model = made_model()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def updated(self, gradients):
        """Steps; returns the new parameters."""
        for parameter, gradient in zip(self.model.parameters(), gradients, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        return [parameter.detach().clone() for parameter in self.model.parameters()]


def made_model():
    """Returns the model, the same in each process."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 8))


def updated(gradients):
    """What the worker calls in the server's process."""
    global server
    if server is None:
        server = Server()
    return server.updated(gradients)


server = None


def work(rank, port):
    """One rank."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    rpc.init_rpc(f"rank{rank}", rank=rank, world_size=2)
    if rank == 1:
        model, losses = made_model(), []
        torch.manual_seed(1)
        for _ in range(NUM_STEPS):
            loss = (model(torch.randn(64, 128)) - 1).square().mean()
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            parameters = rpc.rpc_sync("rank0", updated, args=(list(gradients),))
            with torch.no_grad():
                for parameter, new in zip(model.parameters(), parameters, strict=True):
                    parameter.copy_(new)
            losses.append(loss.item().hex())
        with open("losses.txt", "w") as file:
            file.writelines(f"{loss}\n" for loss in losses)
    rpc.shutdown()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free_port = probe.getsockname()[1]
    mp.spawn(work, (free_port,), nprocs=2)

"""Programs of which every byte must be stock torch's: what they print alone and as a job is equal.

Each is a function of a model and its optimizer, and returns what is to be compared.
"""

from __future__ import annotations

import copy
import hashlib
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import optimizer as optimizers

torch.set_num_threads(1)


class Net(nn.Module):
    """A root of its own class with blocks in it."""

    def __init__(self) -> None:
        """Three blocks, a list among them."""
        super().__init__()
        self.embedding = nn.Linear(8, 16)
        self.layers = nn.ModuleList([nn.Linear(16, 16), nn.Linear(16, 16)])
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, 8) -> (batch, 4)."""
        x = self.embedding(x).relu()
        for layer in self.layers:
            x = layer(x).tanh()
        return self.head(x)


def batch(number: int) -> torch.Tensor:
    """The same in every process."""
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(number))


def train(call: Callable[..., Any], optimizer: torch.optim.Optimizer, steps: int = 3) -> list[str]:
    """Returns the losses' bits."""
    losses = []
    for number in range(steps):
        optimizer.zero_grad()
        loss = call(batch(number)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses


def _saved(what: Any) -> str:
    file = io.BytesIO()
    torch.save(what, file)
    return hashlib.sha256(file.getvalue()).hexdigest()


def files(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """What is saved of a model that has trained, whole and in parts."""
    train(model, optimizer)
    twin = copy.deepcopy(model)
    return [
        _saved(model),
        _saved(optimizer),
        _saved(twin),
        _saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()}),
        _saved(pickle.loads(pickle.dumps(model))),
        _saved(pickle.loads(pickle.dumps(optimizer))),
        train(copy.deepcopy(model), torch.optim.Adam(model.parameters())),
    ]


def attributes(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """What can be seen of both, and of their classes."""
    train(model, optimizer)
    blocks = [
        repr({k: v for k, v in vars(each).items() if k[0] == "_"}) for each in model.modules()
    ]
    names = [sorted(vars(optimizer)), dir(model), dir(optimizer)]
    hooks = [optimizer._optimizer_step_pre_hooks, optimizers._global_optimizer_pre_hooks]
    return [blocks, names, repr(hooks), type(model).__mro__, optimizer.step.__name__]


def scripted(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """A model that is exported at the end of its training, and scripts that train."""
    losses = train(model, optimizer)
    script = torch.jit.script(model)
    other = torch.optim.Adam(script.parameters())
    traced = torch.jit.trace(model, batch(0))
    return [losses, train(script, other), script.code, traced.code, train(traced, optimizer)]


def _backend(graphs: list[str]) -> Callable[..., Any]:
    def compile_graph(graph: Any, _inputs: Any) -> Any:
        graphs.append(str(graph.graph))
        return graph.forward

    return compile_graph


def compiled(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """All ways to compile a training program: the same graphs, so the same kernels and bits."""
    graphs: list[str] = []
    backend = _backend(graphs)
    losses = train(torch.compile(model, backend=backend), optimizer)
    sequence = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    sequence.register_forward_hook(lambda *_: None)
    losses += train(
        torch.compile(sequence, backend=backend), torch.optim.SGD(sequence.parameters(), 0.1)
    )
    torch._dynamo.reset()
    model.compile(backend=backend)
    losses += train(model, optimizer)

    @torch.compile(backend=backend)
    def step(x: torch.Tensor) -> torch.Tensor:
        loss = twin(x).square().mean()
        loss.backward()
        other.step()
        other.zero_grad()
        return loss

    twin = Net()
    other = torch.optim.Adam(twin.parameters())
    losses += [step(batch(number)).item().hex() for number in range(3)]
    update = torch.compile(optimizer.step, backend=backend)
    model(batch(1)).mean().backward()
    update()
    return [losses, len(graphs), hashlib.sha256("".join(graphs).encode()).hexdigest()]


def compiled_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """A training step in one compiled function."""
    return _train_compiled(model, optimizer)


class Signs(torch.optim.Optimizer):
    """One of a user's own, which dynamo traces, unlike torch's."""

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Moves by the gradients' signs."""
        for parameter in self.param_groups[0]["params"]:
            parameter.add_(parameter.grad.sign(), alpha=-0.01)


def compiled_own_step(model: nn.Module, _optimizer: torch.optim.Optimizer) -> list[Any]:
    """The same with an optimizer whose step becomes part of the graph."""
    return _train_compiled(model, Signs(model.parameters(), {}))


def _train_compiled(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    graphs: list[str] = []

    @torch.compile(backend=_backend(graphs))
    def step(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    losses = [step(batch(number)).item().hex() for number in range(5)]
    return [losses, len(graphs), hashlib.sha256("".join(graphs).encode()).hexdigest()]


def transformed(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """Other ways to take a model apart or to wrap it."""
    x = batch(0)
    losses = train(model, optimizer)
    exported = torch.export.export(model, (x,))
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    parameters = dict(model.named_parameters())

    def loss_of(values: dict[str, torch.Tensor], sample: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, values, (sample,)).square().mean()

    gradients = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0))(parameters, x)
    torch.nn.utils.parametrizations.weight_norm(model.embedding)
    losses += train(model, torch.optim.SGD(model.parameters(), 0.1))
    return [
        losses,
        str(exported.graph),
        str(torch.fx.symbolic_trace(Net()).graph),
        hashlib.sha256(gradients["head.weight"].detach().numpy().tobytes()).hexdigest(),
        _saved(average.state_dict()),
    ]


class Outer(torch.optim.SGD):
    """A step around the step of its base."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """SGD's, twice."""
        super().step(closure)
        return super().step()


def odd(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """Compiled functions in compiled functions, and those that raise; derived optimizers."""
    graphs: list[str] = []
    backend = _backend(graphs)

    @torch.compile(backend=backend)
    def loss_of(x: torch.Tensor) -> torch.Tensor:
        return model(x).square().mean()

    @torch.compile(backend=backend)
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return 2 * loss_of(x)

    losses = []
    outer = Outer(model.parameters(), 0.01)
    for number in range(3):
        for call, each in ((loss_of, optimizer), (scaled, outer)):
            loss = call(batch(number))
            loss.backward()
            each.step()
            each.zero_grad()
            losses.append(loss.item().hex())
        try:
            scaled(torch.ones(2, 3))
        except Exception as error:
            losses.append(type(error).__name__)
    return [losses, len(graphs), hashlib.sha256("".join(graphs).encode()).hexdigest()]


def _register_again(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    if "gpushare" in sys.modules:
        import gpushare

        gpushare.register(model, optimizer)


def recompiled(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """Programs whose every recompilation is an error, also when the job is registered again."""
    graphs: list[str] = []
    options: dict[str, Any] = {"backend": _backend(graphs)}
    own = Signs(model.parameters(), {})

    @torch.compile(**options)
    def broken(x: torch.Tensor) -> torch.Tensor:
        doubled = x * 2
        torch._dynamo.graph_break()
        loss = model(doubled).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    @torch.compile(**options)
    def traced(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).mean()
        loss.backward()
        own.step()
        own.zero_grad()
        return loss.detach()

    @torch.compile(**options)
    def gradient(x: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(model(x).mean(), list(model.parameters()))[0]

    def whole(x: torch.Tensor) -> torch.Tensor:
        return model.__call__(x) + 1

    calls: list[Callable[..., Any]] = [
        broken,
        traced,
        gradient,
        torch.compile(model, **options),
        torch.compile(model.__call__, **options),
        torch.compile(whole, fullgraph=True, **options),
    ]
    update = torch.compile(optimizer.step, **options)
    seen: list[str] = []
    with torch._dynamo.config.patch(error_on_recompile=True):
        for _ in range(3):
            for call in calls:
                seen += [call(batch(number)).sum().item().hex() for number in range(3)]
            model(batch(0)).mean().backward()
            update()
            optimizer.zero_grad()
            _register_again(model, optimizer)
    return [seen, len(graphs), hashlib.sha256("".join(graphs).encode()).hexdigest()]


PROGRAMS = {
    each.__name__: each
    for each in (
        files,
        attributes,
        scripted,
        compiled,
        compiled_step,
        compiled_own_step,
        transformed,
        odd,
        recompiled,
    )
}

ITERATIONS = {"attributes": 3, "compiled_step": 5, "compiled_own_step": 5}


def main() -> None:
    """stock_programs.py NAME [shared]."""
    is_shared = sys.argv[2:] == ["shared"]
    if is_shared:
        import gpushare
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    job = gpushare.register(model, optimizer) if is_shared else None
    for line in PROGRAMS[sys.argv[1]](model, optimizer):
        print(line)
    if job is not None:
        assert job.is_managed
        print(job.stats().iterations, file=sys.stderr)


if __name__ == "__main__":
    main()

"""A zoo of training loops, each a script's worth: `python -m tests.e2e.zoo NAME [--shared]`.

Each loop trains a few steps on its own data and returns what it computed; the digest of that
must not depend on gpushare. With --shared the loop's root module is registered.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.e2e.zoo_kit import STEPS, Zoo

Loop = Callable[[Zoo], list[Any]]


def plain(zoo: Zoo) -> list[Any]:
    """The usual loop."""
    model = zoo.mlp()
    optimizer = zoo.torch.optim.Adam(model.parameters())
    zoo.register(model, optimizer)
    for x, y in zoo.batches():
        optimizer.zero_grad()
        zoo.loss(model, x, y).backward()
        optimizer.step()
    return list(model.parameters())


def accumulation(zoo: Zoo) -> list[Any]:
    """An optimizer step after each three backward passes."""
    model = zoo.mlp()
    optimizer = zoo.torch.optim.SGD(model.parameters(), lr=0.1)
    zoo.register(model, optimizer)
    for number, (x, y) in enumerate(zoo.batches(3 * STEPS)):
        (zoo.loss(model, x, y) / 3).backward()
        if number % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    return list(model.parameters())


def several_optimizers(zoo: Zoo) -> list[Any]:
    """Two optimizers over halves of one model, stepped one after the other."""
    model = zoo.mlp()
    first = zoo.torch.optim.SGD(model[0].parameters(), lr=0.1)
    second = zoo.torch.optim.Adam(model[3].parameters())
    zoo.register(model)
    for x, y in zoo.batches():
        first.zero_grad()
        second.zero_grad()
        zoo.loss(model, x, y).backward()
        first.step()
        second.step()
    return list(model.parameters())


def skipped_scaler_steps(zoo: Zoo) -> list[Any]:
    """A GradScaler whose third step meets an infinity and is skipped."""
    model = zoo.mlp()
    optimizer = zoo.torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = zoo.torch.amp.GradScaler("cpu", init_scale=4.0)
    zoo.register(model, optimizer)
    for number, (x, y) in enumerate(zoo.batches()):
        optimizer.zero_grad()
        scaler.scale(zoo.loss(model, x, y)).backward()
        if number % 3 == 2:
            next(model.parameters()).grad[0, 0] = float("inf")
        scaler.step(optimizer)
        scaler.update()
    return list(model.parameters())


def evaluation(zoo: Zoo) -> list[Any]:
    """Training with a validation loop after each fourth step."""
    model = zoo.mlp()
    optimizer = zoo.torch.optim.Adam(model.parameters())
    zoo.register(model, optimizer)
    seen = []
    for number, (x, y) in enumerate(zoo.batches()):
        model.train()
        optimizer.zero_grad()
        zoo.loss(model, x, y).backward()
        optimizer.step()
        if number % 4 == 3:
            model.eval()
            with zoo.torch.no_grad():
                seen += [zoo.loss(model, x, y) for x, y in zoo.batches(3)]
    return [*seen, *model.parameters()]


def only_evaluation(zoo: Zoo) -> list[Any]:
    """Inference: no optimizer at all."""
    model = zoo.register(zoo.mlp().eval())
    with zoo.torch.inference_mode():
        return [model(x) for x, _ in zoo.batches()]


def no_optimizer(zoo: Zoo) -> list[Any]:
    """Gradient descent by hand."""
    model = zoo.register(zoo.mlp())
    for x, y in zoo.batches():
        model.zero_grad()
        zoo.loss(model, x, y).backward()
        with zoo.torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(0.1 * parameter.grad)
    return list(model.parameters())


def optimizer_in_backward(zoo: Zoo) -> list[Any]:
    """Each parameter has its own optimizer, stepped as soon as its gradient is there."""
    model = zoo.mlp()
    optimizers = {p: zoo.torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def step(parameter: Any) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    zoo.register(model)
    for x, y in zoo.batches():
        zoo.loss(model, x, y).backward()
    return list(model.parameters())


def lbfgs(zoo: Zoo) -> list[Any]:
    """Forward and backward inside the optimizer's step, several times."""
    model = zoo.torch.nn.Linear(64, 8)
    optimizer = zoo.torch.optim.LBFGS(model.parameters(), max_iter=4)
    zoo.register(model, optimizer)
    for x, y in zoo.batches():

        def closure(x: Any = x, y: Any = y) -> Any:
            optimizer.zero_grad()
            loss = zoo.loss(model, x, y)
            loss.backward()
            return loss

        optimizer.step(closure)
    return list(model.parameters())


def gan(zoo: Zoo) -> list[Any]:
    """A generator and a discriminator, a step each; the root holds both."""
    nn = zoo.torch.nn
    both = nn.ModuleDict({"generator": zoo.mlp(), "critic": nn.Linear(8, 1)})
    generator, critic = both["generator"], both["critic"]
    first = zoo.torch.optim.Adam(critic.parameters())
    second = zoo.torch.optim.Adam(generator.parameters())
    zoo.register(generator, second)
    for x, _ in zoo.batches():
        fake = generator(x)
        first.zero_grad()
        (critic(fake.detach()).mean() - critic(zoo.torch.randn(32, 8)).mean()).backward()
        first.step()
        second.zero_grad()
        (-critic(fake).mean()).backward()
        second.step()
    return list(both.parameters())


def caught_exception(zoo: Zoo) -> list[Any]:
    """Every fourth step fails in its forward pass and is skipped by the loop."""
    model = zoo.mlp()
    optimizer = zoo.torch.optim.Adam(model.parameters())
    zoo.register(model, optimizer)
    failures = 0
    for number, (x, y) in enumerate(zoo.batches()):
        optimizer.zero_grad()
        try:
            zoo.loss(model, x[:, :63] if number % 4 == 3 else x, y).backward()
        except RuntimeError:
            failures += 1
            continue
        optimizer.step()
    return [zoo.torch.tensor(failures), *model.parameters()]


def _every_fourth_fails(zoo: Zoo, arm: Callable[[Any], Any], error: type[BaseException]) -> Any:
    """Every fourth step raises where `arm(model)` put a hook, and is skipped by the loop."""
    model = zoo.mlp()
    optimizer = zoo.torch.optim.Adam(model.parameters())
    zoo.register(model, optimizer)
    failures = 0
    for number, (x, y) in enumerate(zoo.batches()):
        optimizer.zero_grad()
        hooks = [arm(model)] if number % 4 == 3 else []
        try:
            zoo.loss(model, x, y).backward()
        except error:
            failures += 1
            continue
        finally:
            for hook in hooks:
                hook.remove()
        optimizer.step()
    assert failures > 0
    return list(model.parameters())


def caught_interrupt(zoo: Zoo) -> list[Any]:
    """Every fourth step gets a Ctrl-C in its forward pass."""

    def interrupt(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    def arm(model: Any) -> Any:
        return model[3].register_forward_pre_hook(interrupt)

    return _every_fourth_fails(zoo, arm, KeyboardInterrupt)


def caught_in_backward(zoo: Zoo) -> list[Any]:
    """Every fourth step fails in its backward pass, half done."""

    def fail(_gradient: Any) -> None:
        raise RuntimeError("not this one")

    return _every_fourth_fails(zoo, lambda model: model[0].weight.register_hook(fail), RuntimeError)


def explicit_iterations(zoo: Zoo) -> list[Any]:
    """`with job.iteration()` around each step, one of which raises."""
    model = zoo.mlp()
    optimizer = zoo.torch.optim.Adam(model.parameters())
    zoo.register(model, optimizer)

    def step(x: Any, y: Any, *, is_bad: bool) -> None:
        optimizer.zero_grad()
        zoo.loss(model, x, y).backward()
        if is_bad:
            raise KeyboardInterrupt
        optimizer.step()

    for number, (x, y) in enumerate(zoo.batches()):
        try:
            if zoo.job is None:
                step(x, y, is_bad=number == 5)
            else:
                with zoo.job.iteration():
                    step(x, y, is_bad=number == 5)
        except KeyboardInterrupt:
            continue
    return list(model.parameters())


def gap_work(zoo: Zoo) -> list[Any]:
    """An averaged copy of the parameters, updated between iterations."""
    model = zoo.mlp()
    optimizer = zoo.torch.optim.Adam(model.parameters())
    zoo.register(model, optimizer)
    average = [p.detach().clone() for p in model.parameters()]
    for x, y in zoo.batches():
        optimizer.zero_grad()
        zoo.loss(model, x, y).backward()
        optimizer.step()
        for kept, parameter in zip(average, model.parameters(), strict=True):
            kept.lerp_(parameter.detach(), 0.1)
    return [*average, *model.parameters()]


def data_loader(zoo: Zoo) -> list[Any]:
    """Two forked workers make the batches; the dataset's tensor is older than they are."""
    data = zoo.torch.utils.data
    inputs, classes = zoo.torch.randn(96, 64), zoo.torch.randint(8, (96,))
    model = zoo.mlp()
    optimizer = zoo.torch.optim.Adam(model.parameters())
    zoo.register(model, optimizer)
    for _ in range(2):
        loader = data.DataLoader(
            data.TensorDataset(inputs, classes),
            batch_size=16,
            num_workers=2,
            multiprocessing_context="fork",
        )
        for x, y in loader:
            optimizer.zero_grad()
            zoo.loss(model, x, y).backward()
            optimizer.step()
    return [inputs, classes, *model.parameters()]


def state_of_optimizers(zoo: Zoo) -> list[Any]:
    """Two optimizers whose state is read, written, saved and exchanged in the iteration.

    State of several MiB: it comes back after the parameters do.
    """
    nn, torch = zoo.torch.nn, zoo.torch
    model = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 256), nn.Linear(256, 8))
    first = torch.optim.Adam(model[0].parameters())
    second = torch.optim.SGD([*model[2].parameters(), *model[3].parameters()], 0.1, momentum=0.9)
    zoo.register(model)
    seen: list[Any] = []
    for number, (x, y) in enumerate(zoo.batches(4 * STEPS)):
        loss = zoo.loss(model, x, y)
        states = [*first.state.values(), *second.state.values()]
        seen += [value.sum() for state in states for value in state.values()]
        loss.backward()
        if number % 4 == 1:
            for optimizer in (first, second):
                optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        if number % 4 == 2:
            second.state[model[2].weight]["momentum_buffer"].mul_(0.5)
        first.step()
        first.zero_grad()
        second.step()
        second.zero_grad()
        seen.append(first.state[model[0].weight]["exp_avg"].sum())
    return [*seen, *model.parameters()]


LOOPS: dict[str, Loop] = {
    loop.__name__: loop
    for loop in (
        plain,
        accumulation,
        several_optimizers,
        skipped_scaler_steps,
        evaluation,
        only_evaluation,
        no_optimizer,
        optimizer_in_backward,
        lbfgs,
        gan,
        caught_exception,
        caught_interrupt,
        caught_in_backward,
        explicit_iterations,
        gap_work,
        data_loader,
        state_of_optimizers,
    )
}


def main() -> None:
    """Runs one loop; prints digest and stats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=LOOPS)
    parser.add_argument("--shared", action="store_true")
    arguments = parser.parse_args()
    zoo = Zoo(is_shared=arguments.shared)
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    started = time.monotonic()
    digest = hashlib.sha256()
    for tensor in LOOPS[arguments.name](zoo):
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    stats = {}
    if zoo.job is not None:
        from gpushare import _native

        stats = dict(_native.load().job_stats())
        zoo.job.close()
    ended = time.monotonic()
    said = {"done": True, "digest": digest.hexdigest(), "stats": stats}
    print(json.dumps({**said, "started": started, "ended": ended}))


if __name__ == "__main__":
    main()

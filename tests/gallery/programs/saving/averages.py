"""An exponential moving average and SWA beside the model; both are saved."""

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 768), nn.BatchNorm1d(768), nn.ReLU(), nn.Linear(768, 8))
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
swa = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = SWALR(optimizer, swa_lr=0.02)
for step in range(24):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 64)).square().mean()
    loss.backward()
    optimizer.step()
    ema.update_parameters(model)
    if step >= 12:
        swa.update_parameters(model)
        schedule.step()
    print(loss.item().hex())
update_bn([torch.randn(32, 64) for _ in range(4)], swa)
torch.save(ema.state_dict(), "ema.pt")
torch.save(swa.state_dict(), "swa.pt")

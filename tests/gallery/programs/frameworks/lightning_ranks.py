"""Lightning's DDP with two ranks, of which it starts the second. Needs: lightning."""

import logging
import os
import socket
import warnings

warnings.filterwarnings("ignore")
logging.getLogger("lightning").setLevel(logging.ERROR)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if "MASTER_PORT" not in os.environ:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(free.getsockname()[1])
torch.set_num_threads(1)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 4))

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        if self.global_rank == 0:
            print(loss.item().hex(), flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


L.seed_everything(0, verbose=False)
data = TensorDataset(torch.randn(256, 256), torch.randint(4, (256,)))
net = Net()
trainer = L.Trainer(
    max_epochs=2,
    accelerator="cpu",
    devices=2,
    strategy="ddp",
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    enable_checkpointing=False,
)
trainer.fit(net, DataLoader(data, batch_size=32))
if trainer.is_global_zero:
    torch.save(net.state_dict(), "weights.pt")
    print(sum(p.sum().item() for p in net.parameters()).hex())

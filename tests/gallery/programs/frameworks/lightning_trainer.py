"""Lightning: fit, checkpoint, resume. Needs: lightning."""

import logging
import os
import warnings

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
os.environ["TQDM_DISABLE"] = "1"

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 4))

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        print(loss.item().hex())
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("loss", nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


def trainer(epochs):
    return L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        num_sanity_val_steps=1,
    )


L.seed_everything(0)
data = TensorDataset(torch.randn(256, 64), torch.randint(4, (256,)))
loader = DataLoader(data, batch_size=32)
net = Net()
first = trainer(2)
first.fit(net, loader, loader)
first.save_checkpoint("last.ckpt", weights_only=False)
torch.save(torch.load("last.ckpt", weights_only=False)["state_dict"], "weights.pt")
os.remove("last.ckpt.tmp") if os.path.exists("last.ckpt.tmp") else None
net = Net()
trainer(3).fit(net, loader, loader, ckpt_path="last.ckpt")
os.remove("last.ckpt")
print(sum(p.sum().item() for p in net.parameters()).hex())

"""Lightning with the callback: an autoencoder of two modules. Needs: lightning."""

import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from gpushare.integrations.lightning import GpushareCallback

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Autoencoder(L.LightningModule):
    """Its steps call the encoder, then the decoder; the module itself is never called."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(256, 8192), nn.ReLU(), nn.Linear(8192, 32))
        self.decoder = nn.Sequential(nn.Linear(32, 8192), nn.ReLU(), nn.Linear(8192, 256))

    def training_step(self, batch, _index):
        (x,) = batch
        loss = nn.functional.mse_loss(self.decoder(self.encoder(x)), x)
        print(loss.item().hex())
        return loss

    def validation_step(self, batch, _index):
        (x,) = batch
        self.log("loss", nn.functional.mse_loss(self.decoder(self.encoder(x)), x))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


L.seed_everything(0, verbose=False)
loader = DataLoader(TensorDataset(torch.randn(512, 256)), batch_size=64)
model = Autoencoder()
trainer = L.Trainer(
    max_epochs=3,
    accumulate_grad_batches=2,
    accelerator="cpu",
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    enable_checkpointing=False,
    callbacks=[GpushareCallback(priority="opportunistic")],
)
trainer.fit(model, loader, loader)
print(trainer.callback_metrics["loss"].item().hex())
trainer.validate(model, loader, verbose=False)

"""The Trainer of transformers with the callback. Needs: transformers, accelerate."""

import os

os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1", TQDM_DISABLE="1")

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)

from gpushare.integrations.transformers import GpushareCallback

set_seed(0)
config = BertConfig(
    vocab_size=200,
    hidden_size=384,
    num_hidden_layers=2,
    num_attention_heads=6,
    intermediate_size=1536,
)
data = [
    {"input_ids": torch.randint(200, (64,)), "labels": torch.tensor(number % 2)}
    for number in range(128)
]
arguments = TrainingArguments(
    output_dir="out",
    max_steps=12,
    per_device_train_batch_size=8,
    gradient_accumulation_steps=2,
    save_strategy="no",
    report_to=[],
    logging_steps=4,
    disable_tqdm=True,
    use_cpu=True,
    seed=0,
    eval_strategy="steps",
    eval_steps=6,
)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=arguments,
    train_dataset=data,
    eval_dataset=data[:32],
    callbacks=[GpushareCallback(log_figures=True)],
)
trainer.remove_callback(PrinterCallback)
trainer.train()
for entry in trainer.state.log_history:
    print({key: entry[key] for key in ("step", "loss", "eval_loss", "grad_norm") if key in entry})

"""The Trainer of transformers, with a small BERT of its own. Needs: transformers, accelerate."""

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

set_seed(0)
config = BertConfig(
    vocab_size=200,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=128,
)
model = BertForSequenceClassification(config)
data = [
    {"input_ids": torch.randint(200, (16,)), "labels": torch.tensor(number % 2)}
    for number in range(96)
]
arguments = TrainingArguments(
    output_dir="out",
    max_steps=18,
    per_device_train_batch_size=8,
    save_strategy="no",
    report_to=[],
    logging_steps=6,
    disable_tqdm=True,
    use_cpu=True,
    seed=0,
    eval_strategy="steps",
    eval_steps=9,
)
trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:24])
trainer.remove_callback(PrinterCallback)
trainer.train()
for entry in trainer.state.log_history:
    print({k: v for k, v in entry.items() if k in ("loss", "eval_loss", "step", "grad_norm")})
torch.save(model.state_dict(), "weights.pt")

"""A notebook that nbclient runs: its kernel trains. Needs: nbclient, ipykernel."""

import nbformat
from nbclient import NotebookClient

CELLS = [
    "import torch\nfrom torch import nn\n_ = torch.manual_seed(0)",
    "model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))",
    "optimizer = torch.optim.Adam(model.parameters())\nmodel(torch.ones(2, 64))",
    "for _ in range(10):\n"
    "    optimizer.zero_grad()\n"
    "    loss = model(torch.randn(32, 64)).square().mean()\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
    "    print(loss.item().hex())",
    "with torch.no_grad():\n    print(model(torch.ones(1, 64)).item().hex())",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
for cell in notebook.cells:
    for output in cell.outputs:
        print(output.get("text", output.get("data", {}).get("text/plain")))

"""skorch in scikit-learn's grid search: nothing to add. Needs: skorch, sklearn.

gpushare run -- python examples/integrations/skorch_search.py
"""

import numpy
import torch
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetRegressor
from torch import nn


class Net(nn.Module):
    """A width to search for."""

    def __init__(self, width=512):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(128, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)


torch.manual_seed(0)
x = numpy.random.default_rng(0).standard_normal((512, 128), dtype="float32")
y = x[:, :1] * x[:, 1:2]
net = NeuralNetRegressor(
    Net,
    max_epochs=3,
    optimizer=torch.optim.Adam,
    verbose=0,
    train_split=None,
    iterator_train__shuffle=False,
)
search = GridSearchCV(net, {"module__width": [16384, 32768]}, cv=2, scoring="r2")
search.fit(x, y)
print(search.best_params_, search.cv_results_["mean_test_score"].tolist())

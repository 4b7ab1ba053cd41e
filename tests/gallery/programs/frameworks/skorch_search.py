"""skorch in scikit-learn's grid search. Needs: skorch, sklearn."""

import numpy
import torch
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier
from torch import nn

torch.manual_seed(0)
numpy.random.seed(0)


class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x):
        return self.net(x)


x = numpy.random.randn(200, 20).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("int64")
net = NeuralNetClassifier(
    Net,
    max_epochs=3,
    lr=0.1,
    verbose=0,
    train_split=None,
    criterion=nn.CrossEntropyLoss,
    iterator_train__shuffle=False,
)
search = GridSearchCV(
    net, {"module__width": [64, 256], "lr": [0.05, 0.2]}, cv=2, scoring="accuracy"
)
search.fit(x, y)
print(search.best_params_, search.best_score_.hex())
print(search.cv_results_["mean_test_score"].tolist())

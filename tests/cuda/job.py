"""A job of the tests on the fake CUDA device: `benchmarks.job`, whose operators run there."""

from benchmarks import job
from tests.cuda import fake

if __name__ == "__main__":
    fake.install_ops()
    job.main()

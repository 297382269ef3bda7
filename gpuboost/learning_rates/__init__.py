"""Learning rates that change from round to round."""

from gpuboost.learning_rates.averaging import Averaging
from gpuboost.learning_rates.cosine import CosineDecay
from gpuboost.learning_rates.exponential import ExponentialDecay
from gpuboost.learning_rates.rates import Rates, listed, rates_of

__all__ = ["Averaging", "CosineDecay", "ExponentialDecay", "Rates", "listed", "rates_of"]

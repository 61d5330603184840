"""Predictions of a sparse model over many classes."""

import sl1max

from .made_data import made_indicator, made_text

N_CLASSES = 90


class Predict:
    params = ("exclusive", "independent")
    param_names = ("classes",)
    timeout = 300

    def setup_cache(self):
        X, y = made_text(2000, 5000, N_CLASSES)
        return {
            "exclusive": (sl1max.fit(X, y, distribution="class-conditional", tol=1e-2), X),
            "independent": (sl1max.fit(X, made_indicator(y, N_CLASSES), tol=1e-2), X),
        }

    def setup(self, models, classes):
        self.model, self.X = models[classes]

    def time_predict(self, models, classes):
        self.model.predict(self.X)

    def time_proba(self, models, classes):
        self.model.predict_proba(self.X)

    def peakmem_predict(self, models, classes):
        self.model.predict(self.X)


Predict.setup_cache.timeout = 300

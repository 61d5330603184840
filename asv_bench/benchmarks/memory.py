"""Peak memory against the number of classes; it must not grow as classes x features."""

import sl1max

from .made_data import made_indicator, made_text


class Classes:
    params = (["conditional", "class-conditional"], [10, 100, 500])
    param_names = ("distribution", "n_classes")
    timeout = 120

    def setup(self, distribution, n_classes):
        self.X, y = made_text(2000, 5000, n_classes)
        self.Y = made_indicator(y, n_classes)

    def peakmem_fit(self, distribution, n_classes):
        sl1max.fit(self.X, self.Y, distribution=distribution, label_mode="independent", tol=1e-1, n_jobs=1)

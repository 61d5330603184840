"""Interface to all solvers.

A solver is made once (its import happens there) and has

    handles(problem)     whether it can minimise this objective
    knobs                settings from loose to tight, tried in this order
    fit(problem, knob)   timed: from the caller's matrix to a fitted model, with conversions
    weights(model)       not timed: coef (n_outputs, n_features) and intercept (n_outputs,) in float64

Tolerances run in half decades for everybody, iteration budgets in factors of about 1.5.
"""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.io import mmwrite


def tolerances(loosest, tightest, step=0.5):
    """10**loosest ... 10**tightest, by default in half decades."""
    return tuple(float(f"{10.0**power:.0e}") for power in np.arange(loosest, tightest - step / 2, -step))


def budgets(fewest, most, factor=1.5):
    """Numbers of iterations that grow by the factor."""
    counts = fewest * factor ** np.arange(int(np.log(most / fewest) / np.log(factor)) + 1)
    return tuple(dict.fromkeys(round(count) for count in counts))


def _signs(problem):
    return 2.0 * problem.y - 1.0


class Solver:
    """Common interface; a subclass declares its limits."""

    name = ""
    exclusive = False  # solves the multinomial problem
    independent = True  # solves the binary problem
    intercept = True  # can fit an unpenalised intercept
    plain = True  # can do without an intercept
    elastic = False  # takes an L2 penalty too
    max_features = None
    is_reference = False  # reaches any accuracy in reasonable time
    wakes_slowly = False  # left out of the quick comparison
    seconds = None  # set by a solver that measures its own time

    def handles(self, problem):
        fits_kind = self.exclusive if problem.exclusive else self.independent
        fits_round = self.intercept if problem.intercept else self.plain
        fits_penalty = self.elastic or problem.l1_ratio == 1
        return fits_kind and fits_round and fits_penalty and problem.X.shape[1] <= (self.max_features or np.inf)

    def version(self):
        raise NotImplementedError

    def fit(self, problem, knob):
        raise NotImplementedError

    def weights(self, model):
        raise NotImplementedError


class Sl1max(Solver):
    name = "sl1max"
    is_reference = True
    exclusive = True
    elastic = True
    knobs = tolerances(0, -10)

    def __init__(self):
        import sl1max

        self.module = sl1max

    def version(self):
        return self.module.__version__

    def fit(self, problem, knob):
        label_mode = "exclusive" if problem.exclusive else "independent"
        y = problem.y if problem.exclusive else problem.y[:, None]
        return self.module.fit(
            problem.X,
            y,
            distribution="conditional",
            label_mode=label_mode,
            beta=problem.l1_ratio / problem.C,
            l2=(1 - problem.l1_ratio) / problem.C,
            beta_rule="count",
            fit_intercept=problem.intercept,
            tol=knob,
            n_jobs=1,
        )

    def weights(self, model):
        return model.weights.toarray(), model.intercept


class SklearnLiblinear(Solver):
    """LIBLINEAR -s 6 in scikit-learn, without an intercept, since it would be penalised."""

    name = "sklearn-liblinear"
    is_reference = True
    intercept = False
    knobs = tolerances(-1, -9)

    def __init__(self):
        import sklearn
        from sklearn.linear_model import LogisticRegression

        self.module, self.estimator = sklearn, LogisticRegression

    def version(self):
        return self.module.__version__

    def fit(self, problem, knob):
        return self.estimator(
            l1_ratio=1.0,
            C=problem.C,
            solver="liblinear",
            tol=knob,
            max_iter=10_000,
            fit_intercept=False,
            random_state=0,
        ).fit(problem.X, problem.y)

    def weights(self, model):
        return model.coef_, np.zeros(1)


class SklearnSaga(SklearnLiblinear):
    """The setting is the number of passes, since its tolerance is not related to the objective."""

    name = "sklearn-saga"
    is_reference = False
    exclusive = True
    intercept = True
    elastic = True
    knobs = budgets(4, 100_000, 2)
    max_binary_features = 1000

    def handles(self, problem):
        small = problem.exclusive or problem.l1_ratio < 1 or problem.X.shape[1] <= self.max_binary_features
        return super().handles(problem) and small

    def fit(self, problem, knob):
        return self.estimator(
            l1_ratio=problem.l1_ratio,
            C=problem.C,
            solver="saga",
            tol=0.0,
            max_iter=knob,
            fit_intercept=problem.intercept,
            random_state=0,
        ).fit(problem.X, problem.y)

    def weights(self, model):
        return model.coef_, np.atleast_1d(model.intercept_)


class Liblinear(Solver):
    """LIBLINEAR's own package; -R leaves the bias unpenalised."""

    name = "liblinear"
    is_reference = True
    knobs = tolerances(-1, -9)

    def __init__(self):
        from liblinear import liblinearutil

        self.train = liblinearutil.train

    def version(self):
        from importlib.metadata import version

        return version("liblinear-official")

    def fit(self, problem, knob):
        bias = "-B 1 -R" if problem.intercept else ""
        options = f"-s 6 -c {problem.C!r} -e {knob!r} -q {bias}"
        return self.train(_signs(problem), sp.csr_matrix(problem.X), options)

    def weights(self, model):
        coef, bias = model.get_decfun()
        sign = 1.0 if model.get_labels()[0] == 1 else -1.0
        return sign * np.array(coef)[None, :], np.array([sign * bias])


class Celer(Solver):
    name = "celer"
    intercept = False
    knobs = tolerances(0, -9)

    def __init__(self):
        import celer

        self.module = celer

    def version(self):
        return self.module.__version__

    def fit(self, problem, knob):
        return self.module.LogisticRegression(C=problem.C, tol=knob, max_iter=100).fit(problem.X, problem.y)

    def weights(self, model):
        return np.atleast_2d(model.coef_), np.zeros(1)


class Skglm(Solver):
    name = "skglm"
    wakes_slowly = True
    knobs = tolerances(-1.5, -9)

    def __init__(self):
        import skglm

        self.module = skglm

    def version(self):
        return self.module.__version__

    def fit(self, problem, knob):
        return self.module.SparseLogisticRegression(
            alpha=problem.beta, tol=knob, max_iter=200, fit_intercept=problem.intercept
        ).fit(problem.X, problem.y)

    def weights(self, model):
        return np.atleast_2d(model.coef_), np.atleast_1d(np.asarray(model.intercept_, dtype=float))[:1]


class Gblinear(Solver):
    """XGBoost's linear booster (shotgun, one thread); single precision, always an intercept."""

    name = "xgb-gblinear"
    exclusive = True
    plain = False
    knobs = budgets(4, 5000)

    def __init__(self):
        import xgboost

        self.module = xgboost

    def version(self):
        return self.module.__version__

    def fit(self, problem, knob):
        multi = {"objective": "multi:softprob", "num_class": problem.n_classes}
        options = {
            "booster": "gblinear",
            "updater": "shotgun",
            "feature_selector": "shuffle",
            "reg_lambda": 0.0,
            "reg_alpha": problem.beta,
            "learning_rate": 1.0,
            "tolerance": 0.0,
            "nthread": 1,
            "seed": 0,
            "base_score": 0.5,
            **(multi if problem.exclusive else {"objective": "binary:logistic"}),
        }
        data = self.module.DMatrix(problem.X, label=problem.y, nthread=1)
        return self.module.train(options, data, knob)

    def weights(self, model):
        saved = json.loads(bytes(model.save_raw("json")))["learner"]
        n_outputs = max(1, int(saved["learner_model_param"]["num_class"]))
        table = np.array(saved["gradient_booster"]["model"]["weights"], dtype=float).reshape(-1, n_outputs)
        return table[:-1].T, table[-1]


class Glum(Solver):
    """glum computes the Hessian of all features: only for problems with few features."""

    name = "glum"
    max_features = 2000
    knobs = tolerances(-1, -9)

    def __init__(self):
        import glum

        self.module = glum

    def version(self):
        return self.module.__version__

    def fit(self, problem, knob):
        return self.module.GeneralizedLinearRegressor(
            family="binomial",
            l1_ratio=1.0,
            alpha=problem.beta,
            fit_intercept=problem.intercept,
            solver="irls-cd",
            gradient_tol=knob,
            max_iter=1000,
        ).fit(problem.X, problem.y.astype(float))

    def weights(self, model):
        return np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)


class Adelie(Solver):
    name = "adelie"
    knobs = tolerances(-2, -11)

    def __init__(self):
        import adelie

        self.module = adelie

    def version(self):
        return self.module.__version__

    def fit(self, problem, knob):
        matrix = self.module.matrix
        if sp.issparse(problem.X):
            X = matrix.sparse(sp.csc_matrix(problem.X), method="naive")
        else:
            X = matrix.dense(np.asfortranarray(problem.X), method="naive")
        return self.module.grpnet(
            X,
            self.module.glm.binomial(problem.y.astype(float)),
            lmda_path=[problem.beta],
            tol=knob,
            irls_tol=knob,
            intercept=problem.intercept,
            early_exit=False,
            progress_bar=False,
        )

    def weights(self, model):
        return model.betas[-1].toarray(), np.atleast_1d(model.intercepts[-1])


class Glmnet(Solver):
    """R's glmnet, multinomial (ungrouped): a path down to the wanted penalty.

    The clock is R's own, around the fit alone: neither R's start nor the way of the matrix to R counts.
    """

    name = "glmnet"
    wakes_slowly = True
    exclusive = True
    independent = False
    elastic = True
    knobs = tolerances(-4, -12, 1)
    n_path = 30

    def __init__(self):
        self.rscript = shutil.which("Rscript")
        if self.rscript is None:
            raise ImportError("Rscript is not on the path")
        found = self._run("-e", "cat(as.character(packageVersion('glmnet')))")
        if found.returncode:
            raise ImportError("R has no package glmnet")
        self._version = found.stdout.strip()

    def _run(self, *args):
        return subprocess.run([self.rscript, *args], capture_output=True, text=True, check=False)

    def version(self):
        return self._version

    def fit(self, problem, knob):
        with tempfile.TemporaryDirectory() as folder:
            at = Path(folder)
            mmwrite(at / "x.mtx", sp.coo_matrix(problem.X))
            np.savetxt(at / "y.txt", problem.y, fmt="%d")
            (at / "options.csv").write_text(
                f"penalty,alpha,thresh,n_path,intercept\n{problem.beta + problem.l2!r},{problem.l1_ratio!r},{knob!r},"
                f"{self.n_path},{int(problem.intercept)}\n"
            )
            done = self._run(str(Path(__file__).with_name("glmnet.R")), folder)
            if done.returncode:
                raise RuntimeError(f"glmnet: {done.stderr.strip()}")
            self.seconds, reached = np.loadtxt(at / "seconds.txt")
            if abs(reached - 1.0) > 1e-9:
                raise RuntimeError(f"glmnet stopped its path at {reached:.3g} times the wanted penalty")
            return np.loadtxt(at / "coef.txt", ndmin=2), np.loadtxt(at / "intercept.txt", ndmin=1)

    def weights(self, model):
        return model


SOLVERS = (Sl1max, SklearnLiblinear, Liblinear, Celer, Skglm, Gblinear, Glum, Adelie, SklearnSaga, Glmnet)


def available_solvers(pattern="", quick=False):
    """The solvers that can be imported, and {name: reason} for those that are left out."""
    ready, missing = [], {}
    for kind in SOLVERS:
        if not re.search(pattern, kind.name):
            continue
        if quick and kind.wakes_slowly:
            missing[kind.name] = "too slow to start for a quick run"
            continue
        try:
            ready.append(kind())
        except Exception as error:  # an import may fail in any way; the others are still run
            missing[kind.name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return ready, missing

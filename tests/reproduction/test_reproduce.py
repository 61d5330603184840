"""The paper's tables: what is trained, what is printed, what is said of cells that stay empty."""

import io
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from stand_ins import raising

import sl1max
from sl1max._utils.progress import FitProgress
from sl1max.cli import _main as cli
from sl1max.cli import _reproduce as cli_reproduce
from sl1max.datasets import fetch_webkb
from sl1max.exceptions import CheckpointError
from sl1max.metrics import optimal_f_measure, top_class_error
from sl1max.reproduction import _reproduce as reproduce
from sl1max.reproduction import _result_store as kept

MAXENT_ROWS = ["Q1", "Q2", "Q3", "Q1(lambda^c)", "Q3(lambda^c)"]


def small_webkb(step=6):
    data = fetch_webkb()
    rows = np.arange(0, data.X_train.shape[0], step)
    return replace(data, X_train=data.X_train[rows], y_train=data.y_train[rows], folds=data.folds[rows] % 2)


def small_reuters(n_samples=300, n_features=40, n_classes=5, seed=0):
    """Label sets, empty ones among them, as a `Dataset` with one split."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n_samples, n_classes)) < 0.25
    X = rng.random((n_samples, n_features)) < 0.1
    X[:, :n_classes] |= Y & (rng.random(Y.shape) < 0.8)
    X, Y = (sparse.csr_array(part.astype(float)) for part in (X, Y))
    assert (Y.sum(axis=1) == 0).any() and (Y.sum(axis=1) > 1).any()
    half = n_samples // 2
    return replace(fetch_webkb(), X_train=X[:half], y_train=Y[:half], X_test=X[half:], y_test=Y[half:], folds=None)


@pytest.fixture(scope="module")
def webkb():
    return reproduce.run("webkb", data=small_webkb())


@pytest.fixture(scope="module")
def reuters():
    return reproduce.run("reuters", data=small_reuters())


@pytest.fixture
def without_sklearn(monkeypatch):
    monkeypatch.delattr(sl1max, "get_learner", raising=False)
    monkeypatch.delitem(sys.modules, "sl1max.estimators._learners", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)


def test_cells_of_a_set_with_folds(webkb):
    data = small_webkb()
    for row in MAXENT_ROWS:
        cell = webkb.cells[row, 0.5]
        assert 5 < cell.error < 25 and cell.f_measure is None
        assert cell.gap <= 1e-4 and cell.seconds > 0
    assert {row for row, beta in webkb.cells if beta == 0.9} == set(reproduce.PAPER_COSTS)
    wrong, weights = 0, []
    for X_train, y_train, X_test, y_test in data.splits():
        model = sl1max.fit(X_train, y_train, distribution="joint", label_mode="independent")
        wrong += (model.predict(X_test) != y_test).sum()
        weights.append(sum(part.nnz for part in model._parts))
    cell = webkb.cells["Q1(lambda^c)", 0.5]
    assert cell.error == pytest.approx(100 * wrong / len(data.y_train))
    assert cell.parameters == np.mean(weights)


def test_stronger_regularisation_gives_fewer_weights(webkb):
    for row in reproduce.PAPER_COSTS:
        assert webkb.cells[row, 0.9].parameters < webkb.cells[row, 0.5].parameters


def test_cells_of_label_sets(reuters):
    data = small_reuters()
    model = sl1max.fit(data.X_train, data.y_train)
    scores = model.decision_function(data.X_test)
    cell = reuters.cells["Q3(lambda^c)", 0.5]
    assert cell.error == pytest.approx(100 * top_class_error(data.y_test, scores))
    assert cell.f_measure == pytest.approx(100 * optimal_f_measure(data.y_test, scores))
    # Conditional, exclusive: the posterior ranks the cells.
    model = sl1max.fit(data.X_train, data.y_train, label_mode="exclusive")
    f_measure = optimal_f_measure(data.y_test, model.predict_log_proba(data.X_test))
    assert reuters.cells["Q3", 0.5].f_measure == pytest.approx(100 * f_measure)


def test_joint_model_of_label_sets():
    """Where every example has one label the sample space is that of `sl1max.fit`."""
    rng = np.random.default_rng(1)
    X = sparse.csr_array((rng.random((120, 15)) < 0.3).astype(float))
    y = rng.integers(0, 3, 120)
    settings = reproduce.Settings(tol=1e-9)
    ours = reproduce.train_joint(X, sparse.csr_array(np.eye(3)[y]), 0.5, settings).rank(X)
    expected = sl1max.fit(X, y, distribution="joint", tol=1e-9).decision_function(X)
    np.testing.assert_allclose(ours - ours[0, 0], expected - expected[0, 0], atol=1e-5)


def test_adaboost_and_svm(webkb):
    pytest.importorskip("sklearn")
    for row in ("AdaBoost", "Linear SVM"):
        assert 5 < webkb.cells[row, 0.5].error < 20


@pytest.mark.parametrize("n_estimators", [1, 40])
def test_adaboost_has_the_rounds_of_the_set(n_estimators, monkeypatch):
    pytest.importorskip("sklearn")
    data = small_reuters()
    monkeypatch.setitem(reproduce.N_ROUNDS, "reuters", n_estimators)
    column = reproduce.run("reuters", data=data, rows=["AdaBoost"])
    model = sl1max.AdaBoostClassifier(n_estimators=n_estimators).fit(data.X_train, data.y_train)
    scores = model.decision_function(data.X_test)
    assert column.cells["AdaBoost", 0.5].error == pytest.approx(100 * top_class_error(data.y_test, scores))


def test_without_sklearn(without_sklearn):
    column = reproduce.run("webkb", data=small_webkb(step=20))
    assert ("Linear SVM", 0.5) not in column.cells and ("Q2", 0.5) in column.cells
    assert [note.split(" is left out: ")[0] for note in column.notes] == ["AdaBoost", "Linear SVM"]
    assert all("pip install scikit-learn" in note for note in column.notes)
    _, rows = reproduce.error_table([column])
    assert ["Linear SVM", "-", "7.57"] in rows
    assert "Linear SVM is left out" in reproduce.report([column])


def test_error_table(webkb, reuters):
    header, rows = reproduce.error_table([webkb, reuters])
    assert header == ["Table 3: error %", "WebKB", "paper", "Reuters", "paper"]
    assert [row[0] for row in rows] == list(reproduce.PAPER_ERRORS)
    q1 = dict((row[0], row[1:]) for row in rows)["Q1"]
    cell = reuters.cells["Q1", 0.5]
    assert q1[1:] == ["7.95", f"{cell.error:.2f} / {cell.f_measure:.2f}", "16.90 / 84.00"]


def test_cost_table(webkb):
    header, rows = reproduce.cost_table(webkb)
    assert len(header) == 5 and "paper" not in header
    assert [row[0] for row in rows] == list(reproduce.PAPER_COSTS)
    header, rows = reproduce.cost_table(reproduce.Column("supertags", "", dict(webkb.cells)))
    assert header.count("paper") == 4
    assert rows[2][2::2] == ["41,000", "24,000", "167,940.00", "167,040.00"]


def test_supertags_warns_first(monkeypatch):
    monkeypatch.setattr(reproduce, "fetch_supertags", small_webkb)
    with pytest.warns(UserWarning, match="takes hours"):
        reproduce.load("supertags", "unigram")


def test_formats():
    header, rows = ["a", "long"], [["first", "1"], ["b", "22"]]
    assert reproduce.format_text(header, rows) == "a      long\nfirst     1\nb        22"
    assert reproduce.format_markdown(header, rows) == ("| a | long |\n| --- | ---: |\n| first | 1 |\n| b | 22 |")


def test_json(webkb, reuters):
    written = json.loads(json.dumps(reproduce.as_json([webkb, reuters])))
    cells = {(cell["row"], cell["beta"]): cell for cell in written["datasets"][1]["cells"]}
    assert cells["Q2", 0.5]["paper"] == {"error": 17.4, "f_measure": 83.9}
    assert cells["Q2", 0.9]["paper"] == {}
    assert cells["Q2", 0.5]["f_measure"] == reuters.cells["Q2", 0.5].f_measure
    (where,) = written["datasets"][0]["circumstances"]
    assert sl1max.__version__ in where


def same_cells(ours, theirs, resumed=False):
    """All but the seconds. A class that was resumed comes by another way to another gap, maybe with other weights."""
    assert ours.keys() == theirs.keys()
    for key, cell in ours.items():
        expected = replace(theirs[key], seconds=0)
        if resumed and cell.parameters is not None:
            assert cell.parameters == pytest.approx(expected.parameters, rel=0.02), key
            assert cell.gap <= reproduce.Settings().tol
            expected = replace(expected, parameters=cell.parameters, gap=cell.gap)
        assert replace(cell, seconds=0) == expected, key


def test_fits_that_are_kept(webkb, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(reproduce, "CLASSES_AT_ONCE", 3)
    first = reproduce.run("webkb", data=small_webkb(), folder=tmp_path, rows=["Q2", "AdaBoost"])
    assert set(first.cells) == {("Q2", 0.5), ("Q2", 0.9), ("AdaBoost", 0.5)}
    rest = [row for row in reproduce.LEARNERS if row not in ("Q2", "AdaBoost")]
    whole = reproduce.run("webkb", data=small_webkb(), folder=tmp_path, rows=rest)
    same_cells(whole.cells, webkb.cells)
    assert whole.cells["Q2", 0.5] == first.cells["Q2", 0.5]
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}
    report = reproduce.run("webkb", data=small_webkb(), folder=tmp_path, rows=[])
    assert report.cells == whole.cells and report.circumstances == whole.circumstances


def test_label_sets_that_are_kept(reuters, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(reproduce, "CLASSES_AT_ONCE", 2)
    rows = ["AdaBoost", "Linear SVM", "Q1"]
    column = reproduce.run("reuters", data=small_reuters(), folder=tmp_path, rows=rows)
    same_cells(column.cells, {(row, 0.5): reuters.cells[row, 0.5] for row in rows})


def interrupting_the_third_class():
    """A callback that is as Ctrl-C when a third class reports."""
    seen = set()

    def callback(progress):
        seen.add(progress.class_label)
        if len(seen) == 3:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("row", ["AdaBoost", "Q3(lambda^c)"])
def test_a_fit_that_is_broken_off(webkb, row, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(reproduce, "CLASSES_AT_ONCE", 1)

    def run(callback):
        settings = reproduce.Settings(callback=callback)
        return reproduce.run("webkb", data=small_webkb(), folder=tmp_path, rows=[row], settings=settings)

    with pytest.raises(KeyboardInterrupt):
        run(interrupting_the_third_class())
    name = reproduce.file_name("webkb", row, 0.5, 0)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"{name}.begun", f"{name}.{'parts' if row == 'AdaBoost' else 'checkpoint'}"}
    begun = json.loads((tmp_path / f"{name}.begun").read_text())
    (tmp_path / f"{name}.begun").write_text(json.dumps(begun | {"seconds": 1000.0}))
    column = run(None)
    same_cells(column.cells, {key: cell for key, cell in webkb.cells.items() if key[0] == row}, resumed=True)
    assert column.cells[row, 0.5].seconds > 500  # the mean of two folds, one of them long under way


def test_kept_fits_of_other_data(tmp_path):
    reproduce.run("webkb", data=small_webkb(step=20), folder=tmp_path, rows=["Q2"])
    with pytest.raises(CheckpointError, match=r"of another run: data is .* 210 ex.* there and .* 700 .*Name another"):
        reproduce.run("webkb", data=small_webkb(), folder=tmp_path, rows=["Q2"])
    for path in tmp_path.iterdir():
        path.write_text("{")
    with pytest.raises(CheckpointError, match=r"webkb-Q2-0.5-0.json is damaged: delete it"):
        reproduce.run("webkb", data=small_webkb(step=20), folder=tmp_path, rows=["Q2"])


def test_rounds_that_were_kept_by_another_setting(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    data = small_reuters()
    reproduce.run("reuters", data=data, folder=tmp_path, rows=["AdaBoost"])
    monkeypatch.setitem(reproduce.N_ROUNDS, "reuters", 20)
    with pytest.raises(CheckpointError, match=r"AdaBoost-0.5-0.json: of another run: n_estimators is 500 there and 20"):
        reproduce.run("reuters", data=data, folder=tmp_path, rows=[])


@pytest.mark.parametrize("row", ["AdaBoost", "Q3(lambda^c)"])
def test_a_fit_of_other_data_that_was_broken_off(row, tmp_path, monkeypatch):
    """Its classes are not taken for those of this data."""
    pytest.importorskip("sklearn")
    monkeypatch.setattr(reproduce, "CLASSES_AT_ONCE", 1)
    options = {"data": small_reuters(), "folder": tmp_path, "rows": [row]}
    settings = reproduce.Settings(callback=interrupting_the_third_class())
    with pytest.raises(KeyboardInterrupt):
        reproduce.run("reuters", every=2, settings=settings, **options)
    with pytest.raises(CheckpointError, match=r"-0.begun: of another run: data is .*one of 2: .* there and .*"):
        reproduce.run("reuters", **options)


def test_the_clock_is_written_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "SECONDS_BETWEEN_NOTES", 0.0)
    place, begun = kept.Kept(tmp_path / "a.json", {}), tmp_path / "a.begun"
    with place.timing() as clock:
        assert json.loads(begun.read_text()) == {"about": {}, "seconds": 0.0}
        begun.unlink()
        clock.tick()
        assert begun.exists()
    begun.write_text(json.dumps({"about": {}, "seconds": 1000.0}))
    with place.timing() as clock:
        assert 1000 < clock.seconds < 2000
    assert json.loads(begun.read_text())["seconds"] >= 1000
    place.save({"error": 1.0})
    assert place.load() == {"error": 1.0} and not begun.exists()


def test_a_damaged_clock(tmp_path):
    place = kept.Kept(tmp_path / "a.json", {})
    (tmp_path / "a.begun").write_text("")
    with pytest.raises(CheckpointError, match=r"a.begun is damaged: delete it"), place.timing():
        pass


def test_a_full_disk_does_not_end_a_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "SECONDS_BETWEEN_NOTES", 0.0)
    with kept.Kept(tmp_path / "a.json", {}).timing() as clock:
        monkeypatch.setattr(kept, "atomic_write", raising(OSError("no space left on device")))
        clock.tick()
    assert json.loads((tmp_path / "a.begun").read_text())["seconds"] < 1


def test_every_row_is_trained_on_every_set():
    """Those too that the paper leaves blank, with no figure of its own beside ours."""
    pytest.importorskip("sklearn")
    column = reproduce.run("supertags", data=small_webkb(step=20), settings=reproduce.Settings(tol=1e-2))
    assert {row for row, beta in column.cells if beta == 0.5} == set(reproduce.PAPER_ERRORS)
    assert {row for row, beta in column.cells if beta == 0.9} == set(reproduce.PAPER_COSTS)
    _, rows = reproduce.error_table([column])
    assert ["Q1", f"{column.cells['Q1', 0.5].error:.2f}", ""] in rows


@pytest.mark.filterwarnings("ignore:y gives no example to class")
def test_the_gap_of_a_class_without_examples():
    data = small_reuters()
    y_train = data.y_train.tolil()
    y_train[:, 0] = 0
    column = reproduce.run("reuters", data=replace(data, y_train=y_train.tocsr()), rows=["Q3(lambda^c)"], betas=[0.5])
    assert 0 < column.cells["Q3(lambda^c)", 0.5].gap <= reproduce.Settings().tol


def test_nothing_is_trained_for_a_report(tmp_path):
    column = reproduce.run("webkb", data=small_webkb(step=20), rows=[], folder=tmp_path)
    assert column.cells == {} and column.notes == []


def test_a_row_at_one_beta(tmp_path):
    data = small_webkb(step=20)
    for beta in (0.9, 0.5):
        column = reproduce.run("supertags", data=data, rows=["Q2"], betas=[beta], folder=tmp_path)
        assert ("Q2", beta) in column.cells
    assert list(column.cells) == [("Q2", 0.5), ("Q2", 0.9)]
    report = reproduce.report([reproduce.run("supertags", data=data, rows=[], folder=tmp_path)])
    errors, costs, *_ = report.split("\n\n")
    assert f"{column.cells['Q2', 0.5].error:.2f}" in errors
    assert all(f"{column.cells['Q2', beta].parameters:,.0f}" in costs for beta in (0.5, 0.9))


def test_a_part_of_the_examples():
    data = reproduce.thin(small_reuters(), 3)
    assert data.X_train.shape[0] == data.y_train.shape[0] == 50 and data.y_test.shape[0] == 50
    assert data.folds is None and "one of 3" in data.name
    column = reproduce.run("webkb", data=fetch_webkb(), every=20, rows=["Q2"])
    assert "one of 20: 210 examples" in column.data and ("Q2", 0.5) in column.cells


def test_progress(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    stream = io.StringIO()
    progress = reproduce.Progress(stream)
    settings = reproduce.Settings(tol=1e-2, callback=progress.watch)
    reproduce.run("webkb", data=small_webkb(step=20), settings=settings, progress=progress)
    lines = stream.getvalue().split("\r")
    text = "WebKB, AdaBoost, beta 0.5, part 1 of 2"
    assert lines[1].rstrip() == f"sl1max: [------------] 0/20 fits, ? left: {text}"
    last = [line for line in lines if "19/20 fits" in line and "Q3(lambda^c), beta 0.9, part 2 of 2" in line]
    assert re.match(r"sl1max: \[###########.\] 19/20 fits, 0:0\d left: WebKB", last[0])
    assert all(len(line) <= 119 for line in lines)
    assert lines[-2].strip() == lines[-1] == ""


def test_time_left(monkeypatch):
    """Fits count alike; the one under way by its classes, or by the way of its gap if it has no classes of its own."""
    now = [0.0]
    monkeypatch.setattr("sl1max.reproduction._reproduce.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    progress = reproduce.Progress(stream)
    with progress.over(2):
        progress.begin(0, "first", n_classes=4)
        for c in range(3):
            now[0] += 10.0
            progress.watch(FitProgress(c, 1, 1.0, 1e-3, 1e-5))
        assert "[###---------] 0/2 fits, 1:30 left: first, class 2 (3/4), gap 1e-03" in stream.getvalue()
        now[0] = 50.0
        progress.begin(1, "second", n_classes=4)
        for gap in (1e-1, 1e-3):
            now[0] += 25.0
            progress.watch(FitProgress(None, 1, 1.0, gap, 1e-5))
        assert "[#########---] 1/2 fits, 0:33 left: second, gap 1e-03" in stream.getvalue()


def test_progress_in_a_file(monkeypatch):
    monkeypatch.setattr(reproduce, "SECONDS_BETWEEN_LOGS", 0.0)
    stream = io.StringIO()
    progress = reproduce.Progress(stream, log=True)
    settings = reproduce.Settings(tol=1e-2, callback=progress.watch)
    reproduce.run("webkb", data=small_webkb(step=20), rows=["Q2"], settings=settings, progress=progress)
    first, second, *_ = stream.getvalue().splitlines()
    assert first == "sl1max: 0/4 fits, 0:00, ? left: WebKB, Q2, beta 0.5, part 1 of 2"
    assert second.startswith(f"{first}, class ") and "(1/4), gap " in second


@pytest.fixture
def command(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "fetch_webkb", lambda: small_webkb(step=20))


def test_command(command, capsys, tmp_path):
    assert cli.main(["reproduce", "webkb", "--tol", "1e-2", "--markdown", "tables.md"]) == cli.OK
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("Table 3: error %  WebKB  paper\nAdaBoost")
    assert "Table 4: WebKB" in out
    assert (tmp_path / "tables.md").read_text().startswith("| Table 3: error % | WebKB | paper |\n| --- |")
    assert cli.main(["reproduce", "webkb", "--tol", "1e-2", "--json"]) == cli.OK
    (column,) = json.loads(capsys.readouterr().out)["datasets"]
    papers = {(cell["row"], cell["beta"]): cell["paper"] for cell in column["cells"]}
    assert papers["Q3", 0.5] == {"error": 7.76}


def test_command_keeps(command, capsys, tmp_path):
    options = ["reproduce", "webkb", "--tol", "1e-2", "--keep", "kept"]
    assert cli.main([*options, "--only", "Q2", "--progress"]) == cli.OK
    out, err = capsys.readouterr()
    assert err.startswith("sl1max: 0/4 fits, 0:00, ? left: WebKB, Q2, beta 0.5, part 1 of 2\n")
    assert len(list((tmp_path / "kept").iterdir())) == 4
    assert cli.main([*options, "--report"]) == cli.OK
    assert capsys.readouterr().out == out
    assert cli.main([*options, "--only", "Q1(lambda^c)", "--beta", "0.9", "--json"]) == cli.OK
    cells = json.loads(capsys.readouterr().out)["datasets"][0]["cells"]
    assert [(cell["row"], cell["beta"]) for cell in cells] == [("Q2", 0.5), ("Q1(lambda^c)", 0.9), ("Q2", 0.9)]
    assert cli.main([*options, "--report", "--every", "2"]) == cli.BAD_INPUT
    assert "of another run" in capsys.readouterr().err
    assert cli.main(["reproduce", "webkb", "--report"]) == cli.BAD_INPUT
    assert "--report needs --keep" in capsys.readouterr().err


def test_rows_of_the_command():
    assert cli_reproduce.REPRODUCED == tuple(reproduce.LEARNERS)
    assert cli_reproduce.REPRODUCED_BETAS == (reproduce.BETA, reproduce.STRONGER_BETA)


def test_command_draws(command, tmp_path):
    pytest.importorskip("matplotlib")
    assert cli.main(["reproduce", "webkb", "--tol", "1e-2", "--plot", "errors.png"]) == cli.OK
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")


def test_command_complains_before_it_trains(command, capsys, monkeypatch):
    assert cli.main(["reproduce", "webkb", "--markdown", "nowhere/tables.md"]) == cli.BAD_INPUT
    assert "there is no folder" in capsys.readouterr().err
    monkeypatch.setattr(cli_reproduce.importlib.util, "find_spec", lambda name: None)
    assert cli.main(["reproduce", "webkb", "--plot", "errors.png"]) == cli.BAD_INPUT
    assert "pip install matplotlib" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--tol", "-1"], "--tol -1 must be a positive number"),
        (["--jobs", "0"], "--jobs 0 must be an integer other than 0"),
        (["--every", "100000"], "--every 100000 leaves too few examples: "),
        (["--report", "--keep", "nothing"], "nothing: no measurement of webkb is kept there"),
    ],
)
def test_command_says_in_one_line_what_is_wrong(command, capsys, options, says):
    assert cli.main(["reproduce", "webkb", *options]) == cli.BAD_INPUT
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"sl1max: error: {says}") and err.count("\n") == 1


def test_command_checks_the_figure_first(command, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(reproduce, "run", raising(AssertionError("trained")))
    assert cli.main(["reproduce", "webkb", "--plot", "errors.foo"]) == cli.BAD_INPUT
    assert "--plot errors.foo: a figure cannot be drawn as .foo, but as .png" in capsys.readouterr().err


def test_command_fetches_all_sets_before_it_trains(command, capsys, monkeypatch):
    monkeypatch.setattr(reproduce, "fetch_reuters21578", raising(OSError("Reuters is not there")))
    monkeypatch.setattr(reproduce, "run", raising(AssertionError("trained")))
    assert cli.main(["reproduce", "all"]) == cli.BAD_INPUT
    assert capsys.readouterr().err == "sl1max: error: Reuters is not there\n"


def test_circumstances():
    sklearn = pytest.importorskip("sklearn")
    assert f", scikit-learn {sklearn.__version__}, Python " in reproduce.circumstances()


def test_command_says_what_to_put_where(monkeypatch, tmp_path, capsys):
    def refuse(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setenv("SL1MAX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("urllib.request.urlopen", refuse)
    assert cli.main(["reproduce", "reuters"]) == cli.BAD_INPUT
    assert "Put reuters21578.tar.gz" in capsys.readouterr().err


@pytest.mark.slow
def test_webkb_of_the_paper():
    """The errors of the paper or better, on all pages."""
    column = reproduce.run("webkb")
    for row in MAXENT_ROWS:
        assert column.cells[row, 0.5].error <= reproduce.PAPER_ERRORS[row]["webkb"][0]
    assert sum(column.cells[row, 0.5].seconds for row in MAXENT_ROWS) < 10

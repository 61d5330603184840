"""Rasters through rasterio: the covariates at points, background points, and maps of predictions.

The layers of a stack are read window by window, so that memory does not grow with the rasters. A window holds all
layers as float64, missing cells as nan. Threads read and predict, each with open data sets of its own, since those of
GDAL must not be shared.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from sl1max._utils.files import check_writable
from sl1max._utils.progress import counting
from sl1max._utils.threads import count_threads, map_threads
from sl1max.species._lambdas import OUTPUTS, LambdasModel

NODATA = -9999.0  # of the maps that are written
CELLS_AT_ONCE = 1 << 23  # of a window, of all layers together: 64 MB
GDAL_CACHE = 1 << 26  # bytes
TILE = 256  # rows and columns of a tile of the maps that are written
SAME_PLACE = 1e-3  # of a cell: origins and sizes of rasters that differ less are equal
FORMATS = {".tif": "GTiff", ".tiff": "GTiff", ".asc": "AAIGrid"}
RASTER_FILES = (*FORMATS, ".bil", ".img", ".nc", ".vrt", ".grd", ".flt")
MANY_OUTSIDE = 0.5  # of the points, from which on a warning looks for the reason

Layers = Mapping[str, Any] | Sequence[Any] | str | os.PathLike[str]


class RasterStack:
    """Layers of equal extent and resolution, one for each covariate.

    Requires rasterio (``pip install rasterio``).

    Parameters
    ----------
    layers : dict, path or list of paths
        Paths by the name of the covariate; a folder, whose rasters are named as their files; a raster whose bands have
        descriptions; or a list of rasters, named as their files. GeoTIFF, ASCII grids (.asc) and all else that GDAL
        reads.

    Attributes
    ----------
    names : list of str
        Of the covariates.
    shape : tuple of int
        Rows and columns.
    crs : rasterio.crs.CRS or None
    transform : affine.Affine
        From columns and rows to coordinates.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, rasterio
    >>> from sl1max.species import RasterStack
    >>> path = os.path.join(tempfile.mkdtemp(), "warmth.tif")
    >>> shape = dict(height=2, width=3, count=1, dtype="float32", transform=rasterio.Affine(1, 0, 10, 0, -1, 50))
    >>> with rasterio.open(path, "w", crs="EPSG:4326", **shape) as raster:
    ...     raster.write(np.arange(6, dtype="float32").reshape(2, 3), 1)
    >>> RasterStack([path]).sample([[10.5, 49.5], [12.5, 48.5], [20.0, 0.0]])
    array([[ 0.],
           [ 5.],
           [nan]])
    """

    def __init__(self, layers: Layers):
        rasterio = import_rasterio()
        self._bands = _find_bands(rasterio, layers)
        self.names = list(self._bands)
        first: tuple[str, tuple[int, int], Any] | None = None
        blocks: list[tuple[int, int]] = []
        self.crs: Any = None
        for name, (path, band) in self._bands.items():
            with rasterio.open(path) as raster:
                first = first or (name, raster.shape, raster.transform)
                _check_equal_grid(name, raster.shape, raster.transform, *first)
                if self.crs is not None and raster.crs is not None and raster.crs != self.crs:
                    raise ValueError(
                        f"the layers differ in their coordinate reference system: {name} has {raster.crs}, "
                        f"a layer before it {self.crs}"
                    )
                self.crs = self.crs or raster.crs
                blocks.append(raster.block_shapes[band - 1])
        if first is None:
            raise ValueError("there are no layers")
        _, self.shape, self.transform = first
        self._block = tuple(max(sizes) for sizes in zip(*blocks, strict=True))

    @property
    def bands(self) -> dict[str, tuple[str, int]]:
        """Path and number of the band of every layer, by its name."""
        return dict(self._bands)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<sl1max.species.RasterStack: {len(self.names)} layers of {rows} x {columns} cells>"

    def select(self, names: Sequence[str]) -> RasterStack:
        """The stack of some layers, in this order.

        Parameters
        ----------
        names : sequence of str

        Returns
        -------
        RasterStack
        """
        missing = [name for name in names if name not in self._bands]
        if missing:
            raise ValueError(f"there is no layer of the covariate {missing[0]!r}; layers: {', '.join(self.names)}")
        stack = object.__new__(RasterStack)
        stack.__dict__.update(self.__dict__)
        stack._bands = {name: self._bands[name] for name in names}
        stack.names = list(names)
        return stack

    def sample(self, coordinates: Any, *, crs: Any = None) -> np.ndarray:
        """The covariates at points.

        Parameters
        ----------
        coordinates : array of shape (n_points, 2)
            x and y, such as longitude and latitude.
        crs : str or rasterio.crs.CRS, optional
            That of the coordinates, such as "EPSG:4326", if it is not that of the layers.

        Returns
        -------
        float array of shape (n_points, n_layers)
            Of nan outside of the layers and where a layer has no data.

        Warns
        -----
        UserWarning
            Most points are outside of the layers.
        """
        rows, columns = self.find_cells(coordinates, crs=crs)
        out = np.full((len(rows), len(self.names)), np.nan)
        inside = np.flatnonzero(rows >= 0)
        height, width = self._block
        n_across = self.shape[1] // width + 1
        block = rows[inside] // height * n_across + columns[inside] // width
        order = np.argsort(block, kind="stable")
        groups = np.split(inside[order], np.flatnonzero(np.diff(block[order])) + 1)
        with self.open() as reader:
            for points in groups if len(inside) else []:
                top, left = rows[points].min(), columns[points].min()
                shape = rows[points].max() + 1 - top, columns[points].max() + 1 - left
                values = reader.read((top, left, *shape)).reshape(-1, *shape)
                out[points] = values[:, rows[points] - top, columns[points] - left].T
        return out

    def find_cells(self, coordinates: Any, *, crs: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The cells that points are in.

        Parameters
        ----------
        coordinates : array of shape (n_points, 2)
        crs : str or rasterio.crs.CRS, optional
            That of the coordinates, if it is not that of the layers.

        Returns
        -------
        rows, columns : int arrays of shape (n_points,)
            Each -1 outside of the layers.
        """
        coordinates = np.asarray(coordinates, float)
        if coordinates.ndim != 2 or coordinates.shape[1] != 2:
            raise ValueError(f"coordinates must have two columns, x and y; their shape is {coordinates.shape}")
        x, y = self._to_layers(coordinates, crs)
        rows, columns = self._cells(x, y)
        outside = np.mean(rows < 0) if len(rows) else 0.0
        if outside > MANY_OUTSIDE:
            swapped = np.mean(self._cells(*self._to_layers(coordinates[:, ::-1], crs))[0] < 0) < outside
            hint = "are x and y, longitude and latitude, swapped?" if swapped else "is their reference system another?"
            warnings.warn(
                f"{np.count_nonzero(rows < 0)} of {len(rows)} points are outside of the layers: {hint}", stacklevel=2
            )
        return rows, columns

    def _to_layers(self, coordinates, crs):
        """x and y in the reference system of the layers."""
        x, y = coordinates.T
        if crs is None:
            return x, y
        if self.crs is None:
            raise ValueError("crs is given, but the layers have no coordinate reference system")
        from rasterio.crs import CRS
        from rasterio.warp import transform

        known = np.isfinite(coordinates).all(axis=1)
        moved = np.full(coordinates.shape, np.nan)
        moved[known] = np.transpose(transform(CRS.from_user_input(crs), self.crs, x[known], y[known]))
        return moved.T

    def _cells(self, x, y):
        a, b, c, d, e, f = tuple(~self.transform)[:6]
        column, row = a * x + b * y + c, d * x + e * y + f
        inside = (row >= 0) & (row < self.shape[0]) & (column >= 0) & (column < self.shape[1])
        return tuple(np.where(inside, np.floor(np.where(inside, place, 0)), -1).astype(int) for place in (row, column))

    def draw_background(
        self,
        n_points: int = 10_000,
        *,
        bias: Any = None,
        cell_area: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cells drawn at random, without replacement, among those where every layer has data.

        Parameters
        ----------
        n_points : int
            All cells with data, if there are fewer.
        bias : path, optional
            A raster of the sampling effort, on the grid of the layers: cells are drawn in proportion to it.
        cell_area : bool
            Draw cells in proportion to the cosine of y, the latitude: on a grid of equal longitudes and latitudes, to
            their area.
        random_state : int, numpy.random.Generator or None
        verbose : int
            Positive: progress on stderr.

        Returns
        -------
        coordinates : float array of shape (n_points, 2)
            Those of the centres of the cells.
        covariates : float array of shape (n_points, n_layers)
        """
        rng = np.random.default_rng(random_state)
        stack, n_layers = self, len(self.names)
        if bias is not None:
            stack = self._with_layer(bias, "the bias grid")
        # The least of exponential variables whose rates are the weights: a sample without replacement.
        drawn = np.empty((3 + n_layers, 0))  # keys, x, y, covariates
        with counting(self.shape[0] * self.shape[1], "cells", verbose) as add, stack.open() as reader:
            for window in self.windows():
                values = reader.read(window)
                weight = np.ones(values.shape[1]) if bias is None else values[n_layers]
                cells = np.flatnonzero(~np.isnan(values).any(axis=0) & (weight > 0))
                row, column, _, width = window
                x, y = self.centres(row + cells // width, column + cells % width)
                rate = weight[cells] * (np.cos(np.radians(y)) if cell_area else 1.0)
                keys = rng.exponential(size=len(cells)) / rate
                drawn = np.concatenate([drawn, [keys, x, y, *values[:n_layers, cells]]], axis=1)
                drawn = drawn[:, np.argsort(drawn[0], kind="stable")[:n_points]]
                add(values.shape[1])
        if not drawn.size:
            raise ValueError("there is no cell where every layer has data")
        return drawn[1:3].T.copy(), drawn[3:].T.copy()

    def _with_layer(self, path, name):
        """The stack with one more layer, on the same grid."""
        other = RasterStack({name: path})
        _check_equal_grid(name, other.shape, other.transform, "the layers", self.shape, self.transform)
        stack = self.select(self.names)
        stack._bands = {**self._bands, name: other._bands[name]}
        return stack

    @property
    def window_shape(self) -> tuple[int, int]:
        """Rows and columns of a window: whole rows, or whole tiles where all files have tiles.

        Blocks of the files are whole within a window, as far as memory allows.
        """
        (rows, columns), (height, width) = self.shape, self._block
        room = CELLS_AT_ONCE // len(self._bands)
        if width >= columns:
            n_rows = max(room // columns, 1)
            return min(n_rows // height * height or n_rows, rows), columns
        height, width = -(-height // TILE) * TILE, -(-width // TILE) * TILE
        n_tiles = max(room // (height * width), 1)
        return height, min(n_tiles, -(-columns // width)) * width

    def windows(self) -> Iterator[tuple[int, int, int, int]]:
        """Windows that cover the stack: row, column, height, width."""
        (rows, columns), (height, width) = self.shape, self.window_shape
        for row in range(0, rows, height):
            for column in range(0, columns, width):
                yield row, column, min(height, rows - row), min(width, columns - column)

    @contextlib.contextmanager
    def open(self) -> Iterator[Reader]:
        """Open the layers for one thread."""
        rasterio = import_rasterio()
        with contextlib.ExitStack() as files:
            files.enter_context(rasterio.Env(GDAL_CACHEMAX=GDAL_CACHE))
            paths = {path for path, _ in self._bands.values()}
            rasters = {path: files.enter_context(rasterio.open(path)) for path in paths}
            yield Reader([(rasters[path], band) for path, band in self._bands.values()])

    def centres(self, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x and y of the centres of cells.

        Parameters
        ----------
        rows, columns : int arrays of shape (n_cells,)

        Returns
        -------
        x, y : float arrays of shape (n_cells,)
        """
        a, b, c, d, e, f = tuple(self.transform)[:6]
        return a * (columns + 0.5) + b * (rows + 0.5) + c, d * (columns + 0.5) + e * (rows + 0.5) + f


def as_stack(layers: RasterStack | Layers) -> RasterStack:
    """A stack of rasters, from whatever stands for one."""
    return layers if isinstance(layers, RasterStack) else RasterStack(layers)


class Reader:
    """Open data sets of the layers of a stack, for one thread.

    Parameters
    ----------
    bands : list of (rasterio dataset, int)
    """

    def __init__(self, bands):
        self._bands = bands
        self._nodata = [np.nan if raster.nodata is None else float(raster.nodata) for raster, _ in bands]

    def read(self, window: tuple[int, int, int, int]) -> np.ndarray:
        """The values of a window.

        Parameters
        ----------
        window : tuple of int
            Row, column, height and width.

        Returns
        -------
        float array of shape (n_layers, n_cells)
            Row after row; nan where a layer has no data.
        """
        from rasterio.windows import Window

        row, column, height, width = window
        values = np.empty((len(self._bands), height, width))
        for (raster, band), nodata, out in zip(self._bands, self._nodata, values, strict=True):
            raster.read(band, window=Window(column, row, width, height), out=out)
            if not np.isnan(nodata):
                out[out == nodata] = np.nan
        return values.reshape(len(values), -1)


def predict_raster(
    model: Any,
    layers: RasterStack | Layers,
    path: str | os.PathLike[str],
    *,
    output: str | None = None,
    clamp: bool | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> None:
    """Write the map of a model's predictions.

    Requires rasterio (``pip install rasterio``). Memory does not grow with the rasters.

    Parameters
    ----------
    model : SpeciesModel or LambdasModel
    layers : RasterStack, dict, path or list of paths
        The covariates; see `RasterStack`. Layers that the model does not know are not read.
    path : str or path-like
        The map, GeoTIFF (.tif) or ASCII grid (.asc), as float32 with the reference system of the layers. It has no
        data where a covariate has none. It replaces a file when it is complete.
    output : {"cloglog", "logistic", "raw", "cumulative"}, optional
        That of the model by default, "cloglog" of a `LambdasModel`.
    clamp : bool, optional
        Keep covariates, then features, within their range in training. As the model by default.
    n_jobs : int, optional
        Threads; -1: as many as processors.
    verbose : int
        Positive: progress on stderr, by tqdm if it is installed.
    """
    lambdas = getattr(model, "model_", model)
    if not isinstance(lambdas, LambdasModel):
        raise TypeError(f"model must be a fitted SpeciesModel or a LambdasModel, got {type(model).__name__}")
    output = getattr(model, "output", OUTPUTS[0]) if output is None else output
    clamp = getattr(model, "clamp", True) if clamp is None else clamp
    if output not in OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, got {output!r}")
    if not lambdas.covariates.have_numeric_categories:
        raise ValueError("rasters hold numbers: the model's categories must be numbers too")
    stack = as_stack(layers)
    curves = lambdas.curves(clamp=clamp)

    def predict(values):
        return lambdas.transform_score(curves.score(values) - lambdas.linear_predictor_normalizer, output)

    write_map(predict, stack.select(lambdas.feature_names), path, n_jobs=n_jobs, verbose=verbose)


def write_map(
    function: Callable[[np.ndarray], np.ndarray],
    stack: RasterStack,
    path: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> None:
    """Write the raster of a function of the covariates, window by window.

    Parameters
    ----------
    function : callable
        From values (n_layers, n_cells) to values (n_cells,). Threads call it.
    stack : RasterStack
    path : str or path-like
    n_jobs : int, optional
    verbose : int
    """
    rasterio = import_rasterio()
    from rasterio.windows import Window

    suffix = os.path.splitext(path)[1].lower()
    if suffix not in FORMATS:
        raise ValueError(f"{os.fspath(path)}: maps are written as {', '.join(FORMATS)}")
    check_writable(path)
    readers: SimpleQueue[Any] = SimpleQueue()
    writing, (rows, columns) = threading.Lock(), stack.shape
    profile = dict(driver="GTiff", compress="deflate", zlevel=1, bigtiff="if_safer")
    profile |= dict(width=columns, height=rows, count=1, dtype="float32", nodata=NODATA, transform=stack.transform)
    if stack.crs is not None:
        profile["crs"] = stack.crs
    # Each block is written whole: GDAL may lose parts of a block that two threads make room for in its cache.
    if stack.window_shape[1] == columns:
        profile |= dict(blockysize=stack.window_shape[0])
    else:
        profile |= dict(tiled=True, blockxsize=TILE, blockysize=TILE)
    n_threads = count_threads(n_jobs)
    with contextlib.ExitStack() as files:
        folder = files.enter_context(tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))))
        for _ in range(n_threads):
            readers.put(files.enter_context(stack.open()))
        part = os.path.join(folder, "map.tif")
        with (
            counting(rows * columns, "cells", verbose) as add,
            rasterio.open(part, "w", **profile) as raster,
        ):

            def work(window):
                reader = readers.get()
                try:
                    values = function(reader.read(window))
                finally:
                    readers.put(reader)
                row, column, height, width = window
                values = np.where(np.isnan(values), NODATA, values).astype(np.float32).reshape(height, width)
                with writing:
                    raster.write(values, 1, window=Window(column, row, width, height))
                add(values.size)

            map_threads(work, list(stack.windows()), n_threads)
        _move_into_place(rasterio, part, folder, path, FORMATS[suffix])


def _move_into_place(rasterio, part, folder, path, driver):
    """Convert a complete map if need be, then move it, and what belongs to it, to its path."""
    if driver != "GTiff":
        converted = os.path.join(folder, "converted", os.path.basename(path))
        os.mkdir(os.path.dirname(converted))
        rasterio.shutil.copy(part, converted, driver=driver, FORCE_CELLSIZE=True)
        os.unlink(part)
        part = converted
    stem = os.path.splitext(part)[0]
    for suffix in (".prj", ".asc.aux.xml"):
        if os.path.exists(stem + suffix):
            os.replace(stem + suffix, os.path.splitext(path)[0] + suffix)
    os.replace(part, path)


def import_rasterio() -> Any:
    """The module rasterio, or an ImportError that says how to get it."""
    try:
        import rasterio
        import rasterio.shutil
    except ImportError as error:
        raise ImportError("rasters require rasterio: pip install rasterio") from error
    return rasterio


def _find_bands(rasterio, layers):
    """Path and band of every layer, by its name."""
    if isinstance(layers, Mapping):
        bands = {str(name): (os.fspath(path), 1) for name, path in layers.items()}
    elif isinstance(layers, (str, os.PathLike)):
        path = os.fspath(layers)
        if not os.path.isdir(path):
            bands = _bands_of_file(rasterio, path)
        else:
            names = sorted(name for name in os.listdir(path) if os.path.splitext(name)[1].lower() in RASTER_FILES)
            if not names:
                raise ValueError(f"{path}: there is no raster in this folder")
            bands = _named_as_files([os.path.join(path, name) for name in names])
    else:
        bands = _named_as_files([os.fspath(path) for path in layers])
    if not bands:
        raise ValueError("there are no layers")
    return bands


def _named_as_files(paths: Sequence[Any]) -> dict[str, tuple[Any, int]]:
    bands: dict[str, tuple[Any, int]] = {}
    for path in paths:
        name = os.path.splitext(os.path.basename(path))[0]
        if name in bands:
            raise ValueError(f"two rasters are named {name!r}: {bands[name][0]} and {path}")
        bands[name] = path, 1
    return bands


def _bands_of_file(rasterio, path):
    with rasterio.open(path) as raster:
        if raster.count == 1:
            return _named_as_files([path])
        names = [name or f"band{k}" for k, name in enumerate(raster.descriptions, 1)]
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: bands must have different descriptions, which name the covariates")
    return {name: (path, k) for k, name in enumerate(names, 1)}


def _check_equal_grid(name, shape, transform, other, other_shape, other_transform):
    """Refuse a raster whose cells are not those of another one."""
    if tuple(shape) != tuple(other_shape):
        raise ValueError(
            f"{name} has {shape[0]} x {shape[1]} cells, {other} {other_shape[0]} x {other_shape[1]}: all layers must "
            "have the same extent and resolution"
        )
    cell = SAME_PLACE * max(abs(transform.a), abs(transform.e), abs(transform.b), abs(transform.d))
    off = np.abs(np.subtract(tuple(transform)[:6], tuple(other_transform)[:6]))
    far = off * [shape[1], shape[0], 1, shape[1], shape[0], 1] > cell
    if far.any():
        raise ValueError(f"{name} covers another extent than {other}: all layers must have the same one")

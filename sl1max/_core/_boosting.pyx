"""AdaBoost for one class against the others: sequential updates of Collins, Schapire and Singer (2002).

    minimise  sum_i u_i loss(y_i score_i),    score = X @ lam + b,    loss(z) = ln(1 + e^-z)  or  e^-z

by one weight at a time, the one whose bound promises the greatest decrease; what regularises is the number of rounds.
The features are the weak learners, each divided by its greatest absolute value as the bound asks, and so is a constant
one, whose weight is b. See _margin.pxd for the bound.

Steps are smoothed as in Schapire and Singer (1999): a constant, half an example or so, is added to W+ and W-, so that
a feature seen on one side only has a finite step. The bound holds for this step too. (BoosTexter adds a share 1 / (2m)
of the total weight, the same at first; as the weight falls it soon smooths nothing. After 400 rounds on three quarters
of Reuters' training stories, 26.96 % of the others had a wrong top class, and the best micro-F was 85.9; here it is
25.38 % and 86.7.)

A round costs what its feature's rows hold, not what X holds. W+ and W- of every feature are kept: a step changes the
weights of the feature's rows, and the differences are added to the sums of all features that these rows hold.
Most rows of a rare class hold none of the features chosen so far. They are inactive: their score is b, they have one
weight in common but for their mass, and their part in W+ and W- is that weight times a sum of masses. So the constant
feature's step, which is taken often, need only look at the rows that are active, and these lie together in memory, in
copies (of 1.0 million nonzeros scattered over 17 million it took 15 ms, and takes 2). Once they hold half of X,
all rows become active, without copies.

Rounding decides nothing. The sums choose a feature, but its step is from a fresh walk of its column; if that promises
less than the sums did, they are put right and choose again. They are taken anew by each step of the constant feature,
when the greatest gain has fallen to a thousandth, and before a run is said to be at its end. Of features that are
equally good to nine digits, such as equal columns, the first is chosen.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport NAN, fabs
from libc.string cimport memcpy, memset

import numpy as np

from sl1max._core._column cimport column_boost, column_split, expect_row, get_column, row_axpy_split, row_at
from sl1max._core._lock cimport ExclusiveLock
from sl1max._core._margin cimport boost_step, margin_loss, margin_weight
from sl1max._core._normalizer cimport interrupted
from sl1max._core._sequential cimport choice_t
from sl1max._core._solver cimport Columns
from sl1max._core._step cimport step_t
from sl1max._core._types cimport (
    INTERRUPTED, RUNNING, STALLED, column_t, columns_t, idx_t, pair_t, ptr_t, state_t, status_t,
)

STATUS = {RUNNING: "running", STALLED: "stalled", INTERRUPTED: "interrupted"}

cdef enum:
    BLOCK = 64          # features that are passed over together
    WHOLE_FROM = 2      # all rows become active if one in so many, or of their nonzeros, would be
    MOST_ROUNDS = 1 << 20   # of one call, since it takes the room for their steps beforehand
    AHEAD = 12          # rows that are asked for before they are needed

cdef double LEAST_EXTENT = 1e-100       # of a column that can be divided by it
cdef double LEAST_GAIN = 1e-16          # relative to the loss at the start
cdef double TIE = 1e-9                  # relative difference of gains that are equal but for rounding
cdef double TRUSTED = 1 - 1e-6          # share of the gain by the sums that a fresh walk must find
cdef double FALL = 1e-3                 # of the greatest gain, after which the sums are taken anew


def weigh_inactive(Columns columns, const double[::1] mass):
    """W+ and W- of every feature, and of a constant one, if all examples are outside the class and weigh their mass."""
    cdef double[:, ::1] sums = np.zeros((2, columns.view.n_cols + 1))
    cdef pair_t pair
    cdef ptr_t j
    with nogil:
        for j in range(columns.view.n_cols + 1):
            pair = column_split(get_column(&columns.view, j), &mass[0])
            sums[0, j], sums[1, j] = pair.second, pair.first
    return np.asarray(sums)


cdef bint poll_owner(void* owner) noexcept nogil:
    with gil:
        return (<Booster> owner).should_stop()


cdef class Booster:
    """One class on its way through the rounds.

    Parameters
    ----------
    columns : Columns
        Without an index of rows all sums are taken anew in every round.
    inactive : float64 array of shape (2, n_cols + 1)
        `weigh_inactive` of the columns and the absolute values of `signed_mass`.
    signed_mass : float64 array of shape (n_samples,)
        y_i u_i: positive for examples of the class, negative for the others; absolute values sum to one.
    exponential : bool
        The exponential loss, else the logistic one.
    intercept : bool
        Have a constant feature too.
    smoothing : float
        What is added to W+ and W-, where an example counts u_i.
    """
    cdef columns_t X
    cdef columns_t near             # the rows that are active, by their place
    cdef ptr_t n_coords
    cdef state_t state              # lam; by place the score, and for flow the signed weight
    cdef const double* mass         # signed, by place
    cdef const double* signed_mass  # by row
    cdef choice_t last
    cdef double smoothing
    cdef double* shrink             # 1 / extent
    cdef double* raised             # (n_cols + 1,) W+ of the rows that are active
    cdef double* lowered            # the same of W-
    cdef double* inactive_raised        # (n_cols + 1,) W+ of the inactive rows, over their common weight
    cdef double* inactive_lowered
    cdef double* growth             # scratch: of the weights of a column's rows
    cdef idx_t* places              # scratch: of a column's rows
    cdef idx_t* place               # (n_rows,) of a row, counted from one; 0 if it is inactive
    # Copies of the active rows. If there is no room for more, all rows become active without copies.
    cdef double* near_mass
    cdef ptr_t* near_start
    cdef idx_t* near_cols
    cdef double* near_values
    cdef ptr_t n_rows_room, nnz_room
    cdef double* whole_score
    cdef double* whole_flow
    cdef bint whole                 # all rows are active, without copies
    cdef double inactive_weight
    cdef bint fresh                 # the sums have not been changed since they were taken
    cdef double fresh_gain          # the greatest gain then
    cdef bint exponential, indexed
    cdef dict arrays
    cdef list coords, deltas        # of all rounds, a pair of arrays for each run
    cdef ExclusiveLock lock
    cdef object owned, stop, pending

    def __init__(self, Columns columns, inactive, const double[::1] signed_mass, *, bint exponential=False,
                 bint intercept=True, double smoothing=0.0):
        self.lock = ExclusiveLock("this Booster is at work in another thread")
        self.owned = (columns, signed_mass)
        self.X = columns.get_view()
        self.n_coords = columns.view.n_cols + intercept
        self.signed_mass = &signed_mass[0]
        self.exponential = exponential
        self.indexed = self.X.row_start != NULL
        self.smoothing = smoothing
        self.coords, self.deltas, self.arrays = [], [], {}
        self.last.coord = -1
        self._allocate_sums(columns.extent, inactive)
        self._allocate_rows(columns.nnz)
        self.state.poll = poll_owner
        self.state.owner = <void*> self
        self.inactive_weight = margin_weight(0.0, exponential)
        with nogil:
            self.activate_class()
            self.take_sums()
            self.state.objective = self.state.objective_zero = self.loss()

    cdef double* _doubles(self, name, array):
        cdef double[::1] view = array
        self.arrays[name] = view
        return &view[0]

    cdef idx_t* _indices(self, name, array):
        cdef idx_t[::1] view = array
        self.arrays[name] = view
        return &view[0]

    def _allocate_sums(self, extent, inactive):
        cdef ptr_t n = self.X.n_cols + 1
        usable = extent > LEAST_EXTENT
        self.shrink = self._doubles("shrink", np.divide(1.0, extent, out=np.zeros(n), where=usable))
        self.state.lam = self._doubles("lam", np.zeros(n))
        self.raised = self._doubles("raised", np.zeros(n))
        self.lowered = self._doubles("lowered", np.zeros(n))
        self.inactive_raised = self._doubles("inactive_raised", np.array(inactive[0]))
        self.inactive_lowered = self._doubles("inactive_lowered", np.array(inactive[1]))

    def _allocate_rows(self, nnz):
        """What is never written to takes no memory."""
        cdef ptr_t m = self.X.n_rows
        self.n_rows_room, self.nnz_room = m // WHOLE_FROM, nnz // WHOLE_FROM
        cdef ptr_t[::1] start = np.zeros(self.n_rows_room + 1, np.int64)
        self.arrays["near_start"] = start
        self.near_start = &start[0]
        self.near_cols = self._indices("near_cols", np.empty(self.nnz_room + 1, np.int32))
        self.near_values = self._doubles("near_values", np.empty(self.nnz_room + 1))
        self.near_mass = self._doubles("near_mass", np.empty(self.n_rows_room + 1))
        self.state.score = self._doubles("score", np.empty(self.n_rows_room + 1))
        self.state.cell_mass = self._doubles("flow", np.empty(self.n_rows_room + 1))
        self.whole_score = self._doubles("whole_score", np.empty(m))
        self.whole_flow = self._doubles("whole_flow", np.empty(m))
        self.growth = self._doubles("growth", np.empty(m))
        self.places = self._indices("places", np.empty(m, np.int32))
        self.place = self._indices("place", np.zeros(m, np.int32))
        self.mass = self.near_mass
        self.near.row_start, self.near.row_cols = self.near_start, self.near_cols
        self.near.row_values = NULL if self.X.row_values == NULL else self.near_values

    cdef bint should_stop(self):
        """Called with the GIL now and then from inside `run`."""
        if self.stop is not None and self.stop[0]:
            return True
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            self.pending = error
            return True
        return False

    cdef double loss(self) noexcept nogil:
        """sum_i u_i loss(y_i score_i)"""
        cdef ptr_t n = self.X.n_cols, k
        cdef double total = self.inactive_lowered[n] * margin_loss(-self.state.lam[n], self.exponential), score
        for k in range(self.near.n_rows):
            score = self.state.score[k]
            total += fabs(self.mass[k]) * margin_loss(score if self.mass[k] > 0.0 else -score, self.exponential)
        return total

    # Rows

    cdef double weight_at_start(self, double mass) noexcept nogil:
        """Signed weight of a row that becomes active: its score is b."""
        cdef double b = self.state.lam[self.X.n_cols]
        return mass * margin_weight(b if mass > 0.0 else -b, self.exponential)

    cdef void activate_class(self) noexcept nogil:
        """The rows of the class; all rows, if they have no index."""
        cdef ptr_t i
        for i in range(self.X.n_rows):
            if not self.whole and (self.signed_mass[i] > 0.0 or not self.indexed):
                self.activate(i)

    cdef void activate_column(self, ptr_t j) noexcept nogil:
        """Activate all rows of a feature before its step, except for the constant feature."""
        cdef column_t column
        cdef ptr_t p
        if j < self.X.n_cols and not self.whole:
            column = get_column(&self.X, j)
            for p in range(column.size):
                self.activate(column.rows[p])
            self.inactive_raised[j] = self.inactive_lowered[j] = 0.0

    cdef void activate(self, ptr_t i) noexcept nogil:
        cdef ptr_t k = self.near.n_rows, n = self.X.n_cols, size
        cdef double mass = self.signed_mass[i]
        if self.whole or self.place[i] > 0:
            return
        size = self.X.row_start[i + 1] - self.X.row_start[i] if self.indexed else 0
        if not self.indexed or k == self.n_rows_room or self.near_start[k] + size > self.nnz_room:
            self.activate_all()
            return
        memcpy(self.near_cols + self.near_start[k], self.X.row_cols + self.X.row_start[i], size * sizeof(idx_t))
        if self.X.row_values != NULL:
            memcpy(self.near_values + self.near_start[k], self.X.row_values + self.X.row_start[i],
                   size * sizeof(double))
        self.near_start[k + 1] = self.near_start[k] + size
        self.near.n_rows += 1
        self.place[i] = self.near.n_rows
        self.near_mass[k] = mass
        self.state.score[k] = self.state.lam[n]
        self.state.cell_mass[k] = self.weight_at_start(mass)
        row_axpy_split(&self.near, k, -fabs(mass), self.inactive_lowered, self.inactive_raised)
        self.inactive_lowered[n] -= fabs(mass)
        self.add_weight(k, fabs(self.state.cell_mass[k]))

    cdef void activate_all(self) noexcept nogil:
        """All rows, each in the place of its number."""
        cdef ptr_t n = self.X.n_cols, i, k
        for i in range(self.X.n_rows):
            k = self.place[i] - 1
            self.whole_score[i] = self.state.lam[n] if k < 0 else self.state.score[k]
            self.whole_flow[i] = self.weight_at_start(self.signed_mass[i]) if k < 0 else self.state.cell_mass[k]
        self.state.score, self.state.cell_mass = self.whole_score, self.whole_flow
        self.mass = self.signed_mass
        self.near = self.X
        self.whole = True
        memset(self.inactive_lowered, 0, (n + 1) * sizeof(double))
        memset(self.inactive_raised, 0, (n + 1) * sizeof(double))
        self.take_sums()

    cdef column_t column_by_place(self, ptr_t j) noexcept nogil:
        """Column j, whose rows are active; of the constant feature, its active rows."""
        cdef column_t column = get_column(&self.X, j)
        cdef ptr_t p
        if j == self.X.n_cols:
            column.size = self.near.n_rows
        elif not self.whole:
            for p in range(column.size):
                self.places[p] = self.place[column.rows[p]] - 1
            column.rows = self.places
        self.state.counters.column_walks += 1
        self.state.counters.nonzeros += column.size
        return column

    # Sums

    cdef void take_sums(self) noexcept nogil:
        """raised and lowered, from nothing."""
        cdef ptr_t n = self.X.n_cols, k
        if self.indexed:
            memset(self.raised, 0, (n + 1) * sizeof(double))
            memset(self.lowered, 0, (n + 1) * sizeof(double))
            for k in range(self.near.n_rows):
                self.add_weight(k, fabs(self.state.cell_mass[k]))
        else:
            for k in range(n + 1):
                self.take_sum(k)
        self.fresh = True

    cdef void take_sum(self, ptr_t j) noexcept nogil:
        """raised and lowered of feature j, by one walk of its column."""
        cdef pair_t weight = column_split(self.column_by_place(j), self.state.cell_mass)
        self.raised[j], self.lowered[j] = weight.first, weight.second

    cdef void add_weight(self, ptr_t k, double weight) noexcept nogil:
        """Add to the weight of the row in place k, in the sums of its features."""
        cdef bint inside = self.mass[k] > 0.0
        cdef double* above = self.raised if inside else self.lowered
        cdef double* below = self.lowered if inside else self.raised
        self.state.counters.nonzeros += row_axpy_split(&self.near, k, weight, above, below)
        above[self.X.n_cols] += weight

    cdef void follow(self, column_t column) noexcept nogil:
        """Let the sums follow, after the weights of a column's rows have grown."""
        cdef ptr_t p
        if column.size == self.near.n_rows or not self.indexed:
            self.take_sums()
            return
        for p in range(column.size):
            expect_row(&self.near, row_at(column, min(p + AHEAD, column.size - 1)))
            self.add_weight(row_at(column, p), self.growth[p])
        self.fresh = False

    # Rounds

    cdef choice_t price(self, ptr_t j) noexcept nogil:
        """The step of feature j, by its sums."""
        cdef double shrink = self.shrink[j]
        cdef double raised = max(self.raised[j] + self.inactive_weight * self.inactive_raised[j], 0.0)
        cdef double lowered = max(self.lowered[j] + self.inactive_weight * self.inactive_lowered[j], 0.0)
        cdef step_t step = boost_step(raised * shrink, lowered * shrink, self.smoothing)
        cdef choice_t choice
        choice.coord, choice.delta, choice.gain = j, step.delta * shrink, step.gain
        return choice

    cdef choice_t best_by_sums(self) noexcept nogil:
        """The best of all features."""
        cdef ptr_t start, end = 0, j
        cdef choice_t best, own
        best.coord, best.delta, best.gain = -1, 0.0, 0.0
        while end < self.n_coords:
            start, end = end, min(end + BLOCK, self.n_coords)
            if not self.may_be_better(start, end, best.gain):
                continue
            for j in range(start, end):
                own = self.price(j)
                if own.gain > (1.0 + TIE) * best.gain:
                    best = own
        self.state.counters.nonzeros += self.n_coords
        return best

    cdef bint may_be_better(self, ptr_t start, ptr_t end, double gain) noexcept nogil:
        """Whether one of some features may have more to gain: at most d^2 / (2 min(W+, W-)), where d = W+ - W-."""
        cdef double common = self.inactive_weight, smoothing = self.smoothing, raised, lowered, bound
        cdef const double* above = self.raised
        cdef const double* below = self.lowered
        cdef const double* inactive_above = self.inactive_raised
        cdef const double* inactive_below = self.inactive_lowered
        cdef const double* shrink = self.shrink
        cdef ptr_t better = 0, j
        for j in range(start, end):
            raised = (above[j] + common * inactive_above[j]) * shrink[j]
            lowered = (below[j] + common * inactive_below[j]) * shrink[j]
            bound = 2.0 * gain * ((raised if raised < lowered else lowered) + smoothing)
            better |= <ptr_t> ((raised - lowered) * (raised - lowered) > bound)
        return better != 0

    cdef choice_t choose(self) noexcept nogil:
        """The step to take, by a fresh walk of its column; coord -1 if none has anything to gain."""
        cdef double least = LEAST_GAIN * self.state.objective_zero
        cdef choice_t believed, found
        while True:
            believed = self.best_by_sums()
            if not self.fresh and believed.gain < max(FALL * self.fresh_gain, least):
                self.take_sums()
                continue
            if self.fresh:
                self.fresh_gain = believed.gain
            if believed.coord < 0 or believed.gain < least:
                believed.coord = -1
                return believed
            self.activate_column(believed.coord)
            self.take_sum(believed.coord)
            found = self.price(believed.coord)
            if found.gain >= TRUSTED * believed.gain:
                return found

    cdef void take_step(self, choice_t choice) noexcept nogil:
        cdef column_t column = self.column_by_place(choice.coord)
        column_boost(column, choice.delta, self.mass, self.state.score, self.state.cell_mass, self.growth,
                     self.exponential)
        self.state.lam[choice.coord] += choice.delta
        self.inactive_weight = margin_weight(-self.state.lam[self.X.n_cols], self.exponential)
        self.follow(column)

    cdef status_t run_rounds(self, ptr_t n, idx_t* coords_out, double* deltas_out) noexcept nogil:
        cdef choice_t choice
        cdef ptr_t k
        for k in range(n):
            choice = self.choose()
            if interrupted(&self.state):
                return INTERRUPTED
            if choice.coord < 0:
                return STALLED
            self.take_step(choice)
            self.state.counters.updates += 1
            self.state.n_iter += 1
            self.last = choice
            coords_out[k] = <idx_t> choice.coord
            deltas_out[k] = choice.delta
        return RUNNING

    def run(self, ptr_t n, stop=None):
        """Go on for at most n rounds; returns "running", "stalled" (no feature has a gain left) or "interrupted".

        A call makes at most MOST_ROUNDS; `n_iter` says how many there have been.
        """
        cdef status_t status
        n = min(n, MOST_ROUNDS)
        cdef idx_t[::1] coords = np.empty(max(n, 1), np.int32)
        cdef double[::1] deltas = np.empty(max(n, 1))
        cdef ptr_t before
        with self.lock:
            before = self.state.n_iter
            self.stop = stop
            self.pending = None
            self.state.stopped = False
            with nogil:
                status = self.run_rounds(n, &coords[0], &deltas[0])
                self.state.objective = self.loss()
            self.coords.append(np.array(coords[:self.state.n_iter - before]))
            self.deltas.append(np.array(deltas[:self.state.n_iter - before]))
            pending, self.pending = self.pending, None
        if pending is not None:
            raise pending
        return STATUS[status]

    def steps(self):
        """Coordinate and delta of every round; coordinate n_cols is the intercept."""
        if not self.coords:
            return np.empty(0, np.int32), np.empty(0)
        return np.concatenate(self.coords), np.concatenate(self.deltas)

    @property
    def last_step(self):
        """The last round as (col, delta, gain); None before the first."""
        return None if self.last.coord < 0 else (self.last.coord, self.last.delta, self.last.gain)

    @property
    def counters(self):
        return {"column_walks": self.state.counters.column_walks, "updates": self.state.counters.updates,
                "nonzeros": self.state.counters.nonzeros}

    def coefficients(self):
        """Weights of all coordinates, the intercept last if there is one."""
        return np.array(self.arrays["lam"])[: self.n_coords]

    objective = property(lambda self: (<Booster> self).state.objective)
    objective_zero = property(lambda self: (<Booster> self).state.objective_zero)
    n_iter = property(lambda self: (<Booster> self).state.n_iter)
    dual_gap = property(lambda self: NAN)       # boosting has no certificate

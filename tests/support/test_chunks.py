"""The driver of long work alone, with numbers of numpy for states: interrupted anywhere, it goes on to the same."""

import errno
import itertools

import chex
import numpy as np
import pytest

from lgsim.support import checkpoint as checkpoints
from lgsim.support import chunks, files
from lgsim.support.checkpoint import Checkpoint
from lgsim.support.chunks import paced, run_in_chunks

LENGTH = 5
START = (np.array(0), np.array([0.1, 0.7]))


def advance(state):
    """A map whose numbers show every lost or repeated step in all digits."""
    count, x = state
    return np.asarray(count + 1), 3.9 * x * (1 - x)


def done(state):
    return int(state[0]) >= LENGTH


@pytest.fixture(scope="module")
def whole():
    """The states after 0, 1, ... chunks of a run without a break."""
    states = [START]
    for _ in range(LENGTH):
        states.append(advance(states[-1]))
    return states


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


def file(path, every=0.0):
    return Checkpoint(path, "mark", every=every)


class Raise:
    """A function that raises an error in its n-th call, and else does what another function does."""

    def __init__(self, error, call, function=lambda *args: None):
        self.error, self.calls, self.function = error, itertools.count(1), function
        self.call = call

    def __call__(self, *args):
        if next(self.calls) == self.call:
            raise self.error
        return self.function(*args)


def test_progress_sees_the_states_around_each_chunk(whole):
    seen = []
    state, interrupted = run_in_chunks(START, advance, done, progress=lambda *pair: seen.append(pair))
    assert not interrupted
    chex.assert_trees_all_equal(state, whole[-1])
    assert len(seen) == LENGTH
    for (before, after), one, other in zip(seen, whole[:-1], whole[1:], strict=True):
        chex.assert_trees_all_equal(before, one)
        chex.assert_trees_all_equal(after, other)


@pytest.mark.parametrize("call", range(1, LENGTH + 1))
@pytest.mark.parametrize("place", ["advance", "progress"])
def test_interrupted_anywhere_the_state_is_whole_and_goes_on_to_the_same(place, call, whole, path):
    """Ctrl-C in each chunk: the state before it, in each call of progress: the one after it."""
    stop = Raise(KeyboardInterrupt, call, advance if place == "advance" else id)
    functions = {"advance": advance, "progress": lambda before, after: None}
    functions[place] = stop if place == "advance" else lambda before, after: stop(after)
    state, interrupted = run_in_chunks(
        START, functions["advance"], done, progress=functions["progress"], checkpoint=file(path, every=1e9)
    )
    finished = call - (place == "advance")
    # what comes after the last chunk is done
    assert interrupted == (finished < LENGTH)
    chex.assert_trees_all_equal(state, whole[finished])
    chex.assert_trees_all_equal(file(path).read(START), whole[finished])
    shown = []
    state, interrupted = run_in_chunks(
        START, advance, done, progress=lambda before, after: shown.append(int(after[0])), checkpoint=file(path)
    )
    assert not interrupted and shown == list(range(finished + 1, LENGTH + 1))
    chex.assert_trees_all_equal(state, whole[-1])


@pytest.mark.parametrize("error", [ValueError("of a user"), SystemExit(3)])
def test_errors_go_through_and_what_was_done_is_kept(error, whole, path):
    with pytest.raises(type(error)):
        run_in_chunks(START, advance, done, progress=Raise(error, 3), checkpoint=file(path, every=1e9))
    chex.assert_trees_all_equal(file(path).read(START), whole[3])
    with pytest.raises(type(error)):
        run_in_chunks(START, Raise(error, 2, advance), done, checkpoint=file(path, every=1e9))
    chex.assert_trees_all_equal(file(path).read(START), whole[4])


def test_an_error_in_the_first_chunk_leaves_no_file(path):
    with pytest.raises(ZeroDivisionError):
        run_in_chunks(START, lambda state: 1 / 0, done, checkpoint=file(path))
    assert not path.exists()


def test_what_is_done_is_not_done_again(whole, path):
    run_in_chunks(START, advance, done, checkpoint=file(path))
    state, interrupted = run_in_chunks(START, Raise(AssertionError, 1), done, checkpoint=file(path))
    assert not interrupted
    chex.assert_trees_all_equal(state, whole[-1])


def test_written_now_and_then_and_at_the_end(path, monkeypatch):
    """By a clock: chunks of 2 s, a write at most every 5 s."""
    clock = [0.0]
    monkeypatch.setattr(checkpoints.time, "perf_counter", lambda: clock[0])
    written = []
    monkeypatch.setattr(checkpoints, "write_whole", lambda path, content: written.append(clock[0]))

    def slow(state):
        clock[0] += 2.0
        return advance(state)

    run_in_chunks(START, slow, done, checkpoint=file(path, every=5.0))
    assert written == [6.0, 10.0]


def test_a_full_disk_leaves_the_file_before_it_whole(whole, path, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        # the third write, of the state after three chunks, and all that follow
        full = OSError(errno.ENOSPC, "No space left on device")
        count = itertools.count(1)
        replace = files.os.replace
        patch.setattr(files.os, "replace", lambda *names: replace(*names) if next(count) < 3 else _raise(full))
        with pytest.raises(
            OSError, match=r"the checkpoint cannot be written.*No space left on device.*resume"
        ) as found:
            run_in_chunks(START, advance, done, checkpoint=file(path))
        assert found.value.errno == errno.ENOSPC and found.value.filename == str(path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    chex.assert_trees_all_equal(file(path).read(START), whole[2])
    state, _ = run_in_chunks(START, advance, done, checkpoint=file(path))
    chex.assert_trees_all_equal(state, whole[-1])


def _raise(error):
    raise error


def test_interrupted_while_it_writes(whole, path, tmp_path, monkeypatch):
    """Once: the last whole state is written all the same. Twice: the file before it stays."""
    replace = files.os.replace
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", Raise(KeyboardInterrupt, 2, replace))
        state, interrupted = run_in_chunks(START, advance, done, checkpoint=file(path))
    assert interrupted
    chex.assert_trees_all_equal(state, whole[2])
    chex.assert_trees_all_equal(file(path).read(START), whole[2])
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", lambda *names: _raise(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_in_chunks(START, advance, done, checkpoint=file(path))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    chex.assert_trees_all_equal(file(path).read(START), whole[2])


def test_a_state_without_arrays(path):
    """Nothing to keep but that it is there."""
    count = itertools.count()
    state, interrupted = run_in_chunks((), lambda state: state, lambda state: next(count) == 2, checkpoint=file(path))
    assert state == () and not interrupted
    assert file(path).read(()) == ()


def test_paced_chunks_take_about_the_same_time(monkeypatch):
    """Of 10 ms a step: 1, 1, 2, 4, 8, 16 steps; once a step takes 100 ms, fewer again. The first one compiles."""
    clock, each = [0.0], [0.01]
    monkeypatch.setattr(chunks.time, "perf_counter", lambda: clock[0])
    taken = []

    def steps(state, count):
        clock[0] += count * each[0] + (5.0 if not taken else 0.0)
        taken.append(count)
        return state + count

    chunk = paced(steps, 0.2)
    state = np.zeros(())
    for _ in range(7):
        state = chunk(state)
    assert taken == [1, 1, 2, 4, 8, 16, 16] and state == sum(taken)
    each[0] = 0.1
    for _ in range(4):
        chunk(state)
    assert taken[7:] == [16, 8, 4, 4]

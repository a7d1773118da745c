"""What methods say of themselves: short for people, everything for fingerprints."""

import inspect
from dataclasses import replace

import pytest

import lgsim
from lgsim.integrators import MuntheKaas
from lgsim.support.fingerprint import fingerprint
from lgsim.support.full_repr import full_reprs


def test_a_method_shows_its_name():
    assert repr(lgsim.MK4) == lgsim.MK4.name and "0.1666" not in str(lgsim.MK4)
    assert str(inspect.signature(lgsim.simulate_adaptive)).count("\n") == 0


def test_fingerprints_still_tell_methods_of_one_name_apart():
    tableau = lgsim.MK4.tableau
    other = MuntheKaas(replace(tableau, b=tuple(reversed(tableau.b))))  # classical Runge-Kutta weights are symmetric
    assert other == lgsim.MK4
    half = MuntheKaas(replace(lgsim.MK2.tableau, name=tableau.name))
    assert repr(half) == repr(lgsim.MK4) and fingerprint(half) != fingerprint(lgsim.MK4)
    with full_reprs():
        assert repr(half) != repr(lgsim.MK4) and "tableau=" in repr(half)


def test_adaptive_steps_are_found_without_an_import_of_their_own():
    pytest.importorskip("diffrax")
    assert callable(lgsim.integrators.adaptive.solve)
    with pytest.raises(AttributeError, match=r"lgsim\.integrators' has no attribute 'adaptiv'"):
        lgsim.integrators.adaptiv  # noqa: B018

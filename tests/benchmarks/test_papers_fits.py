import pytest

from benchmarks.papers.fits import Fit, fits

SIZES = (1, 2, 4, 8, 16, 32)


def test_laws_are_found_again():
    made = Fit("USL", 7.0, 0.05, 0.002, 0.0)
    amdahl, usl = fits({size: made.seconds(size) for size in SIZES})
    assert (usl.sigma, usl.kappa) == (pytest.approx(0.05, abs=1e-3), pytest.approx(0.002, abs=1e-4))
    assert usl.first == pytest.approx(7.0, rel=0.01)
    assert usl.error < 1e-3 < amdahl.error
    assert usl.best == pytest.approx((0.95 / 0.002) ** 0.5, rel=0.03)


def test_amdahls_law_has_a_serial_part():
    serial = 0.1
    amdahl, usl = fits({size: 3 * (serial + (1 - serial) / size) for size in SIZES})
    assert amdahl.sigma == pytest.approx(serial, abs=1e-3)
    assert usl.kappa == pytest.approx(0.0, abs=1e-4)

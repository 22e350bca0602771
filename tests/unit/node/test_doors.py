from isthmus.node.service.doors import Bounds, Rates


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_address_has_a_burst_and_then_a_rate():
    clock = Clock()
    rates = Rates(Bounds(burst=3, rate=0.5), clock)
    assert [rates.take("a") for _ in range(4)] == [True, True, True, False]
    clock.now += 2
    assert [rates.take("a") for _ in range(2)] == [True, False]


def test_one_address_takes_nothing_from_another():
    rates = Rates(Bounds(burst=1, rate=0), Clock())
    assert rates.take("a")
    assert not rates.take("a")
    assert rates.take("b")


def test_no_more_than_so_many_addresses_are_remembered():
    rates = Rates(Bounds(burst=1, rate=0, addresses=2), Clock())
    assert all(rates.take(f"a{number}") for number in range(100))
    assert len(rates._left) == 2

"""How work is dealt to players: hands whole, no new one after the end, and no player left open."""

import threading

import pytest

from gradspec._engine._pool import deal


class Player:
    """Writes down what happens to it."""

    def __init__(self):
        self.events = []

    def start(self):
        self.events.append("start")

    def close(self):
        self.events.append("close")


def test_that_a_hand_is_played_whole_and_in_order_by_one_player():
    players, played = [Player() for _ in range(3)], []
    hands = [[(hand, item) for item in range(5)] for hand in range(20)]

    left = deal(hands, players, lambda player, item: played.append((item, id(player))))

    assert left == 0
    assert sorted(item for item, _ in played) == [item for hand in hands for item in hand]
    for number in range(20):
        of_it = [(item, player) for (hand, item), player in played if hand == number]
        assert [item for item, _ in of_it] == list(range(5))
        assert len({player for _, player in of_it}) == 1


def test_that_whoever_is_free_takes_the_next_hand():
    slow, quick = Player(), Player()
    took, go = {id(slow): 0, id(quick): 0}, threading.Event()

    def play(player, item):
        took[id(player)] += 1
        if player is slow:
            go.wait(20)
        elif sum(took.values()) == 10:
            go.set()

    deal([[k] for k in range(10)], [slow, quick], play)

    assert took[id(slow)] <= 1
    assert took[id(quick)] >= 9


def test_that_every_player_is_closed_after_an_error_and_the_others_take_nothing_more():
    players, played = [Player(), Player()], []
    other = threading.Event()

    def play(player, item):
        played.append(item)
        if player is players[0]:
            other.wait(20)
            raise ValueError("no more")
        other.set()
        while "close" not in player.events:  # a child that is closed answers, and its thread goes on
            pass

    with pytest.raises(ValueError, match="no more"):
        deal([[1], [2], [3], [4]], players, play)

    assert sorted(played) == [1, 2]
    assert all(player.events[-1] == "close" for player in players)


def test_that_the_first_hand_is_played_in_any_case_and_none_after_the_end():
    played = []

    assert deal([[1], [2], [3]], [Player(), Player()], lambda _, item: played.append(item), on=lambda: False) == 2
    assert played == [1]

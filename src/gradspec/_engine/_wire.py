"""Answers on a pipe: each in a frame with its number and its sender, told from whatever else is written there."""

from __future__ import annotations

import hashlib
import os
import struct

#: What a frame begins with. No text begins so.
_MARK = b"\x00gradspec\xffanswer\x00"
#: The mark, the number of the question, the process that answers, and the length and the hash of the answer.
_HEAD = struct.Struct(f">{len(_MARK)}sQQQ16s")
#: How many bytes are read at a time.
_PIECE = 1 << 16


class ForeignError(Exception):
    """What came is not the answer to the question: somebody else wrote to the pipe, or closed it."""


def send(descriptor: int, number: int, answer: bytes) -> None:
    """Write the answer of this process to the question of a number.

    Raises:
        OSError: the pipe is closed.
    """
    left = memoryview(_HEAD.pack(_MARK, number, os.getpid(), len(answer), _hash(answer)) + answer)
    while left:
        left = left[os.write(descriptor, left) :]


class Frame:
    """The answer to a question, as it comes in, piece by piece.

    Args:
        number: the number of the question.
        sender: the process that was asked.
    """

    def __init__(self, number: int, sender: int) -> None:
        self._expected = number, sender
        self._come = bytearray()

    def read(self, descriptor: int) -> bytes | None:
        """Read what is there; return the answer once it is whole.

        Raises:
            ForeignError: it is not the answer that was asked for.
            EOFError: the pipe ends.
        """
        piece = os.read(descriptor, _PIECE)
        if not piece:
            raise EOFError
        self._come += piece
        begins = self._come[: len(_MARK)]
        if begins != _MARK[: len(begins)]:
            raise ForeignError("bytes that are no answer")
        if len(self._come) < _HEAD.size:
            return None
        _, number, sender, length, digest = _HEAD.unpack_from(self._come)
        if (number, sender) != self._expected:
            raise ForeignError("an answer to another question, or of another process")
        if len(self._come) < _HEAD.size + length:
            return None
        answer = bytes(self._come[_HEAD.size :])
        if _hash(answer) != digest:  # also where more came than was announced
            raise ForeignError("bytes that are no answer, among those of one")
        return answer


def _hash(answer: bytes) -> bytes:
    return hashlib.blake2b(answer, digest_size=16).digest()

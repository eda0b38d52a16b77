"""What the answers of one list over EmbedStream hold."""

from __future__ import annotations

from typing import List

from encoderd.errors import count_prompt, from_status
from encoderd.inputs import Part
from encoderd.results import Embedding, SameModel, check_count, read_embedding
from encoderd.v1 import encoder_pb2


class Answers:
    """All have vectors of one model and of one width.

    prompted: whether the requests name a prompt. keep_errors: whether the
        caller keeps the errors of inputs; the remedies depend on it.
    fingerprint: that the model must have; "": any.
    """

    def __init__(self, precision: str, *, prompted: bool, keep_errors: bool,
                 fingerprint: str):
        self._precision = precision
        self._prompted = prompted
        self._keep_errors = keep_errors
        self._width = 0  # bytes of a vector; 0: none came yet
        self._model = SameModel(fingerprint)

    def read(self, part: Part, response: encoder_pb2.EmbedResponse
             ) -> List[Embedding]:
        """Results of all inputs of a part, those that were not sent too."""
        self._model.check(response)
        check_count(len(response.embeddings), len(part.inputs))
        answers = dict(zip(part.places, response.embeddings))
        results = []
        for place, value in enumerate(part.values, part.first):
            answer = answers.get(place)
            if answer is None:
                error = part.errors[place]
            elif answer.HasField("error"):
                error = count_prompt(from_status(answer.error, part.places),
                                     self._prompted, self._keep_errors)
            else:
                self._width = self._width or len(answer.packed)
                results.append(read_embedding(place, value, answer,
                                              self._precision, self._width,
                                              response.fingerprint))
                continue
            results.append(Embedding(place, value, error=error))
        return results

    def without_answer(self, part: Part) -> List[Embedding]:
        """Results of a part of which no input was sent."""
        return self.read(part, encoder_pb2.EmbedResponse())

// One word -> token ids: what is done to the pieces that a pre-tokenizer cuts.
//
// A model is constant after it is built and shared by all threads; each thread
// brings its own Scratch.
#ifndef ENCODERD_ENGINE_TOKENIZER_TOKEN_MODEL_H_
#define ENCODERD_ENGINE_TOKENIZER_TOKEN_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace encoderd {

class TokenModel {
 public:
  // A token of a word and the bytes of the word that it stands for.
  struct Piece {
    int32_t id = 0;
    int32_t begin = 0;
    int32_t end = 0;
  };

  // Buffers of one thread; each model derives its own.
  class Scratch {
   public:
    virtual ~Scratch() = default;
    // Gives back what a very long word took.
    virtual void Shrink() = 0;

    std::vector<Piece> pieces;  // of the last word
  };

  virtual ~TokenModel() = default;

  virtual std::unique_ptr<Scratch> NewScratch() const = 0;

  // Puts the tokens of `word`, not empty, into scratch->pieces: at most one for
  // each byte. Time n log n in its bytes.
  virtual void Encode(absl::string_view word, Scratch* scratch) const = 0;

  // What the reference holds for the text of token `id`, which stands for
  // `surface`: the vocabulary's entry or the surface itself.
  virtual absl::string_view Value(int32_t id,
                                  absl::string_view surface) const = 0;

  virtual const std::vector<std::string>& vocabulary() const = 0;  // [id]
  virtual const std::string& algorithm() const = 0;  // "BPE", "Unigram"
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_TOKEN_MODEL_H_

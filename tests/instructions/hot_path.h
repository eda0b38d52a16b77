// Hot paths as fixed pieces of work, whose instructions are counted.
//
// A path works on one thread, on data that is the same in every run, and takes
// no decision by a clock or by random numbers: its count of instructions is a
// property of the program. Nothing here chooses its code by the kind of CPU
// except the C library, to which valgrind shows the same CPU on every machine
// with AVX2.
#ifndef ENCODERD_TESTS_INSTRUCTIONS_HOT_PATH_H_
#define ENCODERD_TESTS_INSTRUCTIONS_HOT_PATH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/base/batch.h"
#include "server/api/options.h"

namespace encoderd {

class HotPath {
 public:
  virtual ~HotPath() = default;
  // Makes what one Run uses up. Not counted.
  virtual void Prepare() {}
  // The counted work. A figure of its results, the same in every run.
  virtual int64_t Run() = 0;
};
using HotPathPtr = std::unique_ptr<HotPath>;

// Texts -> ids with an empty word cache, by NAME_tokenizer.json of
// tests/golden/data. offsets: with what Tokenize reports for each token.
HotPathPtr MakeTokenizerPath(const std::string& name, bool offsets);

// Sequences are checked and packed into batches.
HotPathPtr MakePackPath();
// Token states -> normalized vectors, by every kind of pooling.
HotPathPtr MakePoolingPath();
// Which sequences go into the next batch, with 16 callers waiting.
HotPathPtr MakePolicyPath();
// Requests from admission to their results over a device that computes nothing:
// the pipeline without its threads.
HotPathPtr MakePipelinePath();

// The bytes of an Embed call -> a checked job; of texts, or of lists of ids.
HotPathPtr MakeRequestPath(bool ids);
// Results of the pipeline -> the bytes of the answer. packed: vectors as bytes
// in `encoding`.
HotPathPtr MakeAnswerPath(bool packed, EncodingChoice encoding);

// `count` texts of 12 sentences each, three quarters of them in English.
std::vector<std::string> FixedTexts(int count);
// `count` sequences of 4 to 127 tokens, most of them short; ids below 200.
std::vector<TokenSequence> FixedSequences(int count);
// `count` values from -1 to 1.
std::vector<float> FixedValues(int64_t count);

// Ends the program unless `ok`: what is counted must be what was meant.
void Require(bool ok, absl::string_view what);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_INSTRUCTIONS_HOT_PATH_H_

// Tokenizers, on texts with new words and with words seen before.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/instructions/hot_path.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr char kTokenizers[] = ENCODERD_SOURCE_DIR "/tests/golden/data";
constexpr int64_t kMaxFileBytes = 1 << 20;
constexpr int kTexts = 64;
// All texts with each; offsets, which no cache holds, take 20 times as much.
constexpr int kCaches = 4;
constexpr int kCachesForOffsets = 1;

class TokenizerPath final : public HotPath {
 public:
  TokenizerPath(const std::string& name, bool offsets)
      : options_{offsets}, texts_(FixedTexts(kTexts)) {
    const std::string file = absl::StrCat(name, "_tokenizer.json");
    const auto json = ReadWholeFile(kTokenizers, file, kMaxFileBytes);
    Require(json.ok(), json.status().ToString());
    TempFolder folder;
    folder.Write("tokenizer.json", *json);
    auto tokenizer = Tokenizer::Load(folder.path());
    Require(tokenizer.ok(), tokenizer.status().ToString());
    tokenizer_ = *std::move(tokenizer);
  }

  void Prepare() override {
    scratches_.clear();
    const int caches = options_.offsets ? kCachesForOffsets : kCaches;
    for (int i = 0; i < caches; ++i) {
      scratches_.push_back(tokenizer_->NewScratch());
    }
  }

  int64_t Run() override {
    int64_t figure = 0;
    for (const TokenizerScratchPtr& scratch : scratches_) {
      for (const std::string& text : texts_) {
        const absl::Status status =
            tokenizer_->Encode(text, options_, scratch.get(), &encoding_);
        Require(status.ok(), "a text has no ids");
        figure += static_cast<int64_t>(encoding_.token_ids.size()) +
                  encoding_.token_ids[encoding_.token_ids.size() / 2];
      }
    }
    return figure;
  }

 private:
  const Tokenizer::EncodeOptions options_;
  const std::vector<std::string> texts_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::vector<TokenizerScratchPtr> scratches_;
  Encoding encoding_;
};

}  // namespace

HotPathPtr MakeTokenizerPath(const std::string& name, bool offsets) {
  return std::make_unique<TokenizerPath>(name, offsets);
}

}  // namespace encoderd

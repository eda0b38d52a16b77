#include "engine/model.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/head_files.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/device/device.h"
#include "engine/digest_thread.h"
#include "engine/encoder.h"
#include "engine/fingerprint.h"
#include "engine/head_session.h"
#include "engine/io/manifest.h"
#include "engine/io/sha256.h"

namespace encoderd {
namespace {

// An id that the tokenizer can make must have its row.
absl::Status CheckVocabulary(const Tokenizer& tokenizer,
                             const ModelConfig& config, ModelInfo* info) {
  const int32_t rows = info->limits.token_rows;
  int32_t words = tokenizer.vocab_size();
  // An empty line at the end of vocab.txt: no text has its id.
  while (words > rows && tokenizer.Token(words - 1).empty()) --words;
  if (words > rows) {
    return absl::DataLossError(absl::StrCat("the tokenizer has ids for ", words,
                                            " tokens; the token table has ",
                                            rows, " rows"));
  }
  if (words < rows) {
    info->notes.push_back(absl::StrCat(
        rows - words, " of the token table's ", rows,
        " rows are never used: the tokenizer has ", words, " tokens"));
  }
  const int32_t pair = tokenizer.num_special_tokens(/*pair=*/true);
  const int32_t single = tokenizer.num_special_tokens(/*pair=*/false);
  const int32_t special = std::max(pair, single);
  if (info->limits.max_len > special) return absl::OkStatus();
  const std::string& setting = config.max_len_setting;
  return absl::InvalidArgumentError(absl::StrCat(
      "max_len is ", info->limits.max_len, setting.empty() ? "" : ", by ",
      setting, "; special tokens alone take ", special,
      pair > single ? " in a pair" : ""));
}

// Gives freed memory back to the system: the last layer's host copy and the
// parsed tokenizer files, which glibc would keep for the process's whole life
// (9 MB of 122 with MiniLM in fp32; more with wider layers).
void TrimHeap() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

class LoadedModel : public Model {
 public:
  LoadedModel(ModelInfo info, std::unique_ptr<const Tokenizer> tokenizer,
              std::unique_ptr<const Encoder> encoder,
              std::unique_ptr<const Head> head)
      : info_(std::move(info)),
        tokenizer_(std::move(tokenizer)),
        encoder_(std::move(encoder)),
        head_(std::move(head)) {}

  const ModelInfo& info() const override { return info_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const HostMatrix& position_rows() const override {
    return encoder_->position_rows();
  }
  absl::StatusOr<std::unique_ptr<Session>> NewSession(
      const SessionOptions& options) const override {
    try {
      auto session = encoder_->NewSession(options);
      if (!session.ok() || head_ == nullptr) return session;
      return NewHeadSession(*std::move(session), head_.get());
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("no memory for a session");
    }
  }

 private:
  const ModelInfo info_;
  const std::unique_ptr<const Tokenizer> tokenizer_;
  const std::unique_ptr<const Encoder> encoder_;
  const std::unique_ptr<const Head> head_;  // null: nothing after pooling
};

// Of the encoder's weights; with weights after pooling: of all their digests,
// joined by newlines.
absl::StatusOr<std::string> Digest(DigestThread* weights,
                                   const HeadCheckpoint& head) {
  absl::StatusOr<std::string> digest = weights->Wait();
  if (!digest.ok() || head.sha256.empty()) return digest;
  return Sha256OfString(
      absl::StrCat(*digest, "\n", absl::StrJoin(head.sha256, "\n")));
}

void Append(const std::vector<std::string>& from,
            std::vector<std::string>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

absl::StatusOr<std::shared_ptr<const Model>> LoadFolder(
    const std::string& folder, const ModelOptions& options) {
  const absl::Status is_folder = CheckModelFolder(folder);
  if (!is_folder.ok()) return is_folder;
  absl::StatusOr<int64_t> manifest = CheckManifest(folder);
  if (!manifest.ok()) return manifest.status();
  absl::StatusOr<ModelConfig> config = LoadModelConfig(folder, options.max_len);
  if (!config.ok()) return config.status();
  ModelInfo info;
  if (*manifest > 0) {
    info.notes.push_back(absl::StrCat("the SHA-256 of ", *manifest,
                                      " files is as ", kManifestName, " says"));
  }
  info.limits = config->limits();
  Append(config->notes, &info.notes);
  info.parameters = CountParameters(*config);

  absl::StatusOr<std::unique_ptr<CheckpointReader>> checkpoint =
      CheckpointReader::Open(folder, *config, /*verified=*/*manifest > 0);
  if (!checkpoint.ok()) return checkpoint.status();
  // First: of a large model it takes longest.
  DigestThread digest_of_weights(checkpoint->get());

  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer =
      Tokenizer::Load(folder, {.subfolder = config->transformer_folder,
                               .lowercase = config->lowercase,
                               .token_rows = config->vocab_size,
                               .refuse_segments = config->segments_of_tokens});
  if (!tokenizer.ok()) return tokenizer.status();
  absl::Status status = CheckVocabulary(**tokenizer, *config, &info);
  if (!status.ok()) return status;
  info.tokenizer = (*tokenizer)->algorithm();
  const TokenizerRemarks& remarks = (*tokenizer)->remarks();
  Append(remarks.notes, &info.notes);
  Append(remarks.warnings, &config->warnings);
  Append((*checkpoint)->notes(), &info.notes);
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(
      options.device, options.dtype, options.tuning_folder, options.products);
  if (!device.ok()) return device.status();
  (*device)->AllowGraphs(options.cuda_graphs);
  absl::StatusOr<std::unique_ptr<const Encoder>> encoder =
      Encoder::Build(*std::move(device), *config, checkpoint->get());
  if (!encoder.ok()) return encoder.status();
  info.device = (*encoder)->device().name();
  info.on_gpu = (*encoder)->device().on_gpu();
  Append((*encoder)->device().notes(), &info.notes);
  info.preferred_sessions = (*encoder)->device().preferred_sessions();
  info.least_sessions = (*encoder)->device().least_sessions();
  info.pauses = (*encoder)->device().pauses();
  info.dtype = (*encoder)->device().products();
  absl::StatusOr<HeadCheckpoint> head = ReadHead(folder, config->head);
  if (!head.ok()) return head.status();
  absl::StatusOr<std::string> digest = Digest(&digest_of_weights, *head);
  if (!digest.ok()) return digest.status();
  info.weights_sha256 = *std::move(digest);
  info.config = *std::move(config);
  absl::StatusOr<std::string> fingerprint = Fingerprint(info, **tokenizer);
  if (!fingerprint.ok()) return fingerprint.status();
  info.fingerprint = *std::move(fingerprint);
  checkpoint->reset();  // nobody reads it any more
  TrimHeap();
  return std::make_shared<const LoadedModel>(
      std::move(info), *std::move(tokenizer), *std::move(encoder),
      std::move(head->head));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Model>> Model::Load(
    const std::string& folder, const ModelOptions& options) {
  // What a library throws at a file that nobody thought of ends here.
  try {
    return LoadFolder(folder, options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory to load the model in ", folder));
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat("the model in ", folder,
                                            " cannot be read: ", error.what()));
  }
}

}  // namespace encoderd

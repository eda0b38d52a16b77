#include "client/cpp/encoderctl/bulk_embed.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/job.h"
#include "client/cpp/encoderctl/journal.h"
#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/encoderctl/row_file.h"
#include "client/cpp/encoderctl/signals.h"
#include "client/cpp/encoderctl/text_source.h"
#include "client/cpp/error.h"
#include "client/cpp/requests.h"

namespace encoderd::ctl {
namespace {

constexpr int kTickMs = 100;  // asks whether to stop

// A line of a .jsonl: a string, or an object with the text in `field`.
absl::StatusOr<std::string> ReadJson(const std::string& line,
                                     const std::string& field, int64_t index) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "inputs[", index, "] is no JSON from byte ", error.byte, " on"));
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError(absl::StrCat(
        "inputs[", index, "] has a number that no double can hold"));
  }
  if (json.is_string()) return json.get<std::string>();
  if (json.is_object() && json.contains(field) && json[field].is_string()) {
    return json[field].get<std::string>();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("inputs[", index,
                   "] is no JSON string and no JSON object with a string "
                   "in \"",
                   field, "\""));
}

RowLayout LayoutOf(const std::string& encoding, int64_t dimensions) {
  if (encoding == "float16") return {"<f2", dimensions, 2};
  if (encoding == "int8") return {"|i1", dimensions, 1};
  if (encoding == "uint8") return {"|u1", dimensions, 1};
  if (encoding == "binary") return {"|i1", (dimensions + 7) / 8, 1};
  if (encoding == "ubinary") return {"|u1", (dimensions + 7) / 8, 1};
  return {"<f4", dimensions, 4};
}

// The same bytes for the same message, maps included.
std::string Deterministic(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// What changes a row; whether a bad text ends the run does not.
std::string OptionsBytes(client::EmbedOptions options) {
  options.on_error = v1::ON_ERROR_PER_INPUT;
  return Deterministic(client::ToRequest(options).options());
}

// Names the work: any change of input, model or options is other work.
std::string NameWork(const Invocation& invocation, const BulkChoices& choices,
                     const v1::Model& model) {
  struct stat file = {};
  stat(invocation.settings.input.c_str(), &file);
  nlohmann::ordered_json json;
  json["journal"] = 1;
  json["input"] = invocation.settings.input;
  json["bytes"] = file.st_size;
  json["modified"] = {file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
  json["input_format"] = choices.input_format;
  json["field"] = choices.field;
  // Weights, pooling, dtype, max_len, prompts: whatever the server tells.
  v1::Model told = model;
  told.clear_max_inputs_per_request();
  json["model"] = absl::BytesToHexString(Deterministic(told));
  json["options"] = absl::BytesToHexString(OptionsBytes(choices.embed));
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

class BulkRun {
 public:
  BulkRun(const Invocation& invocation, const BulkChoices& choices)
      : invocation_(invocation), choices_(choices) {}

  int Run() {
    const Settings& settings = invocation_.settings;
    if (settings.in_flight > client::kMostCallsInFlight) {
      return invocation_.Usage(
          absl::StrCat("--in_flight is ", settings.in_flight,
                       "; into an .npy at most ", client::kMostCallsInFlight));
    }
    auto source = TextSource::Open(invocation_.positional, settings.input,
                                   invocation_.environment.in);
    if (!source.ok()) return invocation_.Usage(source.status().message());
    source_ = *std::move(source);
    auto client = invocation_.Connect();
    if (!client.ok()) return invocation_.Usage(client.status().message());
    const auto model = (*client)->GetModel(settings.model);
    if (!model.ok()) return invocation_.Fail(model.status());
    const absl::Status opened = OpenOutput(*model);
    if (!opened.ok()) return invocation_.Usage(opened.message());
    ExplainSilence(invocation_);
    const StopOnSignal stop;
    stop_ = &stop;
    const absl::Status status = Work(**client);
    stop_ = nullptr;
    return Report(status);
  }

 private:
  absl::Status OpenOutput(const v1::Model& model) {
    const std::string& output = invocation_.settings.output;
    const uint32_t asked = choices_.embed.dimensions;
    layout_ =
        LayoutOf(choices_.encoding, asked > 0 ? asked : model.dimensions());
    const bool own_ranges =
        choices_.encoding == "int8" || choices_.encoding == "uint8";
    const std::string scales = absl::StrCat(output, ".scales.npy");
    const RowLayout scale_layout{"<f4", 1, 4};
    const bool from_file =
        invocation_.positional.empty() && invocation_.settings.input != "-";
    resumable_ = from_file && choices_.resume;
    most_texts_ = static_cast<int>(model.max_inputs_per_request());
    const std::string journal = absl::StrCat(output, ".journal");
    for (const std::string& path : {scales, journal}) {
      if (!invocation_.WouldOverwriteInput(path)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(path,
                       ", which goes with --output, is the file of "
                       "--input"));
    }
    const absl::Status locked = lock_.Take(output);
    if (!locked.ok()) return locked;
    const std::string work = NameWork(invocation_, choices_, model);
    if (resumable_) {
      bool other = false;
      done_ = ReadJournal(journal, work, &other);
      if (!RowFile::Holds(output, layout_, done_.rows) ||
          (own_ranges && !RowFile::Holds(scales, scale_layout, done_.rows))) {
        done_ = {};
      }
      if (other) {
        invocation_.environment.err
            << journal << " is of other work (the input, the model or the "
            << "options changed); starting anew\n";
      }
    }
    auto rows = RowFile::Open(output, layout_, done_.rows);
    if (!rows.ok()) return rows.status();
    rows_ = *std::move(rows);
    if (own_ranges) {
      auto file = RowFile::Open(scales, scale_layout, done_.rows);
      if (!file.ok()) return file.status();
      scales_ = *std::move(file);
    }
    before_ = done_.rows;
    if (done_.rows > 0) {
      source_->Skip(done_.rows, done_.bytes);
      invocation_.environment.err << "going on after " << done_.rows
                                  << " texts that are done\n";
    }
    if (!from_file) return absl::OkStatus();
    return journal_.Begin(journal, work, done_);
  }

  // Until there is something to read: a signal does not end a blocked read.
  absl::Status AwaitInput() {
    pollfd input = {invocation_.environment.in_descriptor, POLLIN, 0};
    if (input.fd < 0) return absl::OkStatus();
    while (source_->NeedsMore() && poll(&input, 1, kTickMs) <= 0) {
      if (stop_->wanted()) return absl::CancelledError("stopped");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Next(v1::Input* input, absl::Status* refused) {
    const absl::Status ready = AwaitInput();
    if (!ready.ok()) return ready;
    const absl::StatusOr<bool> more =
        source_->Next(input->mutable_text(), refused);
    if (!more.ok() || !*more) return more;
    ends_.push_back(source_->bytes_read());
    if (!refused->ok()) return true;
    const std::string& file = invocation_.settings.input;
    if (choices_.input_format == "jsonl" ||
        (choices_.input_format == "auto" && absl::EndsWith(file, ".jsonl"))) {
      auto text =
          ReadJson(input->text(), choices_.field, source_->texts_read() - 1);
      if (!text.ok()) *refused = text.status();
      if (text.ok()) input->set_text(*std::move(text));
    }
    return true;
  }

  absl::Status Work(const client::Client& client) {
    Progress progress(
        ShowProgress(invocation_) ? &invocation_.environment.err : nullptr,
        source_->Progress());
    progress_ = &progress;
    client::BulkOptions options;
    options.first_input = done_.rows;
    options.texts_per_call = invocation_.settings.batch_size;
    if (most_texts_ > 0) {
      options.texts_per_call = std::min(options.texts_per_call, most_texts_);
    }
    options.calls_in_flight = invocation_.settings.in_flight;
    options.patience = invocation_.settings.timeout;
    options.stop = [this] { return stop_->wanted(); };
    absl::Status status = client.EmbedBulk(
        [this](v1::Input* input, absl::Status* refused) {
          return Next(input, refused);
        },
        choices_.embed, options,
        [this](const client::BulkAnswer& answer) { return Take(answer); });
    progress_ = nullptr;
    progress.Clear();
    status.Update(rows_->WriteHead());
    if (scales_ != nullptr) status.Update(scales_->WriteHead());
    return status;
  }

  // Writes the rows of an answer up to the first bad text, if that ends it.
  absl::Status Take(const client::BulkAnswer& answer) {
    std::string rows;
    std::string scales;
    absl::Status bad;
    int64_t count = 0;
    for (size_t i = 0; i < answer.errors.size(); ++i) {
      const v1::Embedding& embedding = answer.embeddings[i];
      bad = answer.errors[i];
      if (!bad.ok()) {
        bad_line_ = answer.first_input + static_cast<int64_t>(i);
        if (!skip_bad()) break;
        Skip(bad);
        bad = absl::OkStatus();
        rows.append(layout_.row_bytes(), '\0');
      } else if (static_cast<int64_t>(embedding.packed().size()) !=
                 layout_.row_bytes()) {
        bad = absl::InternalError(absl::StrCat(
            "the server answered a vector of ", embedding.packed().size(),
            " bytes; expected ", layout_.row_bytes()));
        break;
      } else {
        long_texts_.Count(embedding.truncated(), embedding.windows());
        rows += embedding.packed();
      }
      const float scale = embedding.scale();
      scales.append(reinterpret_cast<const char*>(&scale), sizeof(scale));
      done_.bytes = ends_.front();
      ends_.pop_front();
      ++count;
    }
    done_.rows += count;
    absl::Status status = rows_->Append(rows);
    if (scales_ != nullptr) status.Update(scales_->Append(scales));
    status.Update(rows_->Flush());
    if (scales_ != nullptr) status.Update(scales_->Flush());
    if (status.ok()) status = journal_.Add(done_);
    status.Update(bad);
    progress_->Update(done_.rows - before_,
                      source_->Share(done_.rows, done_.bytes));
    return status;
  }

  void Skip(const absl::Status& error) {
    ++skipped_;
    progress_->Clear();
    invocation_.environment.err << source_->NameOf(bad_line_)
                                << ": skipped: " << client::Describe(error)
                                << "\n";
  }

  bool skip_bad() const {
    return choices_.embed.on_error == v1::ON_ERROR_PER_INPUT;
  }

  const char* HowToGoOn() const {
    return resumable_ ? "; the same command goes on from there" : "";
  }

  int Report(const absl::Status& status) {
    long_texts_.Tell(invocation_.environment.err);
    if (absl::IsCancelled(status)) {
      invocation_.environment.err << "encoderctl " << invocation_.command.name
                                  << ": stopped after " << done_.rows
                                  << " texts" << HowToGoOn() << "\n";
      return kExitFailed;
    }
    if (!status.ok()) {
      const bool blames = bad_line_ >= 0 && !skip_bad();
      const int code =
          invocation_.Fail(status, blames ? source_->NameOf(bad_line_) : "");
      // A bad text must change first, and then it is other work.
      if (!blames && resumable_ && done_.rows > 0) {
        invocation_.environment.err << done_.rows << " texts are done"
                                    << HowToGoOn() << "\n";
      }
      return code;
    }
    journal_.Remove();
    if (source_->texts_read() == 0) {
      return invocation_.Usage("there are no texts to work on");
    }
    if (skipped_ > 0) {
      invocation_.environment.err << skipped_ << " of " << done_.rows - before_
                                  << " texts were skipped; their rows are 0\n";
    }
    return kExitOk;
  }

  const Invocation& invocation_;
  const BulkChoices& choices_;
  const StopOnSignal* stop_ = nullptr;  // while it works
  OutputLock lock_;
  std::unique_ptr<TextSource> source_;
  RowLayout layout_;
  std::unique_ptr<RowFile> rows_;
  std::unique_ptr<RowFile> scales_;  // null: no scales
  Journal journal_;
  std::deque<int64_t> ends_;  // of each text that was read and not answered
  Progressed done_;
  bool resumable_ = false;
  int most_texts_ = 0;  // of one request, as the server has it; 0: not known
  int64_t before_ = 0;  // rows of earlier runs
  int64_t skipped_ = 0;
  LongTexts long_texts_;
  int64_t bad_line_ = -1;
  Progress* progress_ = nullptr;
};

}  // namespace

int RunBulkEmbed(const Invocation& invocation, const BulkChoices& choices) {
  return BulkRun(invocation, choices).Run();
}

}  // namespace encoderd::ctl

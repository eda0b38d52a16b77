// Files that cannot be opened, read, written or replaced: each failure names
// the file, and what was there before stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/io/write_file.h"
#include "engine/model.h"
#include "server/flag_check.h"
#include "server/security/secrets.h"
#include "tests/support/certificates.h"
#include "tests/support/faults.h"
#include "tests/support/random_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using absl::StatusCode;
using ::testing::AnyOf;

// Too few descriptors and a disk that does not answer may pass; the others are
// the file's, for which its reader has a code.
StatusCode CodeOf(int error, StatusCode of_the_file) {
  if (error == EMFILE) return StatusCode::kResourceExhausted;
  return FileErrorMayPass(error) ? StatusCode::kUnavailable : of_the_file;
}

// Every single call in turn, of all that loading a model makes.
TEST(FaultFileTest, AModelWhoseFilesCannotBeReadIsRefusedByTheFilesName) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  const std::pair<FaultPoint, int> kCases[] = {
      {FaultPoint::kOpen, EMFILE},   {FaultPoint::kStat, EIO},
      {FaultPoint::kReadAt, EIO},    {FaultPoint::kReadAt, ESTALE},
      {FaultPoint::kReadAt, EINVAL}, {FaultPoint::kReadAt, 0},
  };
  for (const auto& [point, error] : kCases) {
    const std::string why =
        error == 0 ? "ends at byte " : std::string(strerror(error));
    int after = 0;
    for (bool struck = true; struck; ++after) {
      SCOPED_TRACE(absl::StrCat(NameOf(point), ", call ", after));
      const ScopedFault fault(
          point, {.error = error, .after = after, .may_miss = true});
      const auto model = Model::Load(folder.path(), {.device = "cpu"});
      struck = fault.struck() > 0;
      if (!struck) {
        EXPECT_THAT(model, IsOk());
        continue;
      }
      const StatusCode code = CodeOf(error, StatusCode::kDataLoss);
      EXPECT_THAT(model, IsError(code, "file '"));
      EXPECT_THAT(model, IsError(code, why));
    }
    EXPECT_GT(after, 5);  // configuration, pooling, vocabulary, weights
  }
}

// Nor is it for missing: an optional file that was not seen may be there, and
// one that would be refused may not.
TEST(FaultFileTest, AModelWhoseFilesCannotBeLookedUpMayBeReadLater) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  for (const auto& [error, code] :
       {std::pair(EIO, StatusCode::kUnavailable),
        std::pair(ESTALE, StatusCode::kUnavailable),
        std::pair(ENOMEM, StatusCode::kResourceExhausted)}) {
    int after = 0;
    for (bool struck = true; struck; ++after) {
      SCOPED_TRACE(absl::StrCat(strerror(error), ", call ", after));
      const ScopedFault fault(
          FaultPoint::kLookUp,
          {.error = error, .after = after, .may_miss = true});
      const auto model = Model::Load(folder.path(), {.device = "cpu"});
      struck = fault.struck() > 0;
      if (!struck) {
        EXPECT_THAT(model, IsOk());
        continue;
      }
      EXPECT_THAT(model, IsError(code, strerror(error)));
      EXPECT_THAT(
          model, AnyOf(IsError(code, "file '"),
                       IsError(code, absl::StrCat("folder '", folder.path()))));
    }
    EXPECT_GT(after, 10);  // the folder, and what is or may be in it
  }
}

TEST(FaultFileTest, OnlyWhatTheSystemSaysIsMissingIsMissing) {
  const TempFolder folder;
  folder.Write("file", "content");
  const auto look_up = [&](int error) {
    const ScopedFault fault(FaultPoint::kLookUp, {.error = error});
    return FileExists(folder.path(), "file");
  };
  // Of the two look-ups of an opening, the folder's and the file's.
  const auto open = [&](int error, int after) {
    const ScopedFault fault(FaultPoint::kLookUp,
                            {.error = error, .after = after});
    return ReadWholeFile(folder.path(), "file", 100).status();
  };
  for (const int error : {ENOENT, ENOTDIR, ENAMETOOLONG}) {
    EXPECT_FALSE(look_up(error).value());
  }
  EXPECT_THAT(open(ENOENT, 0), IsError(StatusCode::kNotFound, "no folder '"));
  EXPECT_THAT(open(ENOENT, 1), IsError(StatusCode::kNotFound, "no file '"));
  for (const int error : {EIO, ESTALE, ETIMEDOUT}) {
    EXPECT_THAT(look_up(error),
                IsError(StatusCode::kUnavailable,
                        absl::StrCat("file 'file' cannot be opened: ",
                                     strerror(error))));
    EXPECT_THAT(open(error, 0), IsError(StatusCode::kUnavailable, "folder '"));
    EXPECT_THAT(open(error, 1), IsError(StatusCode::kUnavailable, "file '"));
  }
  EXPECT_THAT(look_up(ENOMEM),
              IsError(StatusCode::kResourceExhausted, "file 'file'"));
  EXPECT_FALSE(look_up(EPERM).ok());
  EXPECT_TRUE(FileExists(folder.path(), "file").value());
}

// What it says of processors and their quota.
TEST(FaultFileTest, WhatTheSystemSaysOfItselfIsNotNeeded) {
  const TempFolder folder;
  WriteCheckpoint(CheckpointSpecOf("positions100"), folder.path());
  const ScopedFault fault(FaultPoint::kRead, {.error = EIO, .times = INT_MAX});
  EXPECT_THAT(Model::Load(folder.path(), {.device = "cpu"}), IsOk());
}

TEST(FaultFileTest, AReadThatASignalInterruptsIsContinued) {
  const TempFolder folder;
  folder.Write("file", "content");
  const ScopedFault fault(FaultPoint::kReadAt, {.error = EINTR, .times = 3});
  EXPECT_EQ(ReadWholeFile(folder.path(), "file", 100).value(), "content");
}

// In the middle, too, so that no flag is lost.
TEST(FaultFileTest, AFlagfileThatCannotBeReadWholeMayBeReadLater) {
  const TempFolder folder;
  folder.Write("flags", std::string(100 << 10, '#') + "\n--threads=1\n");
  const std::string flag = "--flagfile=" + folder.Path("flags");
  for (const int after : {0, 1, 3}) {
    const ScopedFault fault(FaultPoint::kRead, {.error = EIO, .after = after});
    EXPECT_THAT(
        CheckArguments({flag}),
        IsError(StatusCode::kUnavailable,
                absl::StrCat(flag, ": cannot be read: ", strerror(EIO))));
  }
}

// Where no more than its limit is read, the fault is never reached.
TEST(FaultFileTest, AFlagfileWithoutEndIsReadUpToItsLimit) {
  const ScopedFault fault(FaultPoint::kRead,
                          {.error = EIO, .after = 1000, .may_miss = true});
  EXPECT_THAT(CheckArguments({"--flagfile=/dev/zero"}),
              IsError(StatusCode::kInvalidArgument,
                      "--flagfile=/dev/zero: has more than 1048576 bytes"));
}

class FaultSecretsTest : public ::testing::Test {
 protected:
  FaultSecretsTest() {
    // SHA-256 of "alpha".
    folder_.Write("tokens",
                  "search "
                  "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2"
                  "223f8");
    config_.bearer_token_file = folder_.Path("tokens");
  }

  static grpc::Status Embed(TestServer& server) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
    context.AddMetadata("authorization", "Bearer alpha");
    v1::EmbedResponse response;
    return server.stub().Embed(&context, TextRequest({"a"}), &response);
  }

  const TempFolder folder_;
  ServerConfig config_ = TestConfig();
  const std::pair<FaultPoint, Fault> faults_[5] = {
      {FaultPoint::kOpen, {.error = EMFILE}},
      {FaultPoint::kStat, {.error = EIO}},
      {FaultPoint::kRead, {.error = EIO}},
      {FaultPoint::kRead, {.error = 0}},  // empty: it is just being written
      {FaultPoint::kAllocation, {.min_bytes = 1 << 16}},
  };
};

TEST_F(FaultSecretsTest, AFailedReloadLeavesThemAsTheyWere) {
  TestServer server({}, config_);
  const auto sample = [&](const std::string& series) {
    return TestServer::Sample(server.MetricsText(), series);
  };
  const std::string failing =
      "encoderd_secret_reload_failing{what=\"bearer_tokens\"}";
  const std::string failed =
      "encoderd_secret_reloads_total{what=\"bearer_tokens\",outcome="
      "\"failed\"}";
  int failures = 0;
  for (const auto& [point, fault] : faults_) {
    SCOPED_TRACE(NameOf(point));
    {
      const ScopedFault now(point, fault);
      server.server().ReloadSecrets();
    }
    EXPECT_EQ(sample(failing), 1);
    EXPECT_EQ(sample(failed), ++failures);
    EXPECT_TRUE(Embed(server).ok());
    server.server().ReloadSecrets();
    EXPECT_EQ(sample(failing), 0);
  }
}

TEST_F(FaultSecretsTest, NotReadAtFirstTheyEndTheStartByTheirName) {
  for (const auto& [point, fault] : faults_) {
    if (point == FaultPoint::kAllocation) continue;
    SCOPED_TRACE(NameOf(point));
    const ScopedFault now(point, fault);
    const std::string why =
        fault.error == 0
            ? "is empty"
            : absl::StrCat("cannot be read: ", strerror(fault.error));
    EXPECT_THAT(Server::Start(config_, nullptr).status(),
                IsError(CodeOf(fault.error, StatusCode::kInvalidArgument),
                        absl::StrCat("--bearer_token_file=",
                                     config_.bearer_token_file, ": ", why)));
  }
  EXPECT_THAT(Server::Start(config_, nullptr).status(), IsOk());
}

// Each file of TLS and of tokens in turn, by its flag.
TEST(FaultCertificatesTest, AFileOnADiskThatDoesNotAnswerMayBeReadLater) {
  const TempFolder folder;
  folder.Write("tokens",
               absl::StrCat("search ", std::string(64, 'a'), " max_calls=8"));
  SecretFiles files;
  files.certificates = {CertificatePath("server.pem"),
                        CertificatePath("server.key"),
                        CertificatePath("ca.pem")};
  files.tokens = folder.Path("tokens");
  const auto used = Secrets::Open(files);
  ASSERT_THAT(used, IsOk());
  const std::string names[] = {
      "--tls_certificate_file=" + files.certificates.certificate,
      "--tls_key_file=" + files.certificates.key,
      "--tls_client_ca_file=" + files.certificates.client_ca,
      "--bearer_token_file=" + files.tokens,
  };
  for (const int error : {EIO, ESTALE, ETIMEDOUT}) {
    int opened = 0;
    for (const std::string& name : names) {
      const Fault fault = {.error = error, .after = opened++};
      {
        const ScopedFault now(FaultPoint::kOpen, fault);
        EXPECT_THAT(
            Secrets::Open(files).status(),
            IsError(StatusCode::kUnavailable,
                    absl::StrCat(name, ": cannot be read: ", strerror(error))));
      }
      // While the server runs, what was read before stays in use.
      const auto certificates = (*used)->certificates();
      const auto tokens = (*used)->tokens();
      const ScopedFault now(FaultPoint::kOpen, fault);
      (*used)->Reload();
      if (name == names[3]) {
        EXPECT_TRUE((*used)->token_reloads().failing) << name;
        EXPECT_EQ((*used)->tokens(), tokens) << name;
      } else {
        EXPECT_TRUE((*used)->certificate_reloads().failing) << name;
        EXPECT_EQ((*used)->certificates(), certificates) << name;
      }
    }
  }
}

// The folder's only file and what it holds.
std::string OnlyFile(const TempFolder& folder) {
  int files = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(folder.path())) {
    ++files;
  }
  if (files != 1) return absl::StrCat(files, " files");
  return ReadWholeFile(folder.path(), "name", 100).value_or("none");
}

TEST(FaultWriteTest, AFileThatCannotBeWrittenStaysAsItWas) {
  const TempFolder folder;
  const std::string path = folder.Path("name");
  ASSERT_TRUE(WriteFileAtomically(folder.path(), "name", "old").ok());
  struct Case {
    FaultPoint point;
    int error;
    std::string words;
  };
  const Case kCases[] = {
      {FaultPoint::kMakeFolder, EACCES, "cannot make " + folder.path()},
      {FaultPoint::kOpen, EMFILE, "cannot write in " + folder.path()},
      {FaultPoint::kWrite, ENOSPC, "cannot write " + path},
      {FaultPoint::kSync, EIO, "cannot write " + path},
      {FaultPoint::kRename, EACCES, "cannot replace " + path},
  };
  for (const Case& one : kCases) {
    const ScopedFault fault(one.point, {.error = one.error});
    const absl::Status status =
        WriteFileAtomically(folder.path(), "name", "new");
    EXPECT_THAT(status,
                IsError(absl::ErrnoToStatusCode(one.error),
                        absl::StrCat(one.words, ": ", strerror(one.error))));
    EXPECT_EQ(OnlyFile(folder), "old") << one.words;
  }
  EXPECT_TRUE(WriteFileAtomically(folder.path(), "name", "new").ok());
  EXPECT_EQ(OnlyFile(folder), "new");
}

TEST(FaultWriteTest, AFolderThatIsNotBroughtToTheDiskIsSaidToBeSo) {
  const TempFolder folder;
  for (const FaultPoint point : {FaultPoint::kOpen, FaultPoint::kSync}) {
    const ScopedFault fault(point, {.error = EIO, .after = 1});
    EXPECT_THAT(WriteFileAtomically(folder.path(), "name", NameOf(point)),
                IsError(absl::ErrnoToStatusCode(EIO),
                        absl::StrCat("cannot bring to the disk ", folder.path(),
                                     ": ", strerror(EIO))));
    EXPECT_EQ(OnlyFile(folder), NameOf(point));
  }
}

TEST(FaultWriteTest, AWriteThatASignalInterruptsIsContinued) {
  const TempFolder folder;
  const ScopedFault fault(FaultPoint::kWrite, {.error = EINTR, .times = 3});
  ASSERT_TRUE(WriteFileAtomically(folder.path(), "name", "new").ok());
  EXPECT_EQ(OnlyFile(folder), "new");
}

TEST(FaultWriteTest, ALockThatCannotBeTakenIsNamed) {
  const TempFolder folder;
  const std::string path = folder.Path("lock");
  const auto take = [&] { return FileLock::Take(folder.path(), "lock"); };
  {
    const ScopedFault fault(FaultPoint::kOpen, {.error = EMFILE});
    EXPECT_THAT(take(), IsError(absl::ErrnoToStatusCode(EMFILE),
                                "cannot open " + path + ": Too many"));
  }
  {
    const ScopedFault fault(FaultPoint::kLock, {.error = ENOLCK});
    EXPECT_THAT(take(), IsError(absl::ErrnoToStatusCode(ENOLCK),
                                "cannot lock " + path + ": No locks"));
  }
  EXPECT_THAT(take(), IsOk());
}

}  // namespace
}  // namespace encoderd

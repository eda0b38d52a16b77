// Several models in one server: each with its own queue, Sessions and series.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/cgroup.h"
#include "grpcpp/create_channel.h"
#include "tests/support/patience.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

// Fakes by the names of their folders; "broken" cannot be loaded.
class Models {
 public:
  explicit Models(const std::vector<ModelSource>& sources) {
    config_ = TestConfig();
    config_.models = sources;
    config_.max_queue_tokens = 512;
    auto server = Server::Start(config_, nullptr);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::Encoder::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->grpc_port()),
                            grpc::InsecureChannelCredentials()));
  }
  ~Models() {
    for (auto& fake : fakes_) fake.second->device().OpenGate();
  }

  absl::Status Load() {
    return server_->Load(
        [this](const std::string& folder, const ModelOptions& options)
            -> absl::StatusOr<std::shared_ptr<const Model>> {
          if (folder == "broken") return absl::DataLossError("no such tensor");
          FakeModelOptions fake;
          fake.hidden_size = folder == "wide" ? 16 : 8;
          auto model = FakeModel::Load(fake, options);
          if (!model.ok()) return model.status();
          fakes_[folder] = *model;
          return *model;
        },
        kNoMemoryLimit);
  }

  grpc::Status Embed(const std::string& model, const std::string& text,
                     v1::EmbedResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    v1::EmbedRequest request = TextRequest({text});
    request.set_model(model);
    return stub_->Embed(&context, request, response);
  }

  double AdmittedTokens(const std::string& model) const {
    return TestServer::Sample(
        server_->MetricsText(),
        absl::StrCat("encoderd_admitted_tokens{model=\"", model, "\""));
  }

  Server& server() { return *server_; }
  v1::Encoder::Stub& stub() { return *stub_; }
  FakeDevice& device(const std::string& folder) {
    return fakes_.at(folder)->device();
  }

 private:
  ServerConfig config_;
  std::map<std::string, std::shared_ptr<FakeModel>> fakes_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Encoder::Stub> stub_;
};

TEST(ModelsTest, EachAnswersForItselfAndTheFirstIsTheDefault) {
  Models models({{"b", "narrow"}, {"a", "wide"}});
  ASSERT_TRUE(models.Load().ok());
  v1::EmbedResponse response;
  ASSERT_TRUE(models.Embed("", "x", &response).ok());
  EXPECT_EQ(response.model(), "b");
  EXPECT_EQ(response.embeddings(0).floats().values_size(), 8);
  ASSERT_TRUE(models.Embed("a", "x", &response).ok());
  EXPECT_EQ(response.model(), "a");
  EXPECT_EQ(response.embeddings(0).floats().values_size(), 16);

  const RpcError error = ReadError(models.Embed("c", "x", &response));
  EXPECT_EQ(error.reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(error.metadata.at("available"), "a, b");

  grpc::ClientContext context;
  v1::ListModelsResponse list;
  ASSERT_TRUE(models.stub().ListModels(&context, {}, &list).ok());
  ASSERT_EQ(list.models_size(), 2);
  EXPECT_EQ(list.models(0).name(), "b");
  EXPECT_EQ(list.models(1).name(), "a");
  EXPECT_EQ(list.models(1).hidden_size(), 16);
}

TEST(ModelsTest, AFloodOnOneDoesNotHoldUpTheOther) {
  Models models({{"flooded", "narrow"}, {"other", "wide"}});
  ASSERT_TRUE(models.Load().ok());
  models.device("narrow").CloseGate();
  std::vector<std::thread> flood;
  std::atomic<int> answered{0}, refused{0};
  const auto call = [&] {
    v1::EmbedResponse response;
    const grpc::Status status =
        models.Embed("flooded", Letters(256), &response);
    if (status.ok()) ++answered;
    if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) ++refused;
  };
  // Two of 256 tokens fill its queue of 512. Their true number is known only
  // after tokenization: what comes before may be refused for it.
  for (const int tokens : {256, 512}) {
    flood.emplace_back(call);
    EXPECT_TRUE(
        Eventually([&] { return models.AdmittedTokens("flooded") == tokens; }));
  }
  for (int i = 0; i < 6; ++i) flood.emplace_back(call);
  EXPECT_TRUE(Eventually([&] { return refused == 6; })) << refused;
  v1::EmbedResponse response;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(models.Embed("other", "x", &response).ok());
  }
  EXPECT_EQ(answered, 0);
  models.device("narrow").OpenGate();
  for (std::thread& thread : flood) thread.join();
  EXPECT_EQ(answered, 2);
}

TEST(ModelsTest, OneThatCannotBeLoadedIsANamedFailure) {
  Models models({{"good", "narrow"}, {"bad", "broken"}});
  const absl::Status status = models.Load();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "model 'bad': no such tensor");
  EXPECT_FALSE(models.server().serving());
  v1::EmbedResponse response;
  EXPECT_EQ(ReadError(models.Embed("good", "x", &response)).reason, "LOADING");
}

}  // namespace
}  // namespace encoderd

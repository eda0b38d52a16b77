// TLS of both ports: who is let in, what is refused, certificates that are
// replaced under load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "server/base/steady_time.h"
#include "server/rpc/grpc_log.h"
#include "tests/support/certificates.h"
#include "tests/support/patience.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using ::testing::StartsWith;

struct Asked {
  std::string ca = "ca.pem";
  std::string certificate;  // of the client, "client"; empty: none
};

std::shared_ptr<grpc::ChannelCredentials> Credentials(const Asked& asked) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = CertificateText(asked.ca);
  if (!asked.certificate.empty()) {
    options.pem_cert_chain = CertificateText(asked.certificate + ".pem");
    options.pem_private_key = CertificateText(asked.certificate + ".key");
  }
  return grpc::SslCredentials(options);
}

// A server whose certificate and key lie in its own folder.
class TlsTest : public ::testing::Test {
 protected:
  // As RunServer does: OpenSSL writes without asking for no signal.
  TlsTest() { signal(SIGPIPE, SIG_IGN); }

  // gRPC ends connections on its own threads; what these still hold when the
  // process ends would be taken for leaks.
  static void TearDownTestSuite() {
    const absl::Time until = SteadyNow() + absl::Seconds(5);
    while (grpc_is_initialized() != 0 && SteadyNow() < until) {
      absl::SleepFor(absl::Milliseconds(2));
    }
  }

  void Start(bool client_ca = false) {
    Use("server");
    ServerConfig config = TestConfig();
    config.tls_certificate_file = folder_.Path("tls.pem");
    config.tls_key_file = folder_.Path("tls.key");
    if (client_ca) {
      folder_.Write("clients.pem", CertificateText("ca.pem"));
      config.tls_client_ca_file = folder_.Path("clients.pem");
    }
    server_ = std::make_unique<TestServer>(FakeModelOptions(), config);
  }

  // As certificates are replaced: whole files, one after the other.
  void Use(const std::string& name) {
    for (const char* end : {".pem", ".key"}) {
      folder_.Write("next", CertificateText(name + end));
      std::filesystem::rename(folder_.Path("next"),
                              folder_.Path(absl::StrCat("tls", end)));
    }
  }

  // One call over its own connection.
  grpc::Status Call(const std::shared_ptr<grpc::ChannelCredentials>& with) {
    const auto stub = v1::Encoder::NewStub(server_->NewChannel(with));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    v1::EmbedResponse response;
    return stub->Embed(&context, TextRequest({"hello"}), &response);
  }

  double Metric(const std::string& name) {
    return TestServer::Sample(server_->server().MetricsText(), name);
  }

  TempFolder folder_;
  std::unique_ptr<TestServer> server_;
};

// A client of OpenSSL's own, for what gRPC's cannot do.
class RawClient {
 public:
  RawClient(int port, int min_version, int max_version)
      : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free) {
    // Versions before 1.2 are offered at this level only.
    SSL_CTX_set_cipher_list(context_.get(), "DEFAULT:@SECLEVEL=0");
    SSL_CTX_set_min_proto_version(context_.get(), min_version);
    SSL_CTX_set_max_proto_version(context_.get(), max_version);
    SSL_CTX_load_verify_locations(context_.get(),
                                  CertificatePath("ca.pem").c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    bio_ = {BIO_new_ssl_connect(context_.get()), &BIO_free_all};
    BIO_set_conn_hostname(bio_.get(), absl::StrCat("127.0.0.1:", port).c_str());
  }

  bool Handshake() { return BIO_do_handshake(bio_.get()) == 1; }
  // The serial number of the server's certificate.
  std::string Serial() {
    SSL* ssl = nullptr;
    BIO_get_ssl(bio_.get(), &ssl);
    const std::unique_ptr<X509, decltype(&X509_free)> leaf(
        SSL_get1_peer_certificate(ssl), &X509_free);
    const ASN1_INTEGER* const serial = X509_get0_serialNumber(leaf.get());
    return std::string(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)),
        ASN1_STRING_length(serial));
  }
  std::string Get(const std::string& path) {
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: test\r\n\r\n");
    BIO_write(bio_.get(), request.data(), static_cast<int>(request.size()));
    std::string answer;
    char buffer[4096];
    int size = 0;
    while ((size = BIO_read(bio_.get(), buffer, sizeof(buffer))) > 0) {
      answer.append(buffer, static_cast<size_t>(size));
    }
    return answer;
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<BIO, decltype(&BIO_free_all)> bio_{nullptr, &BIO_free_all};
};

TEST_F(TlsTest, CallersWhoTrustItsAuthorityAreAnswered) {
  Start();
  EXPECT_TRUE(Call(Credentials({})).ok());
  EXPECT_EQ(Metric("encoderd_tls_certificate_expiry_timestamp_seconds"
                   "{certificate=\"server\"}"),
            4070908800);  // 2099-01-01
  EXPECT_EQ(Metric("encoderd_tls_certificate_expiry_timestamp_seconds"
                   "{certificate=\"client_ca\"}"),
            0);  // there is none
  EXPECT_EQ(Call(Credentials({"foreign_ca.pem", ""})).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Call(grpc::InsecureChannelCredentials()).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, OldVersionsAreRefusedOnBothPorts) {
  Start();
  for (const int port :
       {server_->server().grpc_port(), server_->server().http_port()}) {
    EXPECT_FALSE(RawClient(port, TLS1_VERSION, TLS1_1_VERSION).Handshake());
    EXPECT_TRUE(RawClient(port, TLS1_2_VERSION, TLS1_2_VERSION).Handshake());
    EXPECT_TRUE(RawClient(port, TLS1_3_VERSION, TLS1_3_VERSION).Handshake());
  }
}

TEST_F(TlsTest, HttpSpeaksTlsTooAndAsksForNoCertificate) {
  Start(/*client_ca=*/true);
  RawClient client(server_->server().http_port(), TLS1_2_VERSION, 0);
  ASSERT_TRUE(client.Handshake());
  const std::string answer = client.Get("/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  // Whole: far more than a record of TLS.
  EXPECT_THAT(answer, ::testing::HasSubstr("process_threads"));
  EXPECT_GT(answer.size(), 50000u);
  EXPECT_EQ(server_->Get("/metrics").first, 0);  // in plain text
}

TEST_F(TlsTest, MutualTlsTakesTheClientsOfItsAuthorityAndCountsTheOthers) {
  Start(/*client_ca=*/true);
  EXPECT_TRUE(Call(Credentials({"ca.pem", "client"})).ok());
  const std::pair<std::string, std::string> kCases[] = {
      {"", "no_certificate"},
      {"foreign_client", "certificate_refused"},
      {"expired_client", "certificate_refused"},
      {"wrong_use_client", "certificate_refused"},
  };
  for (const auto& [client, cause] : kCases) {
    const std::string series = absl::StrCat(
        "encoderd_tls_handshakes_failed_total{cause=\"", cause, "\"}");
    const double before = Metric(series);
    EXPECT_EQ(Call(Credentials({"ca.pem", client})).error_code(),
              grpc::StatusCode::UNAVAILABLE)
        << client;
    EXPECT_TRUE(Eventually([&] { return Metric(series) > before; })) << client;
  }
  EXPECT_TRUE(Call(Credentials({"ca.pem", "client"})).ok());
}

TEST_F(TlsTest, OtherHandshakesThatFailAreCountedByTheirCause) {
  const std::pair<const char*, TlsFault> kCases[] = {
      {"tlsv1 alert unknown ca", TlsFault::kRefusedByClient},
      {"unsupported protocol", TlsFault::kOldProtocol},
      {"wrong version number", TlsFault::kNotTls},
      {"http request", TlsFault::kNotTls},
      {"bad signature", TlsFault::kOther},
  };
  for (const auto& [words, fault] : kCases) {
    EXPECT_EQ(TlsFaultOf(absl::StrCat(
                  "Handshake failed with fatal error SSL_ERROR_SSL: error:0A:"
                  "SSL routines::",
                  words)),
              fault)
        << words;
  }
  EXPECT_EQ(TlsFaultOf("Keepalive: alert"), std::nullopt);
}

// Rotations follow each other while callers connect again for each call, and
// while one keeps its connection.
TEST_F(TlsTest, ReplacedCertificatesCostNoCall) {
  Start();
  const auto kept = v1::Encoder::NewStub(server_->NewChannel(Credentials({})));
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      for (; !stop; ++calls) {
        const grpc::Status status = Call(Credentials({}));
        EXPECT_TRUE(status.ok()) << status.error_message();
      }
    });
  }
  callers.emplace_back([&] {
    for (; !stop; ++calls) {
      grpc::ClientContext context;
      v1::EmbedResponse response;
      EXPECT_TRUE(kept->Embed(&context, TextRequest({"x"}), &response).ok());
    }
  });
  std::string serial;
  for (int round = 0; round < 6; ++round) {
    Use(round % 2 == 0 ? "server2" : "server");
    server_->server().ReloadSecrets();
    RawClient client(server_->server().grpc_port(), TLS1_2_VERSION, 0);
    ASSERT_TRUE(client.Handshake());
    EXPECT_NE(client.Serial(), serial) << round;
    serial = client.Serial();
    const int before = calls;
    EXPECT_TRUE(Eventually([&] { return calls > before + 3; }));
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(Metric("encoderd_secret_reloads_total"
                   "{what=\"certificates\",outcome=\"ok\"}"),
            6);
}

// Not only a good certificate stays: the very one that was served before.
TEST_F(TlsTest, ABadReplacementChangesNothingAndIsSeen) {
  Start();
  const auto serial = [&] {
    RawClient client(server_->server().grpc_port(), TLS1_2_VERSION, 0);
    EXPECT_TRUE(client.Handshake());
    return client.Serial();
  };
  const std::string before = serial();
  const std::string other = CertificateText("server2.pem");
  constexpr char kFailed[] =
      "encoderd_secret_reloads_total{what=\"certificates\",outcome=\"failed\"}";
  constexpr char kFailing[] =
      "encoderd_secret_reload_failing{what=\"certificates\"}";
  const std::pair<const char*, std::function<void()>> kFaults[] = {
      {"expired", [&] { Use("expired"); }},
      {"not valid yet", [&] { Use("future"); }},
      {"not a server's", [&] { Use("client"); }},
      {"not its key", [&] { folder_.Write("tls.pem", other); }},
      {"cut", [&] { folder_.Write("tls.pem", other.substr(0, 200)); }},
      {"empty", [&] { folder_.Write("tls.pem", ""); }},
      {"empty key", [&] { folder_.Write("tls.key", ""); }},
      {"no key", [&] { std::filesystem::remove(folder_.Path("tls.key")); }},
      {"nothing", [&] { std::filesystem::remove(folder_.Path("tls.pem")); }},
  };
  for (const auto& [what, spoil] : kFaults) {
    spoil();
    const double failed = Metric(kFailed);
    server_->server().ReloadSecrets();
    EXPECT_EQ(serial(), before) << what;
    EXPECT_GT(Metric(kFailed), failed) << what;
    EXPECT_EQ(Metric(kFailing), 1) << what;
    EXPECT_TRUE(Call(Credentials({})).ok()) << what;
  }
  Use("server2");
  server_->server().ReloadSecrets();
  EXPECT_TRUE(Call(Credentials({})).ok());
  EXPECT_NE(serial(), before);
  EXPECT_EQ(Metric(kFailing), 0);
}

TEST_F(TlsTest, AnExpiredClientCaIsRefusedAndLocksNobodyOut) {
  Start(/*client_ca=*/true);
  EXPECT_GT(Metric("encoderd_tls_certificate_expiry_timestamp_seconds"
                   "{certificate=\"client_ca\"}"),
            absl::ToUnixSeconds(absl::Now()));
  folder_.Write("clients.pem", CertificateText("expired_ca.pem"));
  server_->server().ReloadSecrets();
  EXPECT_EQ(Metric("encoderd_secret_reload_failing{what=\"certificates\"}"), 1);
  EXPECT_TRUE(Call(Credentials({"ca.pem", "client"})).ok());
}

TEST_F(TlsTest, ADrainLosesNoCallOverTls) {
  Start();
  const auto stub = v1::Encoder::NewStub(server_->NewChannel(Credentials({})));
  std::atomic<int> answered{0};
  std::thread caller([&] {
    for (;;) {
      grpc::ClientContext context;
      v1::EmbedResponse response;
      const grpc::Status status =
          stub->Embed(&context, TextRequest({"x"}), &response);
      ++answered;
      if (status.ok()) continue;
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
      EXPECT_FALSE(absl::StrContains(status.error_message(), "Socket closed"));
      return;
    }
  });
  EXPECT_TRUE(Eventually([&] { return answered > 10; }));
  EXPECT_TRUE(server_->server().Drain());
  caller.join();
}

}  // namespace
}  // namespace encoderd

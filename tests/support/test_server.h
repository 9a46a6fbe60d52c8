#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/library/embedding_client.h"
#include "linserve/v1/embedding.grpc.pb.h"
#include "repository/model_manager.h"
#include "rpc/grpc_server.h"
#include "support/test_files.h"
#include "support/test_model.h"
#include "support/test_tensors.h"
#include "telemetry/scraped.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/tokenizer.h"

namespace linserve {

struct TestServerOptions {
  GrpcOptions grpc = {};
  BatchPolicy policy = {};
  QueueLimits limits = {};
  Padding padding = Padding::kPacked;
  Pooling default_pooling = Pooling::kNone;
  std::vector<int64_t> dimensions = {};
  bool model_control = false;
  bool text = false;  // "tokens" has a tokenizer, tests/data/text
  TokenizerOptions marks = {};
  Truncation default_truncation = Truncation::kNone;
  int64_t most_text_tokens = 0;
  std::map<std::string, std::string> prompts = {};  // of all models
  std::string default_prompt = {};
  // Names further models, which score these labels, and read pairs of the texts that
  // tests/data/text/pairs has words for: see ClassifierModel().
  std::map<std::string, std::vector<std::string>> classifiers = {};
  // Names a further model, which gives sparse embeddings of the same texts: see SparseModel().
  std::string sparse = {};
};

// Runs a real server on a free port with real engines over the test models: "tokens" in versions 1
// and 2, "floats" in version 1, and "late", which never comes to be loaded.
class TestServer {
 public:
  explicit TestServer(TestServerOptions options = {});
  ~TestServer();

  // tokens() controls version 2 of "tokens", the latest, and floats() controls "floats".
  FakeModelControl& tokens() { return *tokens_; }
  FakeModelControl& floats() { return *floats_; }

  GrpcServer& grpc() { return *grpc_; }
  ModelRepository& repository() { return *repository_; }

  // Serves version 2 of "tokens" anew, as after a reload.
  void PublishAgain();

  // Makes a directory of a token model that is loaded when somebody asks for it.
  void WriteModel(const std::string& name);

  // These end a part of the server before its time; it is nullptr from then on.
  void DestroyGrpc() { grpc_.reset(); }
  void DestroyRepository() { repository_.reset(); }

  std::string target() const { return "127.0.0.1:" + std::to_string(grpc_->port()); }
  // Returns the options of a client that never tries again.
  ClientOptions client_options() const;
  // Makes a stub on a connection of its own, which does as it is told.
  std::unique_ptr<v1::EmbeddingService::Stub> NewStub() const;

  Scraped Scrape() const { return Scraped(metrics_.Scrape()); }
  // Waits until a series has the value; returns false if it has not within a minute.
  bool WaitFor(const std::string& series, double value) const;

 private:
  std::unique_ptr<ServedModel> Load(const std::string& name, int64_t version,
                                    const ModelFactory& factory);

  const TestServerOptions options_;
  std::shared_ptr<FakeModelControl> tokens_ = std::make_shared<FakeModelControl>();
  std::shared_ptr<FakeModelControl> floats_ = std::make_shared<FakeModelControl>();
  Metrics metrics_{{}};
  TempDir models_;
  std::unique_ptr<ModelRepository> repository_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<ModelManager> manager_;
};

// These add labels to a metric's name: those of version 2 of "tokens", and those of one RPC.
inline std::string OfTokens(const std::string& metric) {
  return metric + R"({model="tokens",version="2"})";
}
inline std::string Abandoned(const std::string& stage) {
  return R"(linserve_abandoned_total{model="tokens",stage=")" + stage + R"(",version="2"})";
}
inline std::string InFlight(const std::string& rpc = "Embed") {
  return R"(linserve_in_flight_requests{rpc=")" + rpc + R"("})";
}

// Returns so many ids of the vocabulary, each unlike those around it.
std::vector<int64_t> Ids(int64_t count);
NamedSequence Tokens(std::string id, const std::vector<int64_t>& ids);
// Makes a sequence of rows of three values.
NamedSequence Floats(std::string id, const std::vector<float>& values);
EmbedCall CallOf(const std::string& model, std::vector<NamedSequence> sequences);

// Returns what "tokens" makes of these ids.
std::vector<float> ExpectedRows(const std::vector<int64_t>& ids);

// Returns whether the server still answers, which it must after whatever a caller did.
bool Serves(const TestServer& server);

// Takes the end of one asynchronous call.
class Ended {
 public:
  EmbedCallback callback();
  EmbedStream::Callback stream_callback();

  // Waits for the end; DEADLINE_EXCEEDED if there is none within a minute.
  const absl::Status& status();
  // Returns the results. REQUIRES: status() is OK.
  const std::vector<SequenceResult>& results() const { return answer_.results; }

 private:
  std::shared_ptr<std::promise<StreamAnswer>> promise_ =
      std::make_shared<std::promise<StreamAnswer>>();
  StreamAnswer answer_;
  bool waited_ = false;
};

}  // namespace linserve

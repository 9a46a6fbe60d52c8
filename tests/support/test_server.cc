#include "support/test_server.h"

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <utility>

#include "support/paths.h"
#include "support/wait_until.h"
#include "text/huggingface/json_tokenizer.h"
#include "text/sentencepiece/piece_tokenizer.h"

namespace linserve {
TestServer::TestServer(TestServerOptions options) : options_(std::move(options)) {
  repository_ = std::make_unique<ModelRepository>(metrics_);
  repository_->Announce("late", 1);
  repository_->Publish(Load("tokens", 1, TokenModel(std::make_shared<FakeModelControl>())));
  repository_->Publish(Load("tokens", 2, TokenModel(tokens_)));
  repository_->Publish(Load("floats", 1, FloatModel(floats_)));
  const auto publish = [this](const std::string& name, const ModelFactory& factory) {
    auto model = Load(name, 1, factory);
    model->tokenizer = *LoadTokenizerJson(DataFile("text/pairs/tokenizer.json"));
    repository_->Publish(std::move(model));
  };
  for (const auto& [name, labels] : options_.classifiers) publish(name, ClassifierModel(labels));
  if (!options_.sparse.empty()) publish(options_.sparse, SparseModel());
  manager_ = std::make_unique<ModelManager>(
      ManagerOptions{.root = {models_.File("")}}, *repository_, metrics_,
      [this](const ModelDirectory& directory, const ModelManager::Room&) {
        return Load(directory.name, directory.version,
                    TokenModel(std::make_shared<FakeModelControl>()));
      },
      [this](const std::string& model, bool ready) { grpc_->SetModelServing(model, ready); });
  GrpcOptions grpc = options_.grpc;
  grpc.address.port = 0;
  grpc.version = "test";
  auto started = GrpcServer::Start(grpc, *repository_, metrics_);
  EXPECT_TRUE(started.ok()) << started.status();
  grpc_ = *std::move(started);
  if (options_.model_control) grpc_->AllowModelControl(*manager_);
}

TestServer::~TestServer() {
  tokens_->LetGo();
  floats_->LetGo();
}

void TestServer::PublishAgain() { repository_->Publish(Load("tokens", 2, TokenModel(tokens_))); }

void TestServer::WriteModel(const std::string& name) {
  std::filesystem::create_directories(models_.File(name));
  WriteAll(models_.File(name + "/config.json"), "{}");
}

std::unique_ptr<ServedModel> TestServer::Load(const std::string& name, int64_t version,
                                              const ModelFactory& factory) {
  EngineOptions engine;
  engine.padding = options_.padding;
  engine.policy = options_.policy;
  engine.limits = options_.limits;
  engine.warmup = false;
  auto started = Engine::Start(engine, factory, metrics_.ForModel(name, version));
  EXPECT_TRUE(started.ok()) << started.status();
  auto model = std::make_unique<ServedModel>();
  model->name = name;
  model->version = version;
  model->default_pooling = options_.default_pooling;
  model->default_truncation = options_.default_truncation;
  model->most_text_tokens = options_.most_text_tokens;
  model->prompts = options_.prompts;
  model->default_prompt = options_.default_prompt;
  model->dimensions = options_.dimensions;
  if (options_.text && name == "tokens") {
    model->tokenizer = *LoadSentencePiece(DataFile("text/tokenizer.model"), options_.marks);
  }
  model->engine = *std::move(started);
  return model;
}

ClientOptions TestServer::client_options() const {
  ClientOptions options;
  options.target = target();
  options.timeout = std::chrono::minutes(1);
  options.max_attempts = 1;
  return options;
}

std::unique_ptr<v1::EmbeddingService::Stub> TestServer::NewStub() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return v1::EmbeddingService::NewStub(
      grpc::CreateCustomChannel(target(), grpc::InsecureChannelCredentials(), arguments));
}

bool TestServer::WaitFor(const std::string& series, double value) const {
  return WaitUntil([&] { return Scrape()[series] == value; });
}

std::vector<int64_t> Ids(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(i * 7 % kTestVocabulary);
  return ids;
}

NamedSequence Tokens(std::string id, const std::vector<int64_t>& ids) {
  return {std::move(id), {{"x", Tensor::FromInts({static_cast<int64_t>(ids.size())}, ids)}}};
}

NamedSequence Floats(std::string id, const std::vector<float>& values) {
  const auto rows = static_cast<int64_t>(values.size() / 3);
  return {std::move(id), {{"x", Tensor::FromFloats({rows, 3}, values)}}};
}

EmbedCall CallOf(const std::string& model, std::vector<NamedSequence> sequences) {
  EmbedCall call;
  call.model = model;
  call.sequences = std::move(sequences);
  return call;
}

std::vector<float> ExpectedRows(const std::vector<int64_t>& ids) {
  std::vector<float> rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    rows.insert(rows.end(), {static_cast<float>(ids[i]), static_cast<float>(i),
                             static_cast<float>(ids.size()), 1});
  }
  return rows;
}

bool Serves(const TestServer& server) {
  EmbeddingClient client(server.client_options());
  const auto results = client.Embed(CallOf("tokens", {Tokens("good", {1, 2})}));
  return results.ok() && results->at(0).status.ok() &&
         Values(results->at(0).outputs.at("y")) == ExpectedRows({1, 2});
}

EmbedCallback Ended::callback() {
  return [promise = promise_](absl::Status status, std::vector<SequenceResult> results) {
    promise->set_value({"", std::move(status), std::move(results)});
  };
}

EmbedStream::Callback Ended::stream_callback() {
  return [promise = promise_](StreamAnswer answer) { promise->set_value(std::move(answer)); };
}

const absl::Status& Ended::status() {
  if (!std::exchange(waited_, true)) {
    auto future = promise_->get_future();
    if (future.wait_for(std::chrono::minutes(1)) == std::future_status::ready) {
      answer_ = future.get();
    } else {
      answer_.status = absl::DeadlineExceededError("the call did not end");
    }
  }
  return answer_.status;
}

}  // namespace linserve

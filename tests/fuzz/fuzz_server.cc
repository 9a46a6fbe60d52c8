#include "fuzz/fuzz_server.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "support/paths.h"
#include "support/test_model.h"
#include "telemetry/log.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/tokenizer.h"

namespace linserve {
namespace {

void Serve(ModelRepository& repository, Metrics& metrics, const std::string& name,
           const ModelFactory& factory) {
  EngineOptions options;
  options.warmup = false;
  auto engine = Engine::Start(options, factory, metrics.ForModel(name, 1));
  if (!engine.ok()) std::abort();
  auto model = std::make_unique<ServedModel>();
  model->name = name;
  model->version = 1;
  if (name == "tokens") model->tokenizer = *LoadSentencePiece(DataFile("text/tokenizer.model"));
  model->engine = *std::move(engine);
  repository.Publish(std::move(model));
}

ServiceContext* Start() {
  LogOptions quiet;
  quiet.level = LogLevel::kError;
  ConfigureLog(quiet);
  auto& metrics = *new Metrics({});
  auto& repository = *new ModelRepository(metrics);
  Serve(repository, metrics, "tokens", TokenModel(std::make_shared<FakeModelControl>()));
  Serve(repository, metrics, "floats", FloatModel(std::make_shared<FakeModelControl>()));
  const auto sessions = std::make_shared<FakeModelControl>();
  sessions->sessions = true;
  Serve(repository, metrics, "sessions", TokenModel(sessions));
  auto access = Access::Open("", metrics);
  if (!access.ok()) std::abort();
  return new ServiceContext{
      repository,         metrics,
      RpcLimits{},        "fuzz",
      *std::move(access), std::make_shared<Inflight>(InflightLimits{}, metrics),
      StepPool(1)};
}

}  // namespace

ServiceContext& FuzzServer() {
  static ServiceContext* const server = Start();
  return *server;
}

std::shared_ptr<const Caller> FuzzCaller() {
  static const auto caller = std::make_shared<const Caller>("fuzz");
  return caller;
}

}  // namespace linserve

#include "program/serve/load_served.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/sequence/pooling.h"
#include "core/strings/quote.h"
#include "core/system/processors.h"
#include "models/config/model_config.h"
#include "models/inspect_model.h"
#include "models/model_loader.h"
#include "program/model_tokenizer.h"
#include "program/option_flags.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

// Says how a version is served, and how its replicas are loaded.
struct ServingPlan {
  ServingOptions serving;
  ReplicaPlan replicas;
  ModelLoadOptions load;
};

absl::StatusOr<ServingPlan> PlanServing(const ModelDirectory& directory, const Config& config,
                                        const DevicePlan& devices) {
  auto serving = ServingOptionsFor(directory.path, config.serving);
  if (!serving.ok()) return serving.status();
  ServingPlan plan;
  plan.replicas = serving->Replicas(devices.accelerators());
  plan.load = LoadOptionsFor(*serving, plan.replicas);
  plan.load.device = devices.devices.front();
  plan.serving = *std::move(serving);
  return plan;
}

absl::StatusOr<int64_t> WeightBytesOf(const ModelDirectory& directory, const ServingPlan& plan) {
  const auto bytes = WeightBytes(directory.path, plan.load);
  if (!bytes.ok()) return bytes.status();
  // More than this there is nowhere; sums of it over all models do not overflow.
  constexpr int64_t kMost = int64_t{1} << 42;
  return std::min(*bytes, kMost) * plan.replicas.replicas;
}

void LogReady(const ModelDirectory& directory, const ServedModel& model, const ServingPlan& plan,
              const DevicePlan& devices, double seconds) {
  const ModelInfo& info = model.engine->info();
  Log(LogLevel::kInfo, "model ready",
      {{"model", directory.name},
       {"version", directory.version},
       {"architecture", info.architecture},
       {"parameters", info.parameters},
       {"device", absl::StrJoin(devices.devices, ",")},
       {"dtype", std::string(Name(info.dtype))},
       {"padding", std::string(Name(model.engine->padding()))},
       {"text", model.tokenizer != nullptr},
       {"replicas", plan.replicas.replicas},
       {"threads", plan.load.threads},
       {"replicas_because", plan.replicas.reason},
       {"max_batch_tokens", plan.replicas.batch_tokens},
       {"seconds", seconds}});
}

// Returns which tokens of long texts are dropped. Those of a Hugging Face folder are told by its
// tokenizer's files, if at all.
Truncation TruncationFor(const ModelDirectory& directory, const ServingOptions& serving,
                         const Tokenizer* tokenizer) {
  if (tokenizer == nullptr || !tokenizer->truncation()) return serving.truncation;
  const auto config = ReadModelConfig(directory.path);
  const bool foreign = config.ok() && config->network.foreign;
  return foreign ? *tokenizer->truncation() : serving.truncation;
}

absl::Status CheckPrompt(const ServingOptions& serving) {
  if (serving.default_prompt.empty() || serving.prompts.contains(serving.default_prompt)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("default_prompt: there is no prompt " +
                                    Quoted(serving.default_prompt) + " in prompts");
}

absl::Status CheckDimensions(const std::vector<int64_t>& dimensions, const ModelInfo& info) {
  const std::vector<Axis>& axes = info.signature.outputs[0].axes;
  const int64_t width = axes.empty() ? 0 : axes.back().size;
  for (const int64_t one : dimensions) {
    if (one <= width) continue;
    return absl::InvalidArgumentError("dimensions: " + std::to_string(one) +
                                      " is more than the model's vectors have, which is " +
                                      std::to_string(width));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedModel>> LoadServed(const ModelDirectory& directory,
                                                        const LoadContext& context,
                                                        const ModelManager::Room& room,
                                                        std::function<void()> on_ready_change) {
  const auto start = std::chrono::steady_clock::now();
  auto plan = PlanServing(directory, context.config.Get(), context.devices);
  if (!plan.ok()) return plan.status();
  LogImpliedPadding(directory.path, plan->serving);
  const auto bytes = WeightBytesOf(directory, *plan);
  if (!bytes.ok()) return bytes.status();
  if (absl::Status status = room(*bytes); !status.ok()) return status;
  auto tokenizer = LoadTokenizer(directory.path, plan->serving);
  if (!tokenizer.ok()) return tokenizer.status();
  if (*tokenizer != nullptr) {
    plan->load.accept = [path = directory.path, own = *tokenizer](const Signature& signature) {
      return CheckTokenizer(path, *own, signature);
    };
  }
  EngineOptions options = plan->serving.ForEngine(plan->replicas);
  options.name = directory.name + "/" + std::to_string(directory.version);
  options.sessions.budget = context.sessions;
  options.on_ready_change = std::move(on_ready_change);
  auto engine =
      Engine::Start(options, ReplicasOf(directory.path, plan->load, context.devices.devices),
                    context.metrics.ForModel(directory.name, directory.version));
  if (!engine.ok()) return engine.status();
  absl::Status fit = CheckDimensions(plan->serving.dimensions, (*engine)->info());
  if (fit.ok()) fit = CheckPrompt(plan->serving);
  if (!fit.ok()) return fit;
  auto model = std::make_unique<ServedModel>();
  model->name = directory.name;
  model->version = directory.version;
  model->default_pooling = plan->serving.pooling;
  model->default_normalize = plan->serving.normalize;
  model->default_truncation = TruncationFor(directory, plan->serving, tokenizer->get());
  model->most_text_tokens = plan->serving.max_text_tokens;
  model->prompts = plan->serving.prompts;
  model->default_prompt = plan->serving.default_prompt;
  model->dimensions = plan->serving.dimensions;
  model->threads = plan->load.threads;
  model->processor = context.devices.accelerators() > 0
                         ? absl::StrJoin(context.devices.descriptions, "; ")
                         : ProcessorName();
  model->tokenizer = *std::move(tokenizer);
  model->engine = *std::move(engine);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  LogReady(directory, *model, *plan, context.devices, seconds.count());
  return model;
}

absl::StatusOr<CheckedModel> CheckServed(const ModelDirectory& directory, const Config& config,
                                         const DevicePlan& devices) {
  const auto plan = PlanServing(directory, config, devices);
  if (!plan.ok()) return plan.status();
  const auto bytes = WeightBytesOf(directory, *plan);
  if (!bytes.ok()) return bytes.status();
  const auto tokenizer = LoadTokenizer(directory.path, plan->serving);
  if (!tokenizer.ok()) return tokenizer.status();
  const auto report = InspectModel(directory.path, /*look_at_weights=*/false);
  if (!report.ok()) return report.status();
  if (!report->difference.empty()) {
    return absl::InvalidArgumentError(directory.path + ": " + report->difference);
  }
  absl::Status fit = CheckDimensions(plan->serving.dimensions, report->info);
  if (fit.ok() && *tokenizer != nullptr) {
    fit = CheckTokenizer(directory.path, **tokenizer, report->info.signature);
  }
  if (!fit.ok()) return fit;
  return CheckedModel{report->info, *bytes, plan->replicas, plan->load.dtype,
                      *tokenizer != nullptr};
}

void SetQueueLimits(const ModelRepository& repository, const Config& config) {
  const auto found = ScanRepository(config.repository.root, config.repository.links());
  if (!found.ok()) return;  // as the reload of the models says
  for (const ModelDirectory& directory : *found) {
    const auto served = repository.Served(directory.name, directory.version);
    const auto serving = ServingOptionsFor(directory.path, config.serving);
    if (served && serving.ok()) served->engine->SetQueueLimits(serving->queue);
  }
}

int64_t WeightBytesOf(const ModelDirectory& directory, const Config& config,
                      const DevicePlan& devices) {
  const auto plan = PlanServing(directory, config, devices);
  if (!plan.ok()) return 0;
  return WeightBytesOf(directory, *plan).value_or(0);
}

}  // namespace linserve

#include "program/serve/load_served.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/sequence/pooling.h"
#include "core/strings/quote.h"
#include "core/system/processors.h"
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

absl::Status CheckPrompt(const std::string& directory, const ServingOptions& serving) {
  if (serving.default_prompt.empty() || serving.prompts.contains(serving.default_prompt)) {
    return absl::OkStatus();
  }
  std::string names;
  for (const auto& [name, prompt] : serving.prompts) names += (names.empty() ? "" : ", ") + name;
  return absl::InvalidArgumentError(
      directory + ": default_prompt is " + Quoted(serving.default_prompt) +
      ", expected a name in its prompts, " +
      (names.empty() ? "of which it has none" : "which are " + names));
}

// Plans how a version is served, and checks all that needs nothing but its options.
absl::StatusOr<ServingPlan> PlanServing(const ModelDirectory& directory, const Config& config,
                                        const DevicePlan& devices) {
  if (!directory.refused.empty()) return absl::FailedPreconditionError(directory.refused);
  auto serving = ServingOptionsFor(directory.path, config.serving);
  if (!serving.ok()) return serving.status();
  if (absl::Status fit = CheckPrompt(directory.path, *serving); !fit.ok()) return fit;
  ServingPlan plan;
  plan.replicas = serving->Replicas(devices.accelerators());
  plan.load = LoadOptionsFor(*serving, plan.replicas);
  plan.load.device = devices.devices.front();
  plan.serving = *std::move(serving);
  return plan;
}

// Returns what all copies of the weights take.
absl::StatusOr<ModelWeights> WeightsOf(const ModelDirectory& directory, const ServingPlan& plan) {
  auto weights = WeightsOf(directory.path, plan.load);
  if (!weights.ok()) return weights;
  // More than this there is nowhere; sums of it over all models do not overflow.
  constexpr int64_t kMost = int64_t{1} << 42;
  weights->bytes = std::min(weights->bytes, kMost);
  if (!plan.replicas.shared) weights->bytes *= plan.replicas.replicas;
  return weights;
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

// Returns the text in which pairs are written; nullopt if they are not.
absl::StatusOr<std::optional<PairText>> PairTextOf(const ServingOptions& serving,
                                                   const Tokenizer* tokenizer) {
  if (serving.pair_template.empty()) return std::nullopt;
  if (tokenizer == nullptr) {
    return absl::InvalidArgumentError(
        "pair_template is for models that take texts, and this one has no tokenizer");
  }
  auto pair = PairText::Parse(serving.pair_template, *tokenizer);
  if (!pair.ok()) return pair.status();
  return *std::move(pair);
}

// Returns how texts become rows; nullopt if they become what those of other models do.
absl::StatusOr<std::optional<LateTexts>> LateTextsOf(const ServingOptions& serving,
                                                     const Tokenizer* tokenizer) {
  if (!serving.late_interaction || tokenizer == nullptr) return std::nullopt;
  auto texts = LateTexts::Of(*serving.late_interaction, *tokenizer);
  if (!texts.ok()) return texts.status();
  return *std::move(texts);
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
  const auto weights = WeightsOf(directory, *plan);
  if (!weights.ok()) return weights.status();
  if (absl::Status status = room(weights->bytes); !status.ok()) return status;
  auto tokenizer = LoadTokenizer(directory.path, plan->serving);
  if (!tokenizer.ok()) return tokenizer.status();
  if (*tokenizer != nullptr) {
    plan->load.accept = [path = directory.path, serving = plan->serving,
                         own = *tokenizer](const Signature& signature) {
      return CheckTokenizer(path, serving, *own, signature);
    };
  }
  auto pair_text = PairTextOf(plan->serving, tokenizer->get());
  if (!pair_text.ok()) return pair_text.status();
  auto late_texts = LateTextsOf(plan->serving, tokenizer->get());
  if (!late_texts.ok()) return late_texts.status();
  EngineOptions options = plan->serving.ForEngine(plan->replicas);
  options.name = directory.name + "/" + std::to_string(directory.version);
  options.sessions.budget = context.sessions;
  options.on_ready_change = std::move(on_ready_change);
  const auto metrics = context.metrics.ShareModel(directory.name, directory.version);
  auto engine = Engine::Start(
      options, ReplicasOf(directory.path, plan->load, context.devices.devices), *metrics);
  if (!engine.ok()) return engine.status();
  absl::Status fit = CheckDimensions(plan->serving.dimensions, (*engine)->info());
  if (!fit.ok()) return fit;
  auto model = std::make_unique<ServedModel>();
  model->name = directory.name;
  model->version = directory.version;
  model->default_pooling = plan->serving.pooling;
  model->default_normalize = plan->serving.normalize;
  model->default_truncation = TruncationOf(plan->serving, tokenizer->get());
  std::tie(model->most_text_tokens, model->text_limit_origin) =
      TextLimitOf(plan->serving, tokenizer->get());
  model->prompts = plan->serving.prompts;
  model->default_prompt = plan->serving.default_prompt;
  model->pair_text = *std::move(pair_text);
  model->late_texts = *std::move(late_texts);
  if (plan->serving.static_settings && *tokenizer != nullptr) {
    model->static_texts.emplace(*plan->serving.static_settings, **tokenizer);
  }
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
  const auto weights = WeightsOf(directory, *plan);
  if (!weights.ok()) return weights.status();
  const auto tokenizer = LoadTokenizer(directory.path, plan->serving);
  if (!tokenizer.ok()) return tokenizer.status();
  const auto report = InspectModel(directory.path, /*look_at_weights=*/false);
  if (!report.ok()) return report.status();
  if (!report->difference.empty()) {
    return absl::InvalidArgumentError(directory.path + ": " + report->difference);
  }
  absl::Status fit = CheckDimensions(plan->serving.dimensions, report->info);
  if (fit.ok() && *tokenizer != nullptr) {
    fit = CheckTokenizer(directory.path, plan->serving, **tokenizer, report->info.signature);
  }
  if (fit.ok()) fit = PairTextOf(plan->serving, tokenizer->get()).status();
  if (!fit.ok()) return fit;
  return CheckedModel{report->info, *weights, plan->replicas, *tokenizer != nullptr};
}

void SetQueueLimits(const ModelRepository& repository, const Config& config) {
  const auto found = ScanRepository(config.repository.root);
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
  return WeightsOf(directory, *plan).value_or(ModelWeights()).bytes;
}

}  // namespace linserve

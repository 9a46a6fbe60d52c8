#include "program/serve/check_config.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/system/memory.h"
#include "core/system/processors.h"
#include "core/system/version.h"
#include "models/model_loader.h"
#include "program/serve/load_served.h"
#include "program/serve/prepare_server.h"
#include "program/serve/serve_http.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

namespace linserve {
namespace {

// Collects what would keep a server from starting.
class Faults {
 public:
  void Add(const absl::Status& status) {
    if (!status.ok()) all_.emplace_back(status.message());
  }
  absl::Status ToStatus() const {
    if (all_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrJoin(all_, "\nlinserve: "));
  }

 private:
  std::vector<std::string> all_;
};

// Puts what a server would run with in the place of what the configuration leaves open, so far as
// that is not planned with the memory.
void Resolve(const Prepared& prepared, Config& config) {
  config.devices.device = absl::StrJoin(prepared.devices.devices, ",");
  config.devices.processors = Processors();
  config.grpc.inflight = config.grpc.inflight.Resolved();
  config.max_session_bytes_per_caller = prepared.sessions->MostOfACaller();
  const ReplicaPlan plan = config.serving.Replicas(prepared.devices.accelerators());
  config.serving.replicas = plan.replicas;
  config.serving.threads = plan.threads;
  config.serving.max_batch_tokens = plan.batch_tokens;
  config.serving.max_batch_sequences = plan.batch_sequences;
}

std::string WithSize(const OptionTable::Description& option) {
  return option.current + (option.size.empty() ? "" : " (" + option.size + ")");
}

std::string OriginOf(const OptionTable::Description& option) {
  std::string origin = option.origin.empty() ? "default" : option.origin;
  if (!option.overridden_origin.empty()) {
    origin += ", in the place of " + option.overridden + " in " + option.overridden_origin;
  }
  return origin;
}

// Prints each option with its value, where that stands, and what it became.
void PrintOptions(const OptionTable& as_read, Config& resolved) {
  OptionTable resolved_table;
  resolved.Bind(resolved_table);
  const auto becomes = resolved_table.Describe();
  size_t place = 0;
  for (const OptionTable::Description& option : as_read.Describe()) {
    const OptionTable::Description& became = becomes[place++];
    if (!option.section.empty()) std::printf("\n%s\n", option.section.c_str());
    std::string value = WithSize(option);
    if (became.current != option.current) value += ", which becomes " + WithSize(became);
    std::printf("  %-34s %s   [%s]\n", option.name.c_str(), value.c_str(),
                OriginOf(option).c_str());
  }
}

void PrintModel(const ModelDirectory& directory, const absl::StatusOr<CheckedModel>& model) {
  std::printf("  %s, version %" PRId64 ": ", directory.name.c_str(), directory.version);
  if (!model.ok()) {
    std::printf("cannot be served: %s\n", std::string(model.status().message()).c_str());
    return;
  }
  std::printf("%s, %" PRId64 " parameters, %s of weights in %s, replicas: %" PRId64
              ", threads of each at most: %" PRId64 ", %s\n",
              model->info.architecture.c_str(), model->info.parameters,
              FormatBytes(static_cast<double>(model->weights.bytes)).c_str(),
              std::string(Name(model->weights.dtype)).c_str(), model->replicas.replicas,
              model->replicas.threads, model->text ? "takes texts" : "takes no texts");
}

// Returns the model if so many bytes are enough for its weights.
absl::StatusOr<CheckedModel> WithRoom(const ModelDirectory& directory, const CheckedModel& model,
                                      int64_t left) {
  if (model.weights.bytes <= left) return model;
  return absl::ResourceExhaustedError(
      directory.path + " needs " + FormatBytes(static_cast<double>(model.weights.bytes)) +
      " for its weights, but " + FormatBytes(static_cast<double>(std::max<int64_t>(0, left))) +
      " are left for them; raise the memory limit or max_model_bytes");
}

// Prints what lies in the repository and is no model, checks the models that would be served, and
// fails where a start would: by `exit_on_error` if one of them has no version that can be served,
// else if none has.
void CheckModels(const Config& config, const Prepared& prepared, Faults& faults) {
  std::printf("\nThe models\n");
  for (const PassedOver& one : prepared.passed_over) {
    std::printf("  %s: passed over: %s\n", one.directory.c_str(), one.because.c_str());
  }
  std::set<std::string> names;
  std::set<std::string> served;
  int64_t bytes = 0;
  absl::Status first;
  for (const ModelDirectory& directory : config.repository.versions.Choose(prepared.found)) {
    auto model = CheckServed(directory, config, prepared.devices);
    const int64_t most = config.repository.max_model_bytes;
    if (model.ok() && most > 0) model = WithRoom(directory, *model, most - bytes);
    if (model.ok()) bytes += model->weights.bytes;
    PrintModel(directory, model);
    first.Update(model.status());
    names.insert(directory.name);
    if (model.ok()) served.insert(directory.name);
  }
  if (served.empty() || (config.exit_on_error && served != names)) faults.Add(first);
}

// Listens for a moment, with the certificates and tokens that callers would meet.
void CheckListeners(Config config, Metrics& metrics, Faults& faults) {
  ModelRepository repository(metrics);
  const std::atomic<Phase> phase = Phase::kLoading;
  auto grpc = StartGrpc(config, repository, metrics);
  if (!grpc.ok()) {
    // HTTP is tried even where the address of gRPC is taken.
    faults.Add(grpc.status());
    config.grpc.address = {"127.0.0.1", 0};
    config.grpc.unix_socket = {};
    grpc = StartGrpc(config, repository, metrics);
  }
  if (!grpc.ok()) return;
  faults.Add(StartHttp(config, metrics, repository, **grpc, phase).status());
}

// A trace that is there is left as it is.
absl::Status CheckTrace(const TraceOptions& trace) {
  if (trace.path.empty()) return absl::OkStatus();
  const std::filesystem::path folder = std::filesystem::absolute(trace.path).parent_path();
  if (::access(folder.c_str(), W_OK) == 0) return absl::OkStatus();
  return absl::UnavailableError("the trace " + trace.path + " cannot be written");
}

}  // namespace

absl::Status CheckConfig(const Settings& settings) {
  Config config = settings.config;
  ConfigureLog(config.log);
  Faults faults;
  faults.Add(CheckTrace(config.trace));
  Metrics metrics({kVersion, kCommit, TorchVersion()});
  const auto prepared = PrepareServer(config, metrics);
  faults.Add(prepared.status());
  Config resolved = config;
  if (prepared.ok()) Resolve(*prepared, resolved);
  PrintOptions(settings.table, resolved);
  if (prepared.ok()) CheckModels(config, *prepared, faults);
  CheckListeners(config, metrics, faults);
  absl::Status status = faults.ToStatus();
  if (status.ok()) std::printf("\nA server would start with it.\n");
  std::fflush(stdout);  // before the error, where both go to one file
  return status;
}

}  // namespace linserve

#include "program/serve/prepare_server.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/system/processors.h"
#include "core/system/version.h"
#include "program/serve/prepare_memory.h"
#include "program/serve/serve_http.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

// Allows as many connections as the system does: gRPC does not recover from having had too few
// descriptors.
void AllowAllDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    Log(LogLevel::kWarning, "the limit of open files stays as it is",
        {{"error", std::string(std::strerror(errno))}});
  }
}

absl::StatusOr<DevicePlan> PrepareDevices(const Config& config, Metrics& metrics) {
  auto plan = PlanDevices(config.devices.device);
  if (!plan.ok()) return plan;
  metrics.SetDeviceFallback(plan->fallback);
  if (!plan->fallback.empty()) {
    Log(LogLevel::kInfo, "computing on the CPU", {{"because", plan->reason}});
  }
  for (int64_t i = 0; i < plan->accelerators(); ++i) {
    const std::string& device = plan->devices[static_cast<size_t>(i)];
    if (config.devices.max_device_bytes > 0) {
      if (absl::Status status = LimitMemory(device, config.devices.max_device_bytes);
          !status.ok()) {
        return status;
      }
    }
    metrics.AddDevice(device, [device] { return UseOf(device); });
    Log(LogLevel::kInfo, "device",
        {{"device", device}, {"description", plan->descriptions[static_cast<size_t>(i)]}});
  }
  return plan;
}

}  // namespace

absl::StatusOr<Prepared> PrepareServer(Config& config, Metrics& metrics) {
  AllowAllDescriptors();
  SetProcessors(config.devices.processors);
  std::vector<PassedOver> passed_over;
  auto found = ScanRepository(config.repository.root, &passed_over);
  if (!found.ok()) return found.status();
  WarnOfVersions(config.repository.root.path, *found);
  if (const RepositoryRoot& root = config.repository.root;
      !root.model_name.empty() && found->front().path != root.path) {
    Log(LogLevel::kInfo, "model_name names nothing: the repository is not a model itself",
        {{"model_name", root.model_name}, {"first", found->front().name}});
  }
  auto devices = PrepareDevices(config, metrics);
  if (!devices.ok()) return devices.status();
  auto sessions = PrepareMemory(config, *found, *devices, metrics);
  return Prepared{*std::move(found), std::move(passed_over), *std::move(devices),
                  std::move(sessions)};
}

absl::StatusOr<std::shared_ptr<GrpcServer>> StartGrpc(const Config& config,
                                                      ModelRepository& repository,
                                                      Metrics& metrics) {
  WarnOfPlainText("grpc_address", config.grpc.address, config.grpc.access.tls);
  GrpcOptions options = config.grpc;
  options.version = kVersion;
  return GrpcServer::Start(options, repository, metrics);
}

}  // namespace linserve

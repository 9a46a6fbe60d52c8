#include "rpc/calls/call_context.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/status/retry_delay.h"
#include "core/threads/guarded.h"
#include "rpc/calls/grpc_status.h"
#include "serving/admission.h"
#include "xds/data/orca/v3/orca_load_report.pb.h"

namespace linserve {
namespace {

absl::Status CheckMetadata(const grpc::ServerContextBase& context, int64_t most) {
  constexpr int64_t kEach = 32;  // as HTTP/2 counts (RFC 9113 6.5.2)
  int64_t bytes = 0;
  for (const auto& [name, value] : context.client_metadata()) {
    bytes += static_cast<int64_t>(name.size() + value.size()) + kEach;
  }
  if (bytes <= most) return absl::OkStatus();
  return NeverFits(absl::ResourceExhaustedError("the call brings " + std::to_string(bytes) +
                                                " bytes of metadata, expected at most " +
                                                std::to_string(most) + " (max_metadata_bytes)"));
}

// Returns the load as a serialized message.
std::string ToOrca(const ServerLoad& load) {
  xds::data::orca::v3::OrcaLoadReport report;
  report.set_cpu_utilization(load.cpu_utilization);
  report.set_mem_utilization(load.mem_utilization);
  report.set_application_utilization(load.application_utilization);
  report.set_rps_fractional(load.rps_fractional);
  report.set_eps(load.eps);
  (*report.mutable_named_metrics())["queue_delay_seconds"] = load.queue_delay_seconds;
  return report.SerializeAsString();
}

}  // namespace

TimePoint DeadlineOf(const grpc::ServerContextBase& context) {
  const auto deadline = context.deadline();
  const auto now = std::chrono::system_clock::now();
  // This is past any real deadline, and keeps the sum below from overflowing.
  constexpr auto kNever = std::chrono::hours(24 * 365);
  if (deadline > now + kNever) return TimePoint::max();
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(deadline - now);
}

std::string RequestIdOf(const grpc::ServerContextBase& context, const std::string& given) {
  const auto found = context.client_metadata().find("x-request-id");
  const bool usable = found != context.client_metadata().end() && !found->second.empty() &&
                      found->second.size() <= kMaxIdBytes;
  if (usable) return {found->second.data(), found->second.size()};
  return RequestIdOr(given);
}

TraceContext TraceOf(const grpc::ServerContextBase& context) {
  const auto found = context.client_metadata().find("traceparent");
  if (found == context.client_metadata().end()) return {};
  return ReadTraceparent(std::string_view(found->second.data(), found->second.size()));
}

absl::StatusOr<std::shared_ptr<const Caller>> CallerOf(const grpc::ServerContextBase& context,
                                                       const ServiceContext& service) {
  if (absl::Status status = CheckMetadata(context, service.limits.max_metadata_bytes);
      !status.ok()) {
    return status;
  }
  const auto found = context.client_metadata().find("authorization");
  std::string_view header;
  if (found != context.client_metadata().end()) {
    header = {found->second.data(), found->second.size()};
  }
  return service.access->Authenticate(header, context.peer());
}

Arrival Identify(const ServiceContext& service, const grpc::ServerContextBase& context) {
  Arrival arrival{.context = {.deadline = DeadlineOf(context), .trace = TraceOf(context)}};
  auto caller = CallerOf(context, service);
  if (caller.ok()) {
    arrival.context.caller = *std::move(caller);
  } else {
    arrival.admitted = caller.status();
  }
  return arrival;
}

Arrival Admit(const ServiceContext& service, const grpc::ServerContextBase& context,
              int64_t request_bytes) {
  Arrival arrival = Identify(service, context);
  if (arrival.admitted.ok()) {
    arrival.admitted = AdmitCaller(service, *arrival.context.caller, request_bytes);
  }
  return arrival;
}

std::string LoadReport(LoadReporter& load) { return load.Encoded(&ToOrca); }

void AddLoadReport(grpc::ServerContextBase& context, LoadReporter& load) {
  RunGuarded("a load report",
             [&] { context.AddTrailingMetadata(kLoadReportKey, LoadReport(load)); });
}

void AddRetryDelay(grpc::ServerContextBase& context, const grpc::Status& status) {
  RunGuarded("a retry delay", [&] {
    if (const auto delay = RetryDelayOf(status)) {
      context.AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(delay->count()));
    }
  });
}

}  // namespace linserve

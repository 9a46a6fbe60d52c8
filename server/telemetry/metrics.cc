#include "telemetry/metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "core/threads/mutex.h"
#include "telemetry/instruments.h"

namespace linserve {
namespace {

// Names the values of Refusal in their order.
constexpr std::array<std::string_view, 4> kRefusals = {"unauthenticated", "forbidden", "rate",
                                                       "inflight"};

// Names the values of MemoryPart in their order.
constexpr std::array<std::string_view, 6> kMemoryParts = {"program",  "weights", "inflight",
                                                          "sessions", "cache",   "scratch"};

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  std::array<prometheus::Counter*, kRefusals.size()> refused =
      Instruments(registry, {})
          .Counters("linserve_refused_total",
                    "Requests that were refused before any model saw them.", "reason", kRefusals);
  prometheus::Counter& reset_floods =
      Instruments(registry, {})
          .Counter("linserve_reset_floods_total",
                   "Connections that were ended because their caller reset calls faster than they "
                   "can be dropped.");
  prometheus::Gauge& inflight_bytes = Instruments(registry, {})
                                          .Gauge("linserve_inflight_bytes",
                                                 "Of requests, and of the results that they are to "
                                                 "have, from arrival to the last answer.");
  prometheus::Gauge& max_inflight_bytes =
      Instruments(registry, {})
          .Gauge("linserve_max_inflight_bytes", "What linserve_inflight_bytes may come to.");
  std::array<prometheus::Gauge*, kMemoryParts.size()> memory_plan =
      Instruments(registry, {})
          .Gauges("linserve_memory_plan_bytes", "What the memory limit is planned to be used for.",
                  "part", kMemoryParts);
  Mutex mutex;
  std::map<std::pair<std::string, int64_t>, std::unique_ptr<ModelMetrics>> models
      ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::unique_ptr<RpcMetrics>> rpcs ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::function<DeviceUse()>> devices ABSL_GUARDED_BY(mutex);

  void ReadDevices();
};

Metrics::Metrics(const BuildInfo& build) : impl_(std::make_unique<Impl>()) {
  Instruments(impl_->registry,
              {{"version", build.version}, {"commit", build.commit}, {"torch", build.torch}})
      .Gauge("linserve_build_info", "Always 1; the labels say what is running.")
      .Set(1);
}

Metrics::~Metrics() = default;

ModelMetrics& Metrics::ForModel(const std::string& name, int64_t version) {
  const MutexLock lock(impl_->mutex);
  std::unique_ptr<ModelMetrics>& handle = impl_->models[{name, version}];
  if (!handle) handle = MakeModelMetrics(impl_->registry, name, version);
  return *handle;
}

RpcMetrics& Metrics::ForRpc(const std::string& rpc) {
  const MutexLock lock(impl_->mutex);
  std::unique_ptr<RpcMetrics>& handle = impl_->rpcs[rpc];
  if (!handle) handle = MakeRpcMetrics(impl_->registry, rpc);
  return *handle;
}

void Metrics::Refused(Refusal reason) { At(impl_->refused, reason).Increment(); }

void Metrics::ResetFlood() { impl_->reset_floods.Increment(); }

void Metrics::SetMaxInflightBytes(int64_t bytes) {
  impl_->max_inflight_bytes.Set(static_cast<double>(bytes));
}

void Metrics::SetMemoryPlan(MemoryPart part, int64_t bytes) {
  At(impl_->memory_plan, part).Set(static_cast<double>(bytes));
}

void Metrics::SetInflightBytes(int64_t bytes) {
  impl_->inflight_bytes.Set(static_cast<double>(bytes));
}

void Metrics::AddDevice(const std::string& device, std::function<DeviceUse()> use) {
  const MutexLock lock(impl_->mutex);
  impl_->devices[device] = std::move(use);
}

void Metrics::SetDeviceFallback(const std::string& reason) {
  const Instruments make(impl_->registry, {});
  for (const char* known : {"no_plugin", "unusable_plugin", "no_device"}) {
    make.Gauge("linserve_device_fallback",
               "1 if models compute on the CPU because, for this reason, no GPU could be used.",
               {{"reason", known}})
        .Set(reason == known ? 1 : 0);
  }
}

void Metrics::Impl::ReadDevices() {
  const MutexLock lock(mutex);
  for (const auto& [device, use] : devices) {
    const DeviceUse now = use();
    const Instruments make(registry, {{"device", device}});
    const auto set = [&](const char* name, const char* help, int64_t bytes) {
      make.Gauge(name, help).Set(static_cast<double>(bytes));
    };
    set("linserve_device_memory_used_bytes", "Of the device's memory, in tensors.", now.used);
    set("linserve_device_memory_reserved_bytes",
        "Of the device's memory, taken by the pool that tensors come from.", now.reserved);
    set("linserve_device_memory_limit_bytes", "What the pool may take at most.", now.limit);
  }
}

std::string Metrics::Scrape() const {
  impl_->ReadDevices();
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  std::vector<prometheus::MetricFamily> process = ProcessMetrics();
  families.insert(families.end(), std::move_iterator(process.begin()),
                  std::move_iterator(process.end()));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace linserve

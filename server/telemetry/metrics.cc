#include "telemetry/metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <utility>

#include "core/threads/mutex.h"
#include "telemetry/instruments.h"
#include "telemetry/open_metrics.h"

namespace linserve {
namespace {

// Names the values of Refusal in their order.
constexpr std::array<std::string_view, 5> kRefusals = {"unauthenticated", "forbidden", "rate",
                                                       "inflight", "caller_inflight"};

// Names the values of MemoryPart in their order.
constexpr std::array<std::string_view, 6> kMemoryParts = {"program",  "weights", "inflight",
                                                          "sessions", "cache",   "scratch"};

// Name the values of Reload and SpanEnd in their order.
constexpr std::array<std::string_view, 4> kReloads = {"certificate", "tokens", "models", "config"};
constexpr std::array<std::string_view, 3> kSpanEnds = {"sent", "dropped", "failed"};

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
                   "can be dropped, or had the most of too many calls.");
  prometheus::Counter& memory_floods =
      Instruments(registry, {})
          .Counter("linserve_memory_floods_total",
                   "Connections that were ended for headers without an end, or since memory was "
                   "nearly used up and they probably took most of it.");
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
  std::array<prometheus::Counter*, kReloads.size()> failed_reloads =
      Instruments(registry, {})
          .Counters("linserve_reload_failures_total",
                    "Times that something could not be read again, so that what was read before "
                    "goes on.",
                    "what", kReloads);
  std::array<prometheus::Counter*, kSpanEnds.size()> spans =
      Instruments(registry, {})
          .Counters("linserve_spans_total",
                    "Spans of traced requests, by what became of them on the way to otlp_endpoint.",
                    "result", kSpanEnds);
  ByLabel<prometheus::Counter*> computed{[this](const std::string& caller) {
    return std::make_unique<prometheus::Counter*>(
        &Instruments(registry, {{"caller", caller}})
             .Counter("linserve_caller_tokens_total",
                      "Tokens that were computed for the caller, by the name of its token."));
  }};
  ByLabel<prometheus::Counter*> http_replies{[this](const std::string& status) {
    return std::make_unique<prometheus::Counter*>(
        &Instruments(registry, {{"status", status}})
             .Counter("linserve_http_replies_total",
                      "Replies over HTTP, those included that no call has seen, by their status."));
  }};
  std::atomic<int64_t> certificate_expiry = 0;  // in seconds since the Unix epoch; 0: there is none
  Mutex mutex;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<ModelMetrics>> models
      ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::unique_ptr<RpcMetrics>> rpcs ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::function<DeviceUse()>> devices ABSL_GUARDED_BY(mutex);

  // These are copied, since every call needs the lock: a device may keep whoever asks waiting.
  auto Models() {
    const MutexLock lock(mutex);
    return models;
  }
  auto Devices() {
    const MutexLock lock(mutex);
    return devices;
  }

  void ReadDevices();
  void ReadCertificate();
  std::vector<prometheus::MetricFamily> Collect();
  Exemplars ReadExemplars();
};

Metrics::Metrics(const BuildInfo& build) : impl_(std::make_unique<Impl>()) {
  Instruments(impl_->registry,
              {{"version", build.version}, {"commit", build.commit}, {"torch", build.torch}})
      .Gauge("linserve_build_info", "Always 1; the labels say what is running.")
      .Set(1);
}

Metrics::~Metrics() = default;

std::shared_ptr<ModelMetrics> Metrics::ShareModel(const std::string& name, int64_t version) {
  const MutexLock lock(impl_->mutex);
  std::shared_ptr<ModelMetrics>& handle = impl_->models[{name, version}];
  if (!handle) handle = MakeModelMetrics(name, version);
  return handle;
}

void Metrics::ForgetModel(const std::string& name, int64_t version) {
  const MutexLock lock(impl_->mutex);
  impl_->models.erase({name, version});
}

RpcMetrics& Metrics::ForRpc(const std::string& rpc) {
  const MutexLock lock(impl_->mutex);
  std::unique_ptr<RpcMetrics>& handle = impl_->rpcs[rpc];
  if (!handle) handle = MakeRpcMetrics(impl_->registry, rpc);
  return *handle;
}

void Metrics::Refused(Refusal reason) { At(impl_->refused, reason).Increment(); }

void Metrics::Computed(const std::string& caller, int64_t tokens) {
  impl_->computed.Of(caller)->Increment(static_cast<double>(tokens));
}

void Metrics::HttpReplied(int status) {
  impl_->http_replies.Of(std::to_string(status))->Increment();
}

void Metrics::ReloadFailed(Reload what) { At(impl_->failed_reloads, what).Increment(); }

void Metrics::SetCertificateExpiry(std::chrono::system_clock::time_point expiry) {
  impl_->certificate_expiry =
      std::chrono::floor<std::chrono::seconds>(expiry.time_since_epoch()).count();
}

void Metrics::SpansEnded(SpanEnd how, size_t count) {
  At(impl_->spans, how).Increment(static_cast<double>(count));
}

void Metrics::ResetFloods(int count) { impl_->reset_floods.Increment(count); }

void Metrics::MemoryFloods(int count) { impl_->memory_floods.Increment(count); }

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
  for (const auto& [device, use] : Devices()) {
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

void Metrics::Impl::ReadCertificate() {
  if (certificate_expiry == 0) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Instruments(registry, {})
      .Gauge("linserve_certificate_remaining_seconds",
             "Until the first certificate of tls_certificate expires.")
      .Set(static_cast<double>(certificate_expiry) - Seconds(now));
}

// Returns the families of all registries: each model's metrics are in one of its own.
std::vector<prometheus::MetricFamily> Metrics::Impl::Collect() {
  std::vector<prometheus::MetricFamily> families = registry.Collect();
  std::map<std::string, size_t> places;
  for (const auto& [of, model] : Models()) {
    for (prometheus::MetricFamily& family : model->Collect()) {
      const auto [place, added] = places.try_emplace(family.name, families.size());
      if (added) {
        families.push_back(std::move(family));
      } else {
        std::move(family.metric.begin(), family.metric.end(),
                  std::back_inserter(families[place->second].metric));
      }
    }
  }
  return families;
}

Exemplars Metrics::Impl::ReadExemplars() {
  Exemplars exemplars;
  const MutexLock lock(mutex);
  for (const auto& [name, rpc] : rpcs) rpc->AddExemplars(exemplars);
  return exemplars;
}

std::string Metrics::Scrape(MetricsFormat format) const {
  impl_->ReadDevices();
  impl_->ReadCertificate();
  std::vector<prometheus::MetricFamily> families = impl_->Collect();
  std::vector<prometheus::MetricFamily> process = ProcessMetrics();
  families.insert(families.end(), std::move_iterator(process.begin()),
                  std::move_iterator(process.end()));
  if (format == MetricsFormat::kText) return prometheus::TextSerializer().Serialize(families);
  return ToOpenMetrics(families, impl_->ReadExemplars());
}

}  // namespace linserve

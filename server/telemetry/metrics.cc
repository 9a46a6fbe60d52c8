#include "telemetry/metrics.h"

#include <prometheus/text_serializer.h>

#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "telemetry/instruments.h"

namespace linserve {

struct Metrics::Impl {
  prometheus::Registry registry;
  std::mutex mutex;  // guards the maps
  std::map<std::pair<std::string, int64_t>, std::unique_ptr<ModelMetrics>> models;
  std::map<std::string, std::unique_ptr<RpcMetrics>> rpcs;
};

Metrics::Metrics(const BuildInfo& build) : impl_(std::make_unique<Impl>()) {
  Instruments(impl_->registry,
              {{"version", build.version}, {"commit", build.commit}, {"torch", build.torch}})
      .Gauge("linserve_build_info", "Always 1; the labels say what is running.")
      .Set(1);
}

Metrics::~Metrics() = default;

ModelMetrics& Metrics::ForModel(const std::string& name, int64_t version) {
  std::lock_guard lock(impl_->mutex);
  std::unique_ptr<ModelMetrics>& handle = impl_->models[{name, version}];
  if (!handle) handle = MakeModelMetrics(impl_->registry, name, version);
  return *handle;
}

RpcMetrics& Metrics::ForRpc(const std::string& rpc) {
  std::lock_guard lock(impl_->mutex);
  std::unique_ptr<RpcMetrics>& handle = impl_->rpcs[rpc];
  if (!handle) handle = MakeRpcMetrics(impl_->registry, rpc);
  return *handle;
}

std::string Metrics::Scrape() const {
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  std::vector<prometheus::MetricFamily> process = ProcessMetrics();
  families.insert(families.end(), std::move_iterator(process.begin()),
                  std::move_iterator(process.end()));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace linserve

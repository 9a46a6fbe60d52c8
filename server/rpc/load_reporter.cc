#include "rpc/load_reporter.h"

#include <algorithm>

#include "core/memory.h"
#include "core/processors.h"
#include "core/seconds.h"
#include "telemetry/process_stat.h"
#include "xds/data/orca/v3/orca_load_report.pb.h"

namespace linserve {
namespace {

constexpr std::chrono::milliseconds kCountPeriod(200);

// What was counted in between; models that were withdrawn take their counts with them.
template <typename T>
double Growth(T before, T now) {
  return now > before ? static_cast<double>(now - before) : 0;
}

}  // namespace

LoadReporter::LoadReporter(const ModelRepository& repository, Clock& clock)
    : repository_(repository),
      clock_(clock),
      processors_(static_cast<double>(Processors())),
      memory_bytes_(static_cast<double>(MemoryBytes())),
      last_(Count()),
      report_(Between(last_, last_)) {}

std::string LoadReporter::Report() {
  MutexLock lock(mutex_);
  if (clock_.Now() - last_.time >= kCountPeriod) {
    const Totals now = Count();
    report_ = Between(last_, now);
    last_ = now;
  }
  return report_;
}

LoadReporter::Totals LoadReporter::Count() const {
  Totals totals;
  totals.time = clock_.Now();
  if (const auto stat = ReadProcessStat()) {
    totals.cpu_seconds = stat->cpu_seconds;
    totals.resident_bytes = stat->resident_bytes;
  }
  for (const auto& model : repository_.List()) {
    const ModelFigures figures = model->engine->metrics().statistics().Read();
    totals.computing += model->engine->ComputingTime();
    totals.replicas += model->engine->options().replicas;
    totals.answered += figures.success.count + figures.fail.count;
    totals.failed += figures.fail.count;
    totals.queue_delay = std::max(totals.queue_delay, model->engine->DelayEstimate());
  }
  return totals;
}

std::string LoadReporter::Between(const Totals& before, const Totals& now) const {
  // Equal at the very start, of which nothing is known.
  const double seconds = std::max(Seconds(now.time - before.time), 1e-3);
  xds::data::orca::v3::OrcaLoadReport report;
  report.set_cpu_utilization((now.cpu_seconds - before.cpu_seconds) / seconds / processors_);
  report.set_mem_utilization(now.resident_bytes / memory_bytes_);
  report.set_rps_fractional(Growth(before.answered, now.answered) / seconds);
  report.set_eps(Growth(before.failed, now.failed) / seconds);
  const auto replicas = static_cast<double>(std::max<int64_t>(now.replicas, 1));
  report.set_application_utilization(
      1e-9 * Growth(before.computing.count(), now.computing.count()) / seconds / replicas);
  (*report.mutable_named_metrics())["queue_delay_seconds"] = Seconds(now.queue_delay);
  return report.SerializeAsString();
}

}  // namespace linserve

#include "serving/load_reporter.h"

#include <algorithm>

#include "core/system/memory.h"
#include "core/system/processors.h"
#include "core/system/seconds.h"
#include "telemetry/process_stat.h"

namespace linserve {
namespace {

constexpr std::chrono::milliseconds kCountPeriod(200);

// Returns by how much a count has grown. One that is less than it was has been begun afresh.
template <typename Count>
Count Growth(Count before, Count now) {
  return now < before ? now : now - before;
}

}  // namespace

LoadReporter::LoadReporter(const ModelRepository& repository, Clock& clock)
    : repository_(repository),
      clock_(clock),
      processors_(static_cast<double>(Processors())),
      memory_bytes_(static_cast<double>(MemoryBytes())),
      last_(Count()),
      report_(Between(last_, last_)) {}

std::string LoadReporter::Encoded(absl::FunctionRef<std::string(const ServerLoad&)> encode) {
  MutexLock lock(mutex_);
  if (clock_.Now() - last_.time >= kCountPeriod) {
    const Totals now = Count();
    report_ = Between(last_, now);
    last_ = now;
    encoded_.clear();
  }
  if (encoded_.empty()) encoded_ = encode(report_);
  return encoded_;
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
    totals.versions[{model->name, model->version}] = {
        .computing = model->engine->ComputingTime(),
        .answered = figures.success.count + figures.fail.count,
        .failed = figures.fail.count};
    totals.replicas += model->engine->apart();
    totals.queue_delay = std::max(totals.queue_delay, model->engine->DelayEstimate());
  }
  return totals;
}

ServerLoad LoadReporter::Between(const Totals& before, const Totals& now) const {
  // The times are equal at the very start, when nothing is known yet.
  const double seconds = std::max(Seconds(now.time - before.time), 1e-3);
  const auto replicas = static_cast<double>(std::max<int64_t>(now.replicas, 1));
  VersionTotals growth;
  for (const auto& [version, counted] : now.versions) {
    const auto old = before.versions.find(version);
    if (old == before.versions.end()) continue;  // what it counted when it was served before is old
    growth.computing += Growth(old->second.computing, counted.computing);
    growth.answered += Growth(old->second.answered, counted.answered);
    growth.failed += Growth(old->second.failed, counted.failed);
  }
  return {
      .cpu_utilization = (now.cpu_seconds - before.cpu_seconds) / seconds / processors_,
      .mem_utilization = now.resident_bytes / memory_bytes_,
      .application_utilization =
          1e-9 * static_cast<double>(growth.computing.count()) / seconds / replicas,
      .rps_fractional = static_cast<double>(growth.answered) / seconds,
      .eps = static_cast<double>(growth.failed) / seconds,
      .queue_delay_seconds = Seconds(now.queue_delay),
  };
}

}  // namespace linserve

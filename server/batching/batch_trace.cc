#include "batching/batch_trace.h"

#include <string>

#include "telemetry/trace.h"

namespace linserve {
namespace {

// Lists the ids of the requests of a batch, as many as one reads.
std::string Requests(const ClosedBatch& closed) {
  constexpr size_t kMost = 32;
  std::string ids;
  size_t count = 0;
  const RequestOrigin* last = nullptr;
  for (const Pending& pending : closed.sequences) {
    if (pending.origin.get() == last) continue;
    if (++count > kMost) return ids + " ...";
    last = pending.origin.get();
    ids += (ids.empty() ? "" : " ") + last->request_id;
  }
  return ids;
}

std::string CodeOf(const absl::Status& status) {
  return std::string(absl::StatusCodeToString(status.code()));
}

// Traces a sequence and returns its lane. `code` is "" where its answer decides.
uint64_t TraceSequence(const Pending& pending, TimePoint ended, const std::string& code) {
  const uint64_t lane = NewTraceLane();
  TraceSpan(lane, "sequence", pending.enqueued, ended,
            {{"request_id", pending.origin->request_id},
             {"trace_id", pending.origin->trace_id},
             {"tokens", pending.tokens},
             {"code", code}});
  return lane;
}

}  // namespace

void TraceBatch(const ClosedBatch& closed, const Timing& timing, TimePoint ended,
                const absl::Status& status) {
  if (!Tracing()) return;
  const TimePoint started = ended - timing.compute;
  const TimePoint copied_in = started + timing.copy_in;
  const TimePoint computed = ended - timing.copy_out;
  TraceSpan(kTraceThread, "batch", closed.closed, ended,
            {{"sequences", timing.batch_sequences},
             {"rows", timing.batch_tokens},
             {"closed_by", std::string(Name(closed.reason))},
             {"code", CodeOf(status)},
             {"requests", Requests(closed)}});
  TraceSpan(kTraceThread, "form", closed.closed, started);
  TraceSpan(kTraceThread, "copy in", started, copied_in);
  TraceSpan(kTraceThread, "forward", copied_in, computed);
  TraceSpan(kTraceThread, "copy out", computed, ended);
  for (const Pending& pending : closed.sequences) {
    const uint64_t lane = TraceSequence(pending, ended, "");
    TraceSpan(lane, "queue", pending.enqueued, closed.closed);
    TraceSpan(lane, "form", closed.closed, started);
    TraceSpan(lane, "compute", started, ended);
  }
}

void TraceQueued(const Pending& pending, TimePoint now, const absl::Status& status) {
  if (!Tracing()) return;
  TraceSpan(TraceSequence(pending, now, CodeOf(status)), "queue", pending.enqueued, now);
}

}  // namespace linserve

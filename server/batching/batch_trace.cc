#include "batching/batch_trace.h"

#include <algorithm>
#include <string>

#include "telemetry/trace/trace.h"

namespace linserve {
namespace {

bool IsTraced(const Pending& pending) { return pending.origin->trace.traced(); }

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

// Traces a sequence and returns its span. `code` is "" where its answer decides.
uint64_t TraceSequence(const Pending& pending, TimePoint ended, const std::string& code) {
  const TraceContext& trace = pending.origin->trace;
  const uint64_t span = NewSpanId();
  TraceSpan({.name = "sequence",
             .trace_id = trace.trace_id,
             .id = span,
             .parent = trace.span,
             .begin = pending.enqueued,
             .end = ended,
             .fields = {{"request_id", pending.origin->request_id},
                        {"tokens", pending.tokens},
                        {"code", code}}});
  return span;
}

// Traces a part of what became of a sequence.
void TracePart(const Pending& pending, uint64_t sequence, const char* name, TimePoint begin,
               TimePoint end) {
  TraceSpan({.name = name,
             .trace_id = pending.origin->trace.trace_id,
             .id = NewSpanId(),
             .parent = sequence,
             .within = sequence,
             .begin = begin,
             .end = end});
}

}  // namespace

void TraceBatch(const ClosedBatch& closed, const Timing& timing, TimePoint ended,
                const absl::Status& status) {
  if (!Tracing() || std::none_of(closed.sequences.begin(), closed.sequences.end(), IsTraced)) {
    return;
  }
  const TimePoint started = ended - timing.compute;
  const TimePoint copied_in = started + timing.copy_in;
  const TimePoint computed = ended - timing.copy_out;
  TraceOnThread("batch", closed.closed, ended,
                {{"sequences", timing.batch_sequences},
                 {"rows", timing.batch_tokens},
                 {"closed_by", std::string(Name(closed.reason))},
                 {"code", CodeOf(status)},
                 {"requests", Requests(closed)}});
  TraceOnThread("form", closed.closed, started);
  TraceOnThread("copy in", started, copied_in);
  TraceOnThread("forward", copied_in, computed);
  TraceOnThread("copy out", computed, ended);
  for (const Pending& pending : closed.sequences) {
    if (!IsTraced(pending)) continue;
    const uint64_t sequence = TraceSequence(pending, ended, "");
    TracePart(pending, sequence, "queue", pending.enqueued, closed.closed);
    TracePart(pending, sequence, "form", closed.closed, started);
    TracePart(pending, sequence, "compute", started, ended);
  }
}

void TraceQueued(const Pending& pending, TimePoint now, const absl::Status& status) {
  if (!Tracing() || !IsTraced(pending)) return;
  const uint64_t sequence = TraceSequence(pending, now, CodeOf(status));
  TracePart(pending, sequence, "queue", pending.enqueued, now);
}

}  // namespace linserve

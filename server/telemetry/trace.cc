#include "telemetry/trace.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/mutex.h"
#include "telemetry/log_format.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr int kProcess = 1;

// Written so many bytes at a time, of whole events: the file can be read at any moment.
constexpr size_t kBuffer = 1 << 16;

// An array whose end may be missing: what reads traces knows that processes are killed.
class TraceFile {
 public:
  absl::Status Open(const std::string& path, int64_t max_bytes) {
    MutexLock lock(mutex_);
    file_ = std::fopen(path.c_str(), "we");
    if (file_ == nullptr) {
      return absl::UnavailableError("cannot write the trace to " + path + ": " +
                                    std::strerror(errno));
    }
    std::setvbuf(file_, nullptr, _IONBF, 0);
    left_ = max_bytes;
    start_ = std::chrono::steady_clock::now();
    buffer_ = "[\n";
    open_ = true;
    return absl::OkStatus();
  }

  void Close() {
    MutexLock lock(mutex_);
    if (file_ == nullptr) return;
    open_ = false;
    buffer_ += "{}]\n";
    Flush();
    std::fclose(file_);
    file_ = nullptr;
  }

  bool open() const { return open_; }

  double Microseconds(TraceTime time) const {
    return std::chrono::duration<double, std::micro>(time - start_).count();
  }

  void Write(const std::string& events) {
    MutexLock lock(mutex_);
    if (file_ == nullptr || !open_) return;
    left_ -= static_cast<int64_t>(events.size());
    if (left_ >= 0) buffer_ += events;
    if (left_ >= 0 && (buffer_.size() < kBuffer || Flush())) return;
    open_ = false;
    Log(LogLevel::kWarning, "the trace ends here",
        {{"reason",
          std::string(left_ < 0 ? "trace_max_bytes are written" : std::strerror(errno))}});
  }

 private:
  bool Flush() LINSERVE_REQUIRES(mutex_) {
    const bool written = std::fwrite(buffer_.data(), 1, buffer_.size(), file_) == buffer_.size();
    buffer_.clear();
    return written;
  }

  std::atomic<bool> open_{false};
  TraceTime start_{};
  Mutex mutex_;
  std::FILE* file_ LINSERVE_GUARDED_BY(mutex_) = nullptr;
  std::string buffer_ LINSERVE_GUARDED_BY(mutex_);
  int64_t left_ LINSERVE_GUARDED_BY(mutex_) = 0;
};

// Never destroyed: threads may trace while the process exits.
TraceFile& TheTrace() {
  static auto* const trace = new TraceFile;
  return *trace;
}

std::string Line(const json& event) {
  return event.dump(-1, ' ', false, json::error_handler_t::replace) + ",\n";
}

json Event(const char* phase, std::string_view name) {
  thread_local const int64_t thread = gettid();
  return {{"ph", phase}, {"name", name}, {"pid", kProcess}, {"tid", thread}};
}

json Arguments(std::initializer_list<LogField> fields) {
  json arguments = json::object();
  SetFields(arguments, fields);
  for (const LogField& field : fields) {
    if (arguments[std::string(field.key)] == "") arguments.erase(std::string(field.key));
  }
  return arguments;
}

}  // namespace

absl::Status OpenTrace(const std::string& path, int64_t max_bytes) {
  absl::Status status = TheTrace().Open(path, max_bytes);
  if (!status.ok()) return status;
  json name = Event("M", "process_name");
  name["args"] = {{"name", "linserve"}};
  TheTrace().Write(Line(name));
  return status;
}

void CloseTrace() { TheTrace().Close(); }

bool Tracing() { return TheTrace().open(); }

void NameTraceThread(std::string_view name) {
  if (!Tracing()) return;
  json event = Event("M", "thread_name");
  event["args"] = {{"name", name}};
  TheTrace().Write(Line(event));
}

uint64_t NewTraceLane() {
  static std::atomic<uint64_t> lanes{kTraceThread};
  return ++lanes;
}

void TraceSpan(uint64_t lane, std::string_view name, TraceTime begin, TraceTime end,
               std::initializer_list<LogField> fields) {
  TraceFile& trace = TheTrace();
  if (!trace.open()) return;
  if (lane == kTraceThread) {
    json event = Event("X", name);
    event["ts"] = trace.Microseconds(begin);
    event["dur"] = trace.Microseconds(end) - trace.Microseconds(begin);
    event["args"] = Arguments(fields);
    return trace.Write(Line(event));
  }
  json first = Event("b", name);
  first["cat"] = "request";
  first["id"] = lane;
  json last = first;
  first["ts"] = trace.Microseconds(begin);
  first["args"] = Arguments(fields);
  last["ph"] = "e";
  last["ts"] = trace.Microseconds(end);
  trace.Write(Line(first) + Line(last));
}

}  // namespace linserve

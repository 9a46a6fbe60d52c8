#include <algorithm>
#include <utility>

#include "telemetry/instruments.h"

namespace linserve {
namespace {

constexpr std::array<std::string_view, 2> kDirections = {"received", "sent"};

constexpr double kGiB = 1 << 30;

constexpr const char* kDuration = "linserve_request_duration_seconds";

}  // namespace

// Counts the requests of an RPC for one model. It is not of the unnamed namespace, since Handles
// holds it, which is not.
class RequestsOfModel {
 public:
  explicit RequestsOfModel(const Instruments& make)
      : finished_(make.Counters("linserve_requests_total",
                                "Finished requests, by gRPC status code.", "code", kCodes)),
        duration_(make, kDuration, "Time in the server of a request that was OK.", TimeBuckets()) {}

  void Finished(int code, double seconds, const std::string& trace_id) {
    OfCode(finished_, code).Increment();
    if (code != 0) return;
    duration_.Observe(seconds);
    if (!trace_id.empty()) Remember({trace_id, seconds, UnixTime()});
  }

  // Returns the last traced request of each bucket, the last of which has no bound.
  std::vector<Exemplar> Last() {
    const MutexLock lock(mutex_);
    return last_;
  }

 private:
  static double UnixTime() { return Seconds(std::chrono::system_clock::now().time_since_epoch()); }

  void Remember(Exemplar exemplar) {
    static const std::vector<double> bounds = TimeBuckets();
    const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), exemplar.value);
    const MutexLock lock(mutex_);
    last_.resize(bounds.size() + 1);
    last_[static_cast<size_t>(bucket - bounds.begin())] = std::move(exemplar);
  }

  const std::array<prometheus::Counter*, kCodes.size()> finished_;
  LaterHistogram duration_;
  Mutex mutex_;
  std::vector<Exemplar> last_ ABSL_GUARDED_BY(mutex_);  // empty: none was traced
};

struct RpcMetrics::Handles {
  explicit Handles(Instruments of_rpc) : make(std::move(of_rpc)) { requests.Of(""); }

  Instruments make;

  ByLabel<RequestsOfModel> requests{[this](const std::string& model) {
    return std::make_unique<RequestsOfModel>(make.Of({{"model", model}}));
  }};
  LaterHistogram first_response{make, "linserve_first_response_seconds",
                                "From a request's start to its first result.", TimeBuckets()};
  LaterHistogram send_duration{make, "linserve_send_duration_seconds",
                               "Time of writing one message, waiting for its reader included.",
                               TimeBuckets()};
  std::array<LaterHistogram, kDirections.size()> message_bytes = {BytesOf(kDirections[0]),
                                                                  BytesOf(kDirections[1])};
  prometheus::Gauge& in_flight =
      make.Gauge("linserve_in_flight_requests", "Requests that have started and not finished.");
  prometheus::Gauge& open_streams = make.Gauge("linserve_open_streams", "Streams that are open.");

 private:
  LaterHistogram BytesOf(std::string_view direction) const {
    return LaterHistogram(make, "linserve_grpc_message_bytes", "Size of a gRPC message.",
                          GeometricBuckets(64, 4, kGiB), {{"direction", std::string(direction)}});
  }
};

RpcMetrics::RpcMetrics(std::string rpc, std::unique_ptr<Handles> handles)
    : rpc_(std::move(rpc)), handles_(std::move(handles)) {}
RpcMetrics::~RpcMetrics() = default;

void RpcMetrics::Started() { handles_->in_flight.Increment(); }

void RpcMetrics::Finished(int code, std::chrono::nanoseconds duration, const std::string& model,
                          const std::string& trace_id) {
  handles_->requests.Of(model).Finished(code, Seconds(duration), trace_id);
  handles_->in_flight.Decrement();
}

void RpcMetrics::FirstResponse(std::chrono::nanoseconds since_start) {
  handles_->first_response.Observe(Seconds(since_start));
}

void RpcMetrics::Sent(std::chrono::nanoseconds time) {
  handles_->send_duration.Observe(Seconds(time));
}

void RpcMetrics::Message(Direction direction, size_t bytes) {
  handles_->message_bytes.at(static_cast<size_t>(direction)).Observe(static_cast<double>(bytes));
}

void RpcMetrics::AddExemplars(Exemplars& exemplars) const {
  handles_->requests.ForEach([&](const std::string& model, RequestsOfModel& requests) {
    std::vector<Exemplar> last = requests.Last();
    if (last.empty()) return;
    exemplars[kDuration][{{"model", model}, {"rpc", rpc_}}] = std::move(last);
  });
}

void RpcMetrics::StreamOpened() { handles_->open_streams.Increment(); }
void RpcMetrics::StreamClosed() { handles_->open_streams.Decrement(); }

std::unique_ptr<RpcMetrics> MakeRpcMetrics(prometheus::Registry& registry, const std::string& rpc) {
  return std::make_unique<RpcMetrics>(
      rpc, std::make_unique<RpcMetrics::Handles>(Instruments(registry, {{"rpc", rpc}})));
}

}  // namespace linserve

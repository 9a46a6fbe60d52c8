#include <utility>

#include "telemetry/instruments.h"

namespace linserve {
namespace {

constexpr std::array<std::string_view, 2> kDirections = {"received", "sent"};

constexpr double kGiB = 1 << 30;

}  // namespace

struct RpcMetrics::Handles {
  explicit Handles(Instruments of_rpc) : make(std::move(of_rpc)) {}

  Instruments make;

  std::array<prometheus::Counter*, kCodes.size()> requests = make.Counters(
      "linserve_requests_total", "Finished requests, by gRPC status code.", "code", kCodes);
  prometheus::Histogram& request_duration =
      make.Histogram("linserve_request_duration_seconds",
                     "Time in the server of a request that was OK.", TimeBuckets());
  prometheus::Histogram& first_response =
      make.Histogram("linserve_first_response_seconds",
                     "From a request's start to its first result.", TimeBuckets());
  prometheus::Histogram& send_duration = make.Histogram(
      "linserve_send_duration_seconds",
      "Time of writing one message, waiting for its reader included.", TimeBuckets());
  std::array<prometheus::Histogram*, 2> message_bytes =
      make.Histograms("linserve_grpc_message_bytes", "Size of a gRPC message.",
                      GeometricBuckets(64, 4, kGiB), "direction", kDirections);
  prometheus::Gauge& in_flight =
      make.Gauge("linserve_in_flight_requests", "Requests that have started and not finished.");
  prometheus::Gauge& open_streams = make.Gauge("linserve_open_streams", "Streams that are open.");
};

RpcMetrics::RpcMetrics(std::string rpc, std::unique_ptr<Handles> handles)
    : rpc_(std::move(rpc)), handles_(std::move(handles)) {}
RpcMetrics::~RpcMetrics() = default;

void RpcMetrics::Started() { handles_->in_flight.Increment(); }

void RpcMetrics::Finished(int code, std::chrono::nanoseconds duration) {
  OfCode(handles_->requests, code).Increment();
  if (code == 0) handles_->request_duration.Observe(Seconds(duration));
  handles_->in_flight.Decrement();
}

void RpcMetrics::FirstResponse(std::chrono::nanoseconds since_start) {
  handles_->first_response.Observe(Seconds(since_start));
}

void RpcMetrics::Sent(std::chrono::nanoseconds time) {
  handles_->send_duration.Observe(Seconds(time));
}

void RpcMetrics::Message(Direction direction, size_t bytes) {
  At(handles_->message_bytes, direction).Observe(static_cast<double>(bytes));
}

void RpcMetrics::StreamOpened() { handles_->open_streams.Increment(); }
void RpcMetrics::StreamClosed() { handles_->open_streams.Decrement(); }

std::unique_ptr<RpcMetrics> MakeRpcMetrics(prometheus::Registry& registry, const std::string& rpc) {
  return std::make_unique<RpcMetrics>(
      rpc, std::make_unique<RpcMetrics::Handles>(Instruments(registry, {{"rpc", rpc}})));
}

}  // namespace linserve

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batching/request_queue.h"
#include "support/fakes/fake_clock.h"
#include "support/fakes/recording_sink.h"
#include "support/test_files.h"
#include "telemetry/scraped.h"

namespace linserve {

// The worker takes a millisecond a token, and so ten a sequence.
inline const Workers kMillisecondAToken{
    1, [](int64_t tokens) { return tokens * std::chrono::milliseconds(1); }};

// Makes a queue's surroundings. Its sequences are of 10 tokens, 10 rows and 100 bytes, all of one
// key.
class RequestQueueTest : public testing::Test {
 protected:
  // Makes a request whose sequences are named "0", "1", ...
  std::vector<Pending> Request(size_t count) const {
    std::vector<Pending> request;
    for (size_t i = 0; i < count; ++i) request.push_back(One(sink_, i));
    return request;
  }

  static Pending One(std::shared_ptr<ResultSink> sink, size_t index,
                     TimePoint deadline = TimePoint::max(), const std::string& caller = "") {
    return {.item = {},
            .key = "k",
            .cost = 10,
            .tokens = 10,
            .bytes = 100,
            .deadline = deadline,
            .origin = std::make_shared<const RequestOrigin>(RequestOrigin{
                std::to_string(index), TraceContext{.trace_id = "t", .span = 1}, caller}),
            .delivery = Delivery(std::move(sink), index)};
  }

  // Pushes a request, which must be admitted.
  static void Push(RequestQueue& queue, std::vector<Pending> request) {
    EXPECT_TRUE(queue.Push(request).ok());
  }
  template <typename... Sequences>
  static void PushAll(RequestQueue& queue, Sequences... sequences) {
    std::vector<Pending> request;
    (request.push_back(std::move(sequences)), ...);
    Push(queue, std::move(request));
  }

  static std::vector<std::string> Names(const std::optional<ClosedBatch>& batch) {
    std::vector<std::string> names;
    if (!batch) return names;
    for (const Pending& pending : batch->sequences) names.push_back(pending.origin->request_id);
    return names;
  }

  double Metric(const std::string& name, const std::string& label = "") const {
    return Scraped(
        metrics_.Scrape())["linserve_" + name + R"({model="m",)" + label + R"(version="1"})"];
  }
  // Returns the requests, sequences, tokens and bytes that wait.
  std::vector<double> Gauges() const {
    return {Metric("queue_requests"), Metric("queue_sequences"), Metric("queue_tokens"),
            Metric("queue_bytes")};
  }

  FakeClock clock_;
  Metrics metrics_{{}};
  ModelMetrics& model_ = metrics_.ForModel("m", 1);
  std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
  RequestQueue queue_{{}, {}, clock_, model_};
};

}  // namespace linserve

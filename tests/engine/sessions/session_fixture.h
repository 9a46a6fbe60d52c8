#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/fakes/engine_fixture.h"

namespace linserve {

using Sink = std::shared_ptr<RecordingSink>;

// Runs an engine over a fake model with sessions.
class EngineSession : public EngineTest {
 protected:
  EngineSession() { control_->sessions = true; }

  // Submits a chunk of `length` rows, whose answer comes to the sink that is returned.
  Sink Send(const SessionChunk& chunk, int64_t length, const std::string& caller = "") {
    auto sink = std::make_shared<RecordingSink>();
    Submit(sink, chunk, length, caller);
    return sink;
  }

  void Submit(const Sink& sink, const SessionChunk& chunk, int64_t length,
              const std::string& caller = "") {
    Request request = Of(sink, {length});
    request.caller = caller;
    request.items[0]->chunk = std::make_shared<const SessionChunk>(chunk);
    ASSERT_TRUE(engine_->Submit(request).ok());
    ++sent_;
  }

  // Waits for the answer, and returns the position that the session then has.
  int64_t Read(const SessionChunk& chunk, int64_t length, const std::string& caller = "") {
    const auto result = Send(chunk, length, caller)->Await(0);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->position : -1;
  }

  absl::Status Refused(const SessionChunk& chunk, int64_t length, const std::string& caller = "") {
    return Send(chunk, length, caller)->Await(0).status();
  }

  double Closed(const std::string& reason) const {
    return Metric("sessions_closed_total", "reason=\"" + reason + "\",");
  }

  double Opened(const std::string& from) const {
    return Scraped(metrics_.Scrape())["linserve_sessions_opened_total{from=\"" + from +
                                      R"(",model="m",version="1"})"];
  }

  double Results(const std::string& code) const {
    return Scraped(
        metrics_.Scrape())["linserve_results_total{code=\"" + code + R"(",model="m",version="1"})"];
  }

  // Returns the rows of a chunk of `length` after `before` others.
  static std::vector<float> RowsAfter(int64_t before, int64_t length) {
    const std::vector<float> all = FakeResult(before + length);
    return {all.begin() + 2 * before, all.end()};
  }

  double sent_ = 0;
};

MATCHER_P2(ResumesAt, position, message, "") {
  *result_listener << arg;
  return arg.code() == absl::StatusCode::kFailedPrecondition && ResumePosition(arg) == position &&
         std::string(arg.message()).find(message) != std::string::npos;
}

}  // namespace linserve

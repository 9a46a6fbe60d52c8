#include "batching/batch_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "batching/request_queue_fixture.h"
#include "telemetry/trace/trace.h"

namespace linserve {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::IsEmpty;
using testing::SizeIs;

class BatchTraceTest : public RequestQueueTest {
 protected:
  BatchTraceTest() { EXPECT_TRUE(OpenTrace({path_, 1 << 20}).ok()); }

  // Returns the arguments of the spans of each name, lanes or the thread's, once the trace is
  // whole.
  std::map<std::string, std::vector<json>> Closed() const {
    CloseTrace();
    std::map<std::string, std::vector<json>> spans;
    for (const json& event : json::parse(ReadAll(path_))) {
      const std::string phase = event.value("ph", "");
      if (phase == "X" || phase == "b") spans[event["name"]].push_back(event["args"]);
    }
    return spans;
  }

  TempDir dir_;
  const std::string path_ = dir_.File("trace.json");
  const TimePoint now_ = clock_.Now();
};

TEST_F(BatchTraceTest, ShowsABatchAndItsSequencesWhateverBecameOfThem) {
  const ClosedBatch batch{.sequences = Request(2), .reason = CloseReason::kFull, .closed = now_};
  const Timing timing{.compute = milliseconds(5), .batch_sequences = 2, .batch_tokens = 20};
  TraceBatch(batch, timing, now_ + milliseconds(7), absl::CancelledError("left"));
  auto spans = Closed();
  ASSERT_THAT(spans["batch"], SizeIs(1));
  EXPECT_EQ(spans["batch"][0]["code"], "CANCELLED");
  EXPECT_EQ(spans["batch"][0]["requests"], "0 1");
  EXPECT_EQ(spans["batch"][0]["rows"], 20);
  for (const char* name : {"sequence", "queue", "compute"}) EXPECT_THAT(spans[name], SizeIs(2));
  EXPECT_EQ(spans["sequence"][1]["request_id"], "1");
}

TEST_F(BatchTraceTest, ShowsASequenceThatLeavesTheQueue) {
  PushAll(queue_, One(sink_, 7, now_ + milliseconds(1)));
  clock_.Advance(milliseconds(2));
  EXPECT_THAT(Names(queue_.PopDue()), IsEmpty());
  auto spans = Closed();
  ASSERT_THAT(spans["sequence"], SizeIs(1));
  EXPECT_EQ(spans["sequence"][0]["request_id"], "7");
  EXPECT_EQ(spans["sequence"][0]["code"], "DEADLINE_EXCEEDED");
  EXPECT_THAT(spans["queue"], SizeIs(1));
  EXPECT_THAT(spans["batch"], IsEmpty());
}

}  // namespace
}  // namespace linserve

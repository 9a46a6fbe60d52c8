#include "telemetry/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "support/test_files.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

using nlohmann::json;
using std::chrono::microseconds;
using testing::ElementsAre;

class TraceTest : public testing::Test {
 protected:
  void Open(int64_t max_bytes = 1 << 20) {
    ASSERT_TRUE(OpenTrace({path_, max_bytes}).ok());
    begin_ = std::chrono::steady_clock::now();
  }

  // Returns the events of a phase, once the file is complete.
  std::vector<json> Closed(const std::string& phase) const {
    CloseTrace();
    std::vector<json> events;
    for (const json& event : json::parse(ReadAll(path_))) {
      if (event.value("ph", "") == phase) events.push_back(event);
    }
    return events;
  }

  TempDir dir_;
  const std::string path_ = dir_.File("trace.json");
  TraceTime begin_;
};

TEST_F(TraceTest, HasSpansOfThreadsWithTheirTimes) {
  Open();
  NameTraceThread("worker");
  TraceSpan(kTraceThread, "batch", begin_ + microseconds(5), begin_ + microseconds(25),
            {{"rows", int64_t{3}}, {"why", std::string("\"full\"\xff")}});
  std::thread([this] { TraceSpan(kTraceThread, "other", begin_, begin_); }).join();
  const auto spans = Closed("X");
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0]["name"], "batch");
  EXPECT_NEAR(spans[0]["dur"], 20, 0.001);
  EXPECT_EQ(spans[0]["args"]["rows"], 3);
  EXPECT_EQ(spans[0]["args"]["why"], "\"full\"\ufffd");
  EXPECT_NE(spans[0]["tid"], spans[1]["tid"]);
}

TEST_F(TraceTest, NamesTheProcessAndItsThreads) {
  Open();
  NameTraceThread("worker");
  std::vector<std::string> names;
  for (const json& event : Closed("M")) names.push_back(event["args"]["name"]);
  EXPECT_THAT(names, ElementsAre("linserve", "worker"));
}

TEST_F(TraceTest, HasLanesWhoseSpansBeginAndEnd) {
  Open();
  const uint64_t one = NewTraceLane();
  const uint64_t two = NewTraceLane();
  EXPECT_NE(one, two);
  TraceSpan(one, "queue", begin_, begin_ + microseconds(7), {{"tokens", int64_t{2}}});
  TraceSpan(two, "queue", begin_, begin_ + microseconds(9));
  const auto ends = Closed("e");
  const auto begins = Closed("b");
  ASSERT_EQ(begins.size(), 2U);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(begins[0]["id"], one);
  EXPECT_EQ(begins[0]["args"]["tokens"], 2);
  EXPECT_EQ(ends[1]["id"], two);
  EXPECT_NEAR(ends[1]["ts"].get<double>() - begins[1]["ts"].get<double>(), 9, 0.001);
}

TEST_F(TraceTest, EndsAtItsBound) {
  Open(1000);
  for (int i = 0; i < 100; ++i) TraceSpan(kTraceThread, "batch", begin_, begin_);
  EXPECT_FALSE(Tracing());
  EXPECT_THAT(ReadAll(path_), testing::EndsWith("},\n"));
  EXPECT_LE(ReadAll(path_).size(), 1100U);
  EXPECT_THAT(Closed("X"), testing::SizeIs(testing::Gt(3)));
}

TEST_F(TraceTest, HoldsWholeEventsWhileItIsWritten) {
  Open();
  size_t size = 0;
  int writes = 0;
  for (int i = 0; writes < 3; ++i) {
    TraceSpan(kTraceThread, "batch " + std::to_string(i), begin_, begin_);
    const std::string text = ReadAll(path_);
    if (text.size() == size) continue;
    size = text.size();
    ++writes;
    EXPECT_TRUE(text.ends_with("},\n") || text == "[\n") << text;
  }
}

TEST_F(TraceTest, IsWrittenSoonWhateverComes) {
  Open();
  TraceSpan(kTraceThread, "only", begin_, begin_);
  EXPECT_TRUE(WaitUntil([&] { return ReadAll(path_).find("only") != std::string::npos; }));
}

TEST_F(TraceTest, HoldsWholeEventsWhereTheDiskIsFull) {
  constexpr rlim_t kMost = 100'000;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{kMost, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Open();
  while (Tracing()) TraceSpan(kTraceThread, "batch", begin_, begin_);
  EXPECT_THAT(Closed("X"), testing::SizeIs(testing::Gt(10)));
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
}

TEST_F(TraceTest, IsOffUnlessItIsOpened) {
  EXPECT_FALSE(Tracing());
  TraceSpan(kTraceThread, "batch", begin_, begin_);
  Open();
  EXPECT_TRUE(Tracing());
  EXPECT_THAT(Closed("X"), testing::IsEmpty());
  EXPECT_FALSE(Tracing());
}

TEST_F(TraceTest, ThatCannotBeWrittenIsAnError) {
  EXPECT_THAT(OpenTrace({dir_.File("no/such/trace.json"), 1000}),
              IsStatus(absl::StatusCode::kUnavailable, "No such file"));
}

}  // namespace
}  // namespace linserve

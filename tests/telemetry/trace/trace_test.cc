#include "telemetry/trace/trace.h"

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
    ASSERT_TRUE(OpenTrace({.path = path_, .max_bytes = max_bytes}).ok());
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
  TraceOnThread("batch", begin_ + microseconds(5), begin_ + microseconds(25),
                {{"rows", int64_t{3}}, {"why", std::string("\"full\"\xff")}});
  std::thread([this] { TraceOnThread("other", begin_, begin_); }).join();
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
  TraceSpan({.name = "sequence",
             .trace_id = "abc",
             .id = 1,
             .begin = begin_,
             .end = begin_ + microseconds(7),
             .fields = {{"tokens", int64_t{2}}}});
  TraceSpan({.name = "queue",
             .trace_id = "abc",
             .id = 2,
             .within = 1,
             .begin = begin_,
             .end = begin_ + microseconds(9)});
  const auto ends = Closed("e");
  const auto begins = Closed("b");
  ASSERT_EQ(begins.size(), 2U);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(begins[0]["args"], (json{{"tokens", 2}, {"trace_id", "abc"}}));
  EXPECT_EQ(begins[0]["id"], "0000000000000001");
  EXPECT_EQ(begins[1]["id"], begins[0]["id"]);
  EXPECT_EQ(ends[1]["name"], "queue");
  EXPECT_NEAR(ends[1]["ts"].get<double>() - begins[1]["ts"].get<double>(), 9, 0.001);
}

TEST_F(TraceTest, EndsAtItsBound) {
  Open(1000);
  for (int i = 0; i < 100; ++i) TraceOnThread("batch", begin_, begin_);
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
    TraceOnThread("batch " + std::to_string(i), begin_, begin_);
    const std::string text = ReadAll(path_);
    if (text.size() == size) continue;
    size = text.size();
    ++writes;
    EXPECT_TRUE(text.ends_with("},\n") || text == "[\n") << text;
  }
}

TEST_F(TraceTest, IsWrittenSoonWhateverComes) {
  Open();
  TraceOnThread("only", begin_, begin_);
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
  while (Tracing()) TraceOnThread("batch", begin_, begin_);
  EXPECT_THAT(Closed("X"), testing::SizeIs(testing::Gt(10)));
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
}

TEST_F(TraceTest, IsOffUnlessItIsOpened) {
  EXPECT_FALSE(Tracing());
  TraceOnThread("batch", begin_, begin_);
  Open();
  EXPECT_TRUE(Tracing());
  EXPECT_THAT(Closed("X"), testing::IsEmpty());
  EXPECT_FALSE(Tracing());
}

TEST_F(TraceTest, IsOfTheRequestsThatTheirCallersKeep) {
  Open();
  TraceContext kept{.trace_id = "abc", .parent = 1, .sampled = true};
  BeginTrace(kept);
  EXPECT_TRUE(kept.traced());
  EXPECT_EQ(kept.trace_id, "abc");
  TraceContext left{.trace_id = "abc", .parent = 1, .sampled = false};
  BeginTrace(left);
  EXPECT_FALSE(left.traced());
  EXPECT_EQ(left.trace_id, "abc") << "the log names it";
  CloseTrace();
}

TEST_F(TraceTest, IsOfAShareOfTheOtherRequests) {
  for (const double share : {0.0, 1.0}) {
    ASSERT_TRUE(OpenTrace({.path = path_, .sample_ratio = share}).ok());
    TraceContext trace;
    BeginTrace(trace);
    EXPECT_EQ(trace.traced(), share == 1);
    EXPECT_EQ(trace.trace_id.size(), share == 1 ? 32U : 0U);
    CloseTrace();
  }
}

TEST_F(TraceTest, GivesNoSpansWhereNothingIsTraced) {
  TraceContext trace{.trace_id = "abc", .parent = 1, .sampled = true};
  BeginTrace(trace);
  EXPECT_FALSE(trace.traced());
}

// Keeps the spans that it is to send.
class Keeper : public SpanSender {
 public:
  explicit Keeper(std::vector<EndedSpan>& spans) : spans_(spans) {}
  absl::Status Send(const std::vector<EndedSpan>& spans, TraceTime /*deadline*/) override {
    spans_.insert(spans_.end(), spans.begin(), spans.end());
    return absl::OkStatus();
  }
  void Cancel() override {}

 private:
  std::vector<EndedSpan>& spans_;
};

TEST_F(TraceTest, IsSentToACollectorToo) {
  Metrics metrics({});
  std::vector<EndedSpan> sent;
  Open();
  SendSpans(std::make_unique<Keeper>(sent), metrics);
  EXPECT_TRUE(Tracing());
  TraceSpan({.name = "Embed", .trace_id = "abc", .id = 7, .parent = 5});
  TraceOnThread("batch", begin_, begin_);
  CloseTrace(std::chrono::steady_clock::now() + std::chrono::minutes(1));
  EXPECT_FALSE(Tracing());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].name, "Embed");
  EXPECT_EQ(sent[0].parent, 5U);
  EXPECT_THAT(ReadAll(path_), testing::HasSubstr("Embed"));
}

TEST(CollectorAddress, IsAUrlOfAHostAndAPort) {
  EXPECT_EQ(CollectorAddress::Parse("http://collector:4317")->target, "collector:4317");
  EXPECT_FALSE(CollectorAddress::Parse("http://collector:4317")->tls);
  EXPECT_TRUE(CollectorAddress::Parse("https://[::1]:4317")->tls);
  for (const char* text : {"http://[::1]:4317", "https://10.0.0.1:1"}) {
    EXPECT_EQ(CollectorAddress::Parse(text)->ToString(), text);
  }
  for (const char* text : {"collector:4317", "http://collector", "http://:4317", "http://a:0",
                           "ftp://a:1", "http://a:4317/v1/traces"}) {
    EXPECT_THAT(CollectorAddress::Parse(text).status(), IsInvalid("http://127.0.0.1:4317")) << text;
  }
}

TEST_F(TraceTest, ThatCannotBeWrittenIsAnError) {
  EXPECT_THAT(OpenTrace({.path = dir_.File("no/such/trace.json")}),
              IsStatus(absl::StatusCode::kUnavailable, "No such file"));
}

}  // namespace
}  // namespace linserve

#include "telemetry/trace/trace_context.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace linserve {
namespace {

TEST(Traceparent, NamesTheTraceAndTheCallersSpan) {
  const TraceContext trace =
      ReadTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  EXPECT_EQ(trace.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(trace.parent, 0x00f067aa0ba902b7U);
  EXPECT_TRUE(trace.sampled);
  EXPECT_FALSE(trace.traced()) << "that is decided later";
}

TEST(Traceparent, OfALaterVersionMayHaveMore) {
  EXPECT_EQ(
      ReadTraceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later").trace_id,
      "4bf92f3577b34da6a3ce929d0e0e4736");
}

TEST(Traceparent, SaysByOneOfItsFlagsWhetherTheCallerKeepsTheTrace) {
  const std::string before = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-";
  for (const char* flags : {"01", "03", "ff"}) {
    EXPECT_TRUE(ReadTraceparent(before + flags).sampled) << flags;
  }
  for (const char* flags : {"00", "02", "fe"}) {
    EXPECT_FALSE(ReadTraceparent(before + flags).sampled) << flags;
    EXPECT_NE(ReadTraceparent(before + flags).trace_id, "") << flags;
  }
}

TEST(Traceparent, ThatIsNoneIsNone) {
  for (const char* text : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                           "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01"}) {
    EXPECT_EQ(ReadTraceparent(text).trace_id, "") << text;
    EXPECT_FALSE(ReadTraceparent(text).sampled) << text;
  }
}

TEST(TraceIds, AreNewEachTime) {
  std::set<std::string> traces;
  std::set<uint64_t> spans;
  for (int i = 0; i < 1000; ++i) {
    traces.insert(NewTraceId());
    spans.insert(NewSpanId());
    EXPECT_THAT(*traces.rbegin(), testing::MatchesRegex("[0-9a-f]{32}"));
  }
  EXPECT_EQ(traces.size(), 1000U);
  EXPECT_EQ(spans.size(), 1000U);
  EXPECT_FALSE(spans.contains(0));
}

TEST(Sampling, KeepsAllNoneOrAboutTheShareThatIsAskedFor) {
  constexpr int kTraces = 10'000;
  int kept = 0;
  for (int i = 0; i < kTraces; ++i) {
    const std::string id = NewTraceId();
    EXPECT_TRUE(IsSampled(id, 1)) << id;
    EXPECT_FALSE(IsSampled(id, 0)) << id;
    kept += IsSampled(id, 0.25) ? 1 : 0;
  }
  EXPECT_NEAR(kept, 0.25 * kTraces, 0.03 * kTraces);  // seven standard deviations
}

TEST(Sampling, DecidesByTheIdSoThatALargerShareHasAllOfASmallerOne) {
  EXPECT_TRUE(IsSampled("ffffffffffffffffff00000000000000", 1e-9));
  EXPECT_FALSE(IsSampled("000000000000000000ffffffffffffff", 0.999));
  EXPECT_TRUE(IsSampled("0000000000000000007f000000000000", 0.5));
  EXPECT_FALSE(IsSampled("00000000000000000080000000000000", 0.5));
}

}  // namespace
}  // namespace linserve

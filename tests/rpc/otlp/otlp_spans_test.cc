#include "rpc/otlp/otlp_spans.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

namespace linserve {
namespace {

using MessageOfSpan = opentelemetry::proto::trace::v1::Span;
using MessageStatus = opentelemetry::proto::trace::v1::Status;
using std::chrono::milliseconds;
using testing::Pair;

// Returns attributes as texts.
template <typename Owner>
std::map<std::string, std::string> AttributesOf(const Owner& owner) {
  std::map<std::string, std::string> found;
  for (const auto& attribute : owner.attributes()) {
    const auto& value = attribute.value();
    found[attribute.key()] = value.has_int_value()      ? std::to_string(value.int_value())
                             : value.has_bool_value()   ? std::to_string(value.bool_value())
                             : value.has_double_value() ? std::to_string(value.double_value())
                                                        : value.string_value();
  }
  return found;
}

MessageOfSpan Converted(const EndedSpan& span) {
  return ToOtlp({span}, {}).resource_spans(0).scope_spans(0).spans(0);
}

EndedSpan RequestSpan(const std::string& method, const std::string& code) {
  return {.name = method,
          .trace_id = "4bf92f3577b34da6a3ce929d0e0e4736",
          .id = 1,
          .parent = 0x00f067aa0ba902b7,
          .of_request = true,
          .fields = {{"model", "m"}, {"code", code}}};
}

TEST(OtlpSpans, HaveTheirIdsAsBytes) {
  const MessageOfSpan span = Converted(RequestSpan("Embed", "OK"));
  EXPECT_EQ(span.trace_id(), std::string("\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e"
                                         "\x47\x36"));
  EXPECT_EQ(span.span_id(), std::string("\0\0\0\0\0\0\0\1", 8));
  EXPECT_EQ(span.parent_span_id(), std::string("\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", 8));
  EXPECT_EQ(span.flags(), 0x301U) << "sampled, and the parent is elsewhere";
  EXPECT_EQ(span.kind(), MessageOfSpan::SPAN_KIND_SERVER);
}

TEST(OtlpSpans, HaveTextsThatProtobufTakesWhateverCallersCallTheirRequests) {
  EndedSpan span = RequestSpan("Embed", "OK");
  span.fields.push_back({"request_id", std::string("\xff"
                                                   "a\xe2\x82")});
  MessageOfSpan read;
  ASSERT_TRUE(read.ParseFromString(Converted(span).SerializeAsString()));
  EXPECT_THAT(AttributesOf(read), testing::Contains(Pair(testing::_, "?a??")));
}

TEST(OtlpSpans, OfPartsAreInternalAndOfTheirsTheParentIsHere) {
  const MessageOfSpan span = Converted({.name = "queue", .id = 2, .parent = 1});
  EXPECT_EQ(span.kind(), MessageOfSpan::SPAN_KIND_INTERNAL);
  EXPECT_EQ(span.flags(), 0x101U);
  EXPECT_EQ(span.attributes_size(), 0);
}

TEST(OtlpSpans, HaveTheTimesOfTheWallClock) {
  const TraceTime now = std::chrono::steady_clock::now();
  const MessageOfSpan span = Converted({.begin = now - milliseconds(5000), .end = now});
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_NEAR(static_cast<double>(span.end_time_unix_nano()),
              static_cast<double>(std::chrono::nanoseconds(wall).count()), 1e9);
  EXPECT_NEAR(static_cast<double>(span.end_time_unix_nano() - span.start_time_unix_nano()), 5e9,
              1e8);
}

TEST(OtlpSpans, HaveTheAttributesOfTheConventionsAndOurOwn) {
  EXPECT_THAT(
      AttributesOf(Converted(RequestSpan("Embed", "NOT_FOUND"))),
      testing::UnorderedElementsAre(Pair("rpc.system", "grpc"), Pair("rpc.method", "Embed"),
                                    Pair("rpc.grpc.status_code", "5"), Pair("linserve.model", "m"),
                                    Pair("linserve.code", "NOT_FOUND")));
  EXPECT_THAT(
      AttributesOf(Converted(RequestSpan("/embed", "OK"))),
      testing::IsSupersetOf({Pair("http.request.method", "POST"), Pair("http.route", "/embed"),
                             Pair("rpc.grpc.status_code", "0")}));
  EXPECT_THAT(
      AttributesOf(Converted({.fields = {{"code", ""}, {"rows", int64_t{3}}, {"ratio", 0.5}}})),
      testing::UnorderedElementsAre(Pair("linserve.rows", "3"),
                                    Pair("linserve.ratio", "0.500000")));
}

TEST(OtlpSpans, AreErrorsWhereTheServerIsAtFault) {
  for (const char* code :
       {"UNKNOWN", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}) {
    const MessageOfSpan span = Converted(RequestSpan("Embed", code));
    EXPECT_EQ(span.status().code(), MessageStatus::STATUS_CODE_ERROR) << code;
    EXPECT_EQ(span.status().message(), code);
  }
  for (const char* code : {"OK", "CANCELLED", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}) {
    EXPECT_FALSE(Converted(RequestSpan("Embed", code)).has_status()) << code;
  }
}

TEST(OtlpSpans, AreOfTheProcess) {
  const auto request = ToOtlp({RequestSpan("Embed", "OK"), {.name = "queue"}},
                              {{"service.name", "linserve"}, {"host.name", "h"}});
  ASSERT_EQ(request.resource_spans_size(), 1);
  const auto& of_process = request.resource_spans(0);
  EXPECT_THAT(AttributesOf(of_process.resource()),
              testing::ElementsAre(Pair("host.name", "h"), Pair("service.name", "linserve")));
  ASSERT_EQ(of_process.scope_spans_size(), 1);
  EXPECT_EQ(of_process.scope_spans(0).scope().name(), "linserve");
  EXPECT_EQ(of_process.scope_spans(0).spans_size(), 2);
}

}  // namespace
}  // namespace linserve

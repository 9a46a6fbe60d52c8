#include "rpc/otlp/otlp_spans.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "core/strings/utf8.h"

namespace linserve {
namespace {

using SpanMessage = opentelemetry::proto::trace::v1::Span;
using StatusMessage = opentelemetry::proto::trace::v1::Status;
using ValueMessage = opentelemetry::proto::common::v1::AnyValue;

constexpr std::string_view kCodeKey = "code";

// A collector refuses all spans of a message with a text that is not UTF-8, as a caller's id may
// be.
void SetValue(ValueMessage& message, std::string value) {
  while (!IsUtf8(value)) value[Utf8Prefix(value)] = '?';
  message.set_string_value(std::move(value));
}
void SetValue(ValueMessage& message, int64_t value) { message.set_int_value(value); }
void SetValue(ValueMessage& message, double value) { message.set_double_value(value); }
void SetValue(ValueMessage& message, bool value) { message.set_bool_value(value); }

template <typename Owner, typename Given>
void AddAttribute(Owner& owner, const std::string& key, const Given& value) {
  auto& attribute = *owner.add_attributes();
  attribute.set_key(key);
  SetValue(*attribute.mutable_value(), value);
}

// Returns the eight bytes of an id, the highest first.
std::string BytesOfId(uint64_t id) {
  std::string bytes(sizeof(id), '\0');
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte, id >>= 8) {
    *byte = static_cast<char>(id);
  }
  return bytes;
}

// Returns the time since the Unix epoch, by what the clocks say now.
uint64_t UnixNanoseconds(TraceTime time) {
  const auto ago = std::chrono::steady_clock::now() - time;
  const auto then = std::chrono::system_clock::now() - ago;
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(then.time_since_epoch()).count());
}

// Returns the code of the name that StatusCodeToString() gives it.
absl::StatusCode CodeNamed(const std::string& name) {
  for (int code = 0; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    if (absl::StatusCodeToString(static_cast<absl::StatusCode>(code)) == name) {
      return static_cast<absl::StatusCode>(code);
    }
  }
  return absl::StatusCode::kUnknown;
}

// Says whether a request with this code counts as failed in the conventions for servers of gRPC.
bool IsFailure(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

void DescribeRequest(const EndedSpan& span, SpanMessage& message) {
  if (span.name.starts_with('/')) {
    AddAttribute(message, "http.request.method", std::string("POST"));
    AddAttribute(message, "http.route", span.name);
  } else {
    AddAttribute(message, "rpc.system", std::string("grpc"));
    AddAttribute(message, "rpc.method", span.name);
  }
  for (const LogField& field : span.fields) {
    if (field.key != kCodeKey) continue;
    const std::string& name = std::get<std::string>(field.value);
    const absl::StatusCode code = CodeNamed(name);
    AddAttribute(message, "rpc.grpc.status_code", static_cast<int64_t>(code));
    if (!IsFailure(code)) continue;
    message.mutable_status()->set_code(StatusMessage::STATUS_CODE_ERROR);
    message.mutable_status()->set_message(name);
  }
}

uint32_t FlagsOf(const EndedSpan& span) {
  constexpr uint32_t kSampled = 0x1;
  constexpr uint32_t kKnowsParent = 0x100;
  constexpr uint32_t kParentIsElsewhere = 0x200;
  const bool elsewhere = span.of_request && span.parent != 0;
  return kSampled | kKnowsParent | (elsewhere ? kParentIsElsewhere : 0);
}

void FillSpan(const EndedSpan& span, SpanMessage& message) {
  message.set_trace_id(absl::HexStringToBytes(span.trace_id));
  message.set_span_id(BytesOfId(span.id));
  if (span.parent != 0) message.set_parent_span_id(BytesOfId(span.parent));
  message.set_flags(FlagsOf(span));
  message.set_name(span.name);
  message.set_kind(span.of_request ? SpanMessage::SPAN_KIND_SERVER
                                   : SpanMessage::SPAN_KIND_INTERNAL);
  message.set_start_time_unix_nano(UnixNanoseconds(span.begin));
  message.set_end_time_unix_nano(UnixNanoseconds(span.end));
  if (span.of_request) DescribeRequest(span, message);
  for (const LogField& field : span.fields) {
    const auto* const text = std::get_if<std::string>(&field.value);
    if (text != nullptr && text->empty()) continue;
    const std::string key = "linserve." + std::string(field.key);
    std::visit([&](const auto& value) { AddAttribute(message, key, value); }, field.value);
  }
}

}  // namespace

otlp::ExportTraceServiceRequest ToOtlp(const std::vector<EndedSpan>& spans,
                                       const Resource& resource) {
  otlp::ExportTraceServiceRequest request;
  auto& of_process = *request.add_resource_spans();
  for (const auto& [key, value] : resource)
    AddAttribute(*of_process.mutable_resource(), key, value);
  auto& of_scope = *of_process.add_scope_spans();
  of_scope.mutable_scope()->set_name("linserve");
  for (const EndedSpan& span : spans) FillSpan(span, *of_scope.add_spans());
  return request;
}

}  // namespace linserve

#include "rpc/messages/message_plan.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "core/threads/mutex.h"
#include "serving/request_context.h"

namespace linserve {
namespace {

using MessageDescriptor = google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using FieldForm = FieldPlan::Form;

constexpr int64_t kMostNamed = 64;
constexpr int64_t kMostStopTokens = 1024;

// What is allocated by itself costs so much besides; a list that grows holds its pointers thrice.
constexpr int64_t kAllocation = 16;
constexpr int64_t kListed = 3 * 8;
constexpr int64_t kText = 32 + 2 * kAllocation;  // a std::string with bytes of its own
constexpr int64_t kMapEntry = 128;               // a key, a small value, and their place

// Gives a field bounds of its own.
struct Exception {
  std::string_view field;
  int64_t most = kMostNamed;
  int64_t most_bytes = FieldPlan::kAny;
  int64_t copies = 1;
};
constexpr std::array kExceptions = {
    Exception{"linserve.v1.EmbedRequest.sequences", FieldPlan::kSequences},
    Exception{"linserve.v1.Sequence.token_ids", FieldPlan::kAny},
    Exception{"linserve.v1.Sequence.text"},
    Exception{"linserve.v1.SessionChunk.state", kMostNamed, FieldPlan::kAny, 2},
    Exception{"linserve.v1.GenerateOptions.stop_tokens", kMostStopTokens},
    Exception{"linserve.v1.GenerateRequest.token_ids", FieldPlan::kAny},
    Exception{"linserve.v1.GenerateRequest.text"},
    Exception{"inference.InferTensorContents.bool_contents", FieldPlan::kAny},
    Exception{"inference.InferTensorContents.int_contents", FieldPlan::kAny},
    Exception{"inference.InferTensorContents.int64_contents", FieldPlan::kAny},
    Exception{"inference.InferTensorContents.uint_contents", FieldPlan::kAny},
    Exception{"inference.InferTensorContents.uint64_contents", FieldPlan::kAny},
    Exception{"inference.InferTensorContents.fp32_contents", FieldPlan::kAny},
    Exception{"inference.InferTensorContents.fp64_contents", FieldPlan::kAny},
    Exception{"inference.InferTensorContents.bytes_contents", FieldPlan::kSequences},
    Exception{"tei.v1.EmbedRequest.inputs"},
    Exception{"tei.v1.EmbedAllRequest.inputs"},
    Exception{"tei.v1.EmbedSparseRequest.inputs"},
    Exception{"tei.v1.PredictRequest.inputs"},
    Exception{"tei.v1.PredictPairRequest.inputs"},
    Exception{"tei.v1.RerankRequest.query"},
    Exception{"tei.v1.RerankRequest.texts", FieldPlan::kSequences},
    Exception{"tei.v1.EncodeRequest.inputs"},
    Exception{"tei.v1.DecodeRequest.ids", FieldPlan::kAny},
    Exception{"inference.InferParameter.string_param"},
    Exception{"inference.ModelRepositoryParameter.string_param"},
};

FieldForm FormOf(const FieldDescriptor& field) {
  switch (
      WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()))) {
    case WireFormatLite::WIRETYPE_VARINT:
      return FieldForm::kVarint;
    case WireFormatLite::WIRETYPE_FIXED32:
      return FieldForm::kFixed32;
    case WireFormatLite::WIRETYPE_FIXED64:
      return FieldForm::kFixed64;
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return field.message_type() == nullptr ? FieldForm::kBytes : FieldForm::kMessage;
    default:
      return FieldForm::kNone;  // a group, which proto3 does not have
  }
}

// Returns what an empty message takes. An entry of a map is none of its own: see kMapEntry.
int64_t SizeOf(const MessageDescriptor& type) {
  if (type.options().map_entry()) return 0;
  const auto* prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
  return static_cast<int64_t>(prototype->SpaceUsedLong());
}

int64_t SizeOfNumber(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return 1;
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

// Returns what one of the field takes besides its contents.
int64_t BytesOf(const FieldDescriptor& field) {
  const int64_t listed = field.is_repeated() ? kListed : 0;
  if (field.is_map()) {
    const FieldDescriptor& value = *field.message_type()->map_value();
    return kMapEntry + (value.message_type() == nullptr ? 0 : SizeOf(*value.message_type()));
  }
  if (field.message_type() != nullptr) return listed + kAllocation + SizeOf(*field.message_type());
  if (FormOf(field) == FieldForm::kBytes) return listed + kText;
  if (!field.is_repeated()) return 0;  // it lies in its message
  // A list of numbers grows to twice its size, and becomes a tensor, of 8 bytes each at most.
  return 2 * SizeOfNumber(field) + 8;
}

FieldPlan PlanOf(const FieldDescriptor& field) {
  FieldPlan plan;
  plan.form = FormOf(field);
  plan.repeated = field.is_repeated();
  plan.bytes = BytesOf(field);
  plan.name = field.containing_type()->name() + "." + field.name();
  const auto* exception = std::find_if(
      kExceptions.begin(), kExceptions.end(),
      [&](const Exception& candidate) { return candidate.field == field.full_name(); });
  const bool text = field.type() == FieldDescriptor::TYPE_STRING;
  const bool usual = exception == kExceptions.end();
  plan.most = usual ? kMostNamed : exception->most;
  plan.most_bytes = !text ? FieldPlan::kAny : usual ? int64_t{kMaxIdBytes} : exception->most_bytes;
  plan.copies = usual ? 1 : exception->copies;
  if (plan.form == FieldForm::kMessage) plan.message = &MessagePlan::Of(*field.message_type());
  return plan;
}

}  // namespace

const MessagePlan& MessagePlan::Of(const MessageDescriptor& type) {
  using Plans = std::map<const MessageDescriptor*, std::unique_ptr<const MessagePlan>>;
  static Mutex& mutex = *new Mutex;
  static Plans& plans = *new Plans;
  {
    MutexLock lock(mutex);
    const auto known = plans.find(&type);
    if (known != plans.end()) return *known->second;
  }
  std::unique_ptr<const MessagePlan> made(new MessagePlan(type));  // which asks for others
  MutexLock lock(mutex);
  return *plans.try_emplace(&type, std::move(made)).first->second;
}

MessagePlan::MessagePlan(const MessageDescriptor& type) : bytes_(SizeOf(type)) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const auto number = static_cast<size_t>(field.number());
    fields_.resize(std::max(fields_.size(), number + 1));
    fields_[number] = PlanOf(field);
  }
  assert(fields_.size() <= kFields);
}

}  // namespace linserve

#include "rest/oip/message_json.h"

#include <nlohmann/json.hpp>
#include <string>

namespace linserve {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::ordered_json;

// Returns one value of a field; `index` is -1 unless the field is repeated.
ordered_json Value(const Message& message, const FieldDescriptor& field, int index) {
  const auto& reflection = *message.GetReflection();
  const auto get = [&](auto repeated, auto single) {
    return index >= 0 ? (reflection.*repeated)(message, &field, index)
                      : (reflection.*single)(message, &field);
  };
  using Reflection = google::protobuf::Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return get(&Reflection::GetRepeatedBool, &Reflection::GetBool);
    case FieldDescriptor::CPPTYPE_INT32:
      return get(&Reflection::GetRepeatedInt32, &Reflection::GetInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return get(&Reflection::GetRepeatedInt64, &Reflection::GetInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return get(&Reflection::GetRepeatedUInt32, &Reflection::GetUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get(&Reflection::GetRepeatedUInt64, &Reflection::GetUInt64);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return get(&Reflection::GetRepeatedFloat, &Reflection::GetFloat);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return get(&Reflection::GetRepeatedDouble, &Reflection::GetDouble);
    case FieldDescriptor::CPPTYPE_ENUM:
      return get(&Reflection::GetRepeatedEnum, &Reflection::GetEnum)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return get(&Reflection::GetRepeatedString, &Reflection::GetString);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(index >= 0 ? reflection.GetRepeatedMessage(message, &field, index)
                               : reflection.GetMessage(message, &field));
  }
  return nullptr;
}

std::string KeyOf(const Message& entry) {
  const ordered_json key = Value(entry, *entry.GetDescriptor()->map_key(), -1);
  return key.is_string() ? key.get<std::string>() : key.dump();
}

}  // namespace

ordered_json ToJson(const Message& message) {
  ordered_json json = ordered_json::object();
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.is_map()) {
      ordered_json& map = json[field.name()] = ordered_json::object();
      for (int entry = 0; entry < reflection.FieldSize(message, &field); ++entry) {
        const Message& pair = reflection.GetRepeatedMessage(message, &field, entry);
        map[KeyOf(pair)] = Value(pair, *pair.GetDescriptor()->map_value(), -1);
      }
    } else if (field.is_repeated()) {
      ordered_json& list = json[field.name()] = ordered_json::array();
      for (int entry = 0; entry < reflection.FieldSize(message, &field); ++entry) {
        list.push_back(Value(message, field, entry));
      }
    } else if (!field.has_presence() || reflection.HasField(message, &field)) {
      json[field.name()] = Value(message, field, -1);
    }
  }
  return json;
}

}  // namespace linserve

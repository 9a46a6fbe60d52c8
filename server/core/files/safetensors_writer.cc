#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/files/file.h"
#include "core/files/safetensors.h"
#include "core/strings/quote.h"
#include "core/strings/utf8.h"

namespace linserve {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using NamedTensor = TensorMap::value_type;

std::vector<const NamedTensor*> InFileOrder(const TensorMap& tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& named : tensors) order.push_back(&named);
  std::stable_sort(order.begin(), order.end(),
                   [](const NamedTensor* left, const NamedTensor* right) {
                     return ByteSize(left->second.dtype()) > ByteSize(right->second.dtype());
                   });
  return order;
}

absl::Status Refuse(const std::string& what, const std::string& fault) {
  return absl::InvalidArgumentError("safetensors: " + what + ": " + fault);
}

absl::StatusOr<std::string> MetadataJson(const std::map<std::string, std::string>& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    if (!IsUtf8(key) || !IsUtf8(value)) {
      return Refuse("metadata " + Quoted(key), "not UTF-8, expected UTF-8");
    }
    text +=
        (text.empty() ? "" : ",") + nlohmann::json(key).dump() + ":" + nlohmann::json(value).dump();
  }
  return "\"__metadata__\":{" + text + "}";
}

absl::StatusOr<std::string> TensorJson(const NamedTensor& named, size_t begin) {
  const auto& [name, tensor] = named;
  const std::string what = "tensor " + Quoted(name);
  if (name == "__metadata__") return Refuse(what, "the name is reserved, expected another");
  if (!IsUtf8(name)) return Refuse(what, "the name is not UTF-8, expected UTF-8");
  const nlohmann::json offsets = {begin, begin + tensor.byte_size()};
  return nlohmann::json(name).dump() + ":{\"dtype\":\"" + std::string(Name(tensor.dtype())) +
         "\",\"shape\":" + nlohmann::json(tensor.shape()).dump() +
         ",\"data_offsets\":" + offsets.dump() + "}";
}

absl::StatusOr<std::string> HeaderJson(const std::vector<const NamedTensor*>& order,
                                       const std::map<std::string, std::string>& metadata) {
  std::string members;
  if (!metadata.empty()) {
    absl::StatusOr<std::string> member = MetadataJson(metadata);
    if (!member.ok()) return member;
    members = *member;
  }
  size_t offset = 0;
  for (const NamedTensor* named : order) {
    absl::StatusOr<std::string> member = TensorJson(*named, offset);
    if (!member.ok()) return member;
    members += (members.empty() ? "" : ",") + *member;
    offset += named->second.byte_size();
  }
  return "{" + members + "}";
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, const TensorMap& tensors,
                              const std::map<std::string, std::string>& metadata) {
  const std::vector<const NamedTensor*> order = InFileOrder(tensors);
  absl::StatusOr<std::string> header = HeaderJson(order, metadata);
  if (!header.ok()) return header.status();
  header->resize((header->size() + 7) / 8 * 8, ' ');
  const uint64_t length = header->size();
  std::string prefix(sizeof(length), '\0');
  std::memcpy(prefix.data(), &length, sizeof(length));

  std::vector<std::string_view> parts = {prefix, *header};
  for (const NamedTensor* named : order) {
    const Tensor& tensor = named->second;
    parts.emplace_back(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
  }
  return ReplaceFile(path, parts);
}

}  // namespace linserve

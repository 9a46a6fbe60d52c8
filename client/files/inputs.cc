#include "client/files/inputs.h"

#include <array>
#include <fstream>
#include <iostream>
#include <memory>
#include <utility>

#include "core/files/npy.h"
#include "core/files/safetensors.h"

namespace linserve {
namespace {

absl::StatusOr<InputSequences> ReadArray(const std::string& path, const InputOptions& options) {
  absl::StatusOr<Tensor> array;
  if (path == "-") {
    auto content = ReadWhole(path);
    if (!content.ok()) return content.status();
    auto owner = std::make_shared<const std::string>(*std::move(content));
    const auto* bytes = reinterpret_cast<const std::byte*>(owner->data());
    array = ParseNpy(bytes, owner->size(), owner, "standard input");
  } else {
    array = ReadNpy(path);
  }
  if (!array.ok()) return array.status();
  return SplitArray(*array, options.limits, path == "-" ? "standard input" : path);
}

absl::StatusOr<InputSequences> ReadTensors(const std::string& path, const InputOptions& options) {
  absl::StatusOr<SafetensorsFile> file;
  if (path == "-") {
    auto content = ReadWhole(path);
    if (!content.ok()) return content.status();
    auto owner = std::make_shared<const std::string>(*std::move(content));
    const auto* bytes = reinterpret_cast<const std::byte*>(owner->data());
    file = ParseSafetensors(bytes, owner->size(), owner, "standard input");
  } else {
    file = ReadSafetensors(path);
  }
  if (!file.ok()) return file.status();
  return SplitTensors(file->tensors, options, path == "-" ? "standard input" : path);
}

}  // namespace

std::optional<InputFormat> InputFormatFromName(std::string_view name) {
  if (name == "text") return InputFormat::kText;
  if (name == "ids") return InputFormat::kIds;
  if (name == "npy") return InputFormat::kNpy;
  if (name == "safetensors") return InputFormat::kSafetensors;
  return std::nullopt;
}

InputFormat InputFormatOfPath(const std::string& path) {
  if (path.ends_with(".npy")) return InputFormat::kNpy;
  if (path.ends_with(".safetensors")) return InputFormat::kSafetensors;
  if (path.ends_with(".jsonl") || path.ends_with(".json")) return InputFormat::kIds;
  return InputFormat::kText;
}

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return absl::NotFoundError("cannot open " + path);
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::string content;
  std::array<char, 1 << 16> piece{};
  do {
    stream.read(piece.data(), piece.size());
    content.append(piece.data(), static_cast<size_t>(stream.gcount()));
  } while (stream);
  if (stream.bad()) return absl::DataLossError("cannot read " + path);
  return content;
}

absl::StatusOr<InputSequences> ReadInputs(const std::string& path, InputFormat format,
                                          const InputOptions& options) {
  if (format == InputFormat::kNpy) return ReadArray(path, options);
  if (format == InputFormat::kSafetensors) return ReadTensors(path, options);
  const auto content = ReadWhole(path);
  if (!content.ok()) return content.status();
  return format == InputFormat::kText ? ParseTextLines(*content, options)
                                      : ParseIdLines(*content, options);
}

}  // namespace linserve

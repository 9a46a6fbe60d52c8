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

std::string NameOf(const std::string& path) { return path == "-" ? "standard input" : path; }

// Reads a file, or standard input, which `parse` views and keeps.
template <typename Content, typename Parse, typename Read>
absl::StatusOr<Content> ReadFrom(const std::string& path, const Parse& parse, const Read& read) {
  if (path != "-") return read(path);
  auto content = ReadWhole(path);
  if (!content.ok()) return content.status();
  auto owner = std::make_shared<const std::string>(*std::move(content));
  const auto* bytes = reinterpret_cast<const std::byte*>(owner->data());
  return parse(bytes, owner->size(), owner, NameOf(path));
}

absl::StatusOr<InputSequences> ReadArray(const std::string& path, const InputOptions& options) {
  const auto array = ReadFrom<Tensor>(path, ParseNpy, ReadNpy);
  if (!array.ok()) return array.status();
  return SplitArray(*array, options.limits, NameOf(path));
}

absl::StatusOr<InputSequences> ReadTensors(const std::string& path, const InputOptions& options) {
  const auto file = ReadFrom<SafetensorsFile>(path, ParseSafetensors, ReadSafetensors);
  if (!file.ok()) return file.status();
  return SplitTensors(file->tensors, options, NameOf(path));
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

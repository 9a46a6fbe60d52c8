#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/files/inputs.h"
#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "core/strings/utf8.h"

namespace linserve {
namespace {

using nlohmann::json;

absl::Status LineError(size_t line, const std::string& what) {
  return absl::InvalidArgumentError("line " + std::to_string(line) + ": " + what);
}

// Calls `handle(number, line)` for every line with something on it.
template <typename Handle>
void ForEachLine(std::string_view content, Handle handle) {
  size_t number = 0;
  while (!content.empty()) {
    const size_t end = content.find('\n');
    std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    ++number;
    if (line.find_first_not_of(" \t") != std::string_view::npos) handle(number, line);
  }
}

// Puts the tokens into `sequence`, or the reason why they cannot be one.
void SetTokens(std::vector<int64_t> ids, size_t line, const InputOptions& options,
               InputSequence& sequence) {
  const InputLimits& limits = options.limits;
  const auto length = static_cast<int64_t>(ids.size());
  if (limits.longest > 0 && length > limits.longest) {
    const Truncation truncation = options.truncation.value_or(Truncation::kNone);
    if (truncation == Truncation::kNone) {
      sequence.status = LineError(line, std::to_string(length) + " tokens, but the model takes " +
                                            "at most " + std::to_string(limits.longest) +
                                            "; shorten it, or have it cut (embed --truncate)");
      return;
    }
    if (truncation == Truncation::kLeft) ids.erase(ids.begin(), ids.end() - limits.longest);
    ids.resize(static_cast<size_t>(limits.longest));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && (limits.vocabulary == 0 || ids[i] < limits.vocabulary)) continue;
    sequence.status =
        LineError(line, "token " + std::to_string(i) + " is " + std::to_string(ids[i]) +
                            (limits.vocabulary == 0 ? ", expected 0 or more"
                                                    : ", but the model's vocabulary is [0, " +
                                                          std::to_string(limits.vocabulary) + ")"));
    return;
  }
  const Shape shape = {static_cast<int64_t>(ids.size())};
  sequence.inputs["x"] = Tensor::FromInts(shape, ids);
}

absl::StatusOr<std::vector<int64_t>> IdsOf(const json& array, size_t line) {
  if (!array.is_array()) {
    return LineError(line, "expected an array of token ids or {\"id\": ..., \"x\": [...]}");
  }
  if (array.empty()) return LineError(line, "a sequence needs at least one token");
  std::vector<int64_t> ids;
  ids.reserve(array.size());
  for (const json& value : array) {
    const bool too_large =
        value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max();
    if (!value.is_number_integer() || too_large) {
      return LineError(line, "token " + std::to_string(ids.size()) + " is " +
                                 Quoted(JsonText(value)) + ", expected an integer");
    }
    ids.push_back(value.get<int64_t>());
  }
  return ids;
}

// Takes the id out of an object and returns what holds the tokens, or the text.
absl::StatusOr<json> TokensOf(json value, size_t line, InputSequence& sequence) {
  if (!value.is_object()) return value;
  for (const auto& [key, field] : value.items()) {
    if (key != "id" && key != "x" && key != "text") {
      return LineError(line,
                       "unknown key " + Quoted(key) + ", expected \"id\" and \"x\" or \"text\"");
    }
  }
  if (value.contains("id")) {
    const json& id = value["id"];
    if (!id.is_string() && !id.is_number_integer()) {
      return LineError(line, "\"id\" must be a string or an integer");
    }
    sequence.id = id.is_string() ? id.get<std::string>() : id.dump();
  }
  if (value.contains("x") == value.contains("text")) {
    return LineError(line, "expected one of the keys \"x\", token ids, and \"text\"");
  }
  return std::move(value[value.contains("x") ? "x" : "text"]);
}

void ParseIdLine(std::string_view line, size_t number, const InputOptions& options,
                 InputSequence& sequence) {
  json value = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    sequence.status = LineError(number, "not JSON");
    return;
  }
  auto tokens = TokensOf(std::move(value), number, sequence);
  if (tokens.ok() && tokens->is_string()) {
    sequence.text = tokens->get<std::string>();
    if (!options.texts) {
      sequence.status = LineError(number, "a text, but the model takes token ids: give \"x\"");
    }
    return;
  }
  auto ids = tokens.ok() ? IdsOf(*tokens, number) : tokens.status();
  if (ids.ok()) {
    SetTokens(*std::move(ids), number, options, sequence);
  } else {
    sequence.status = ids.status();
  }
}

}  // namespace

InputSequences ParseTextLines(std::string_view content, const InputOptions& options) {
  InputSequences sequences;
  ForEachLine(content, [&](size_t number, std::string_view line) {
    InputSequence& sequence = sequences.emplace_back();
    sequence.id = std::to_string(number);
    sequence.text = line;
    if (options.texts) {
      if (!IsUtf8(line)) sequence.status = LineError(number, "not UTF-8");
      return;
    }
    std::vector<int64_t> ids;
    ids.reserve(line.size());
    for (char byte : line) ids.push_back(static_cast<uint8_t>(byte) + options.token_offset);
    SetTokens(std::move(ids), number, options, sequence);
  });
  return sequences;
}

InputSequences ParseIdLines(std::string_view content, const InputOptions& options) {
  InputSequences sequences;
  ForEachLine(content, [&](size_t number, std::string_view line) {
    InputSequence& sequence = sequences.emplace_back();
    sequence.id = std::to_string(number);
    ParseIdLine(line, number, options, sequence);
  });
  return sequences;
}

}  // namespace linserve

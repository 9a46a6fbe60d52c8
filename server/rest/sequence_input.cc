#include "rest/sequence_input.h"

#include <algorithm>
#include <utility>

#include "core/quote.h"
#include "core/text_bytes.h"
#include "rest/parse_json.h"
#include "rpc/inference_texts.h"

namespace linserve {
namespace {

using nlohmann::json;

absl::StatusOr<std::vector<int64_t>> ReadIds(const json& given) {
  std::vector<int64_t> ids;
  for (const json& id : given) {
    const bool too_large = id.is_number_unsigned() && !std::in_range<int64_t>(id.get<uint64_t>());
    if (!id.is_number_integer() || too_large) {
      return absl::InvalidArgumentError("expected token ids, found " + ToText(id).substr(0, 64));
    }
    ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<SequenceInput> ReadTexts(const json& given, const char* name) {
  Texts texts;
  for (const json& text : given) {
    if (!text.is_string()) {
      return absl::InvalidArgumentError(Quoted(name) + " mixes texts with something else");
    }
    texts.push_back(text);
  }
  return texts;
}

absl::StatusOr<SequenceInput> ReadIdSequences(const json& given, const char* name) {
  IdSequences sequences;
  for (const json& one : given) {
    if (one.empty()) return absl::InvalidArgumentError(Quoted(name) + " holds an empty sequence");
    if (!one.is_array()) return absl::InvalidArgumentError(Quoted(name) + " mixes ids and lists");
    auto ids = ReadIds(one);
    if (!ids.ok()) return ids.status();
    sequences.push_back(*std::move(ids));
  }
  return sequences;
}

absl::StatusOr<std::string> TokenInput(const ServedModel& model) {
  const std::string* name = nullptr;
  for (const InputSpec& input : model.engine->info().signature.inputs) {
    if (input.optional) continue;
    if (name != nullptr || input.kind != InputKind::kToken) {
      return absl::InvalidArgumentError("model " + Quoted(model.name) +
                                        " does not take one sequence of token ids; use "
                                        "/v2/models/" +
                                        model.name + "/infer");
    }
    name = &input.name;
  }
  return *name;
}

void AddInput(const std::string& name, const std::vector<int64_t>& shape,
              const std::vector<int64_t>& values, inference::ModelInferRequest& message) {
  auto& input = *message.add_inputs();
  input.set_name(name);
  input.set_datatype("INT64");
  input.mutable_shape()->Assign(shape.begin(), shape.end());
  message.add_raw_input_contents(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(int64_t));
}

absl::Status AddIds(const std::string& input, const IdSequences& sequences, int64_t most,
                    inference::ModelInferRequest& message) {
  std::vector<int64_t> lengths;
  for (const auto& ids : sequences) lengths.push_back(static_cast<int64_t>(ids.size()));
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const auto per_sequence = static_cast<int64_t>(sizeof(int64_t) * sequences.size());
  if (longest > most / per_sequence) {
    return absl::InvalidArgumentError(
        std::to_string(sequences.size()) + " sequences of up to " + std::to_string(longest) +
        " token ids are too much for one request; send long and short ones apart");
  }
  std::vector<int64_t> padded(sequences.size() * static_cast<size_t>(longest));
  for (size_t i = 0; i < sequences.size(); ++i) {
    std::copy(sequences[i].begin(), sequences[i].end(),
              padded.begin() + static_cast<std::ptrdiff_t>(i) * longest);
  }
  const auto batch = static_cast<int64_t>(sequences.size());
  AddInput(input, {batch, longest}, padded, message);
  AddInput("lengths", {batch}, lengths, message);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SequenceInput> ReadSequences(const json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end()) {
    return absl::InvalidArgumentError("expected a JSON object with " + Quoted(name));
  }
  if (found->is_string()) return Texts{*found};
  if (!found->is_array() || found->empty()) {
    return absl::InvalidArgumentError(Quoted(name) +
                                      ": expected a text, token ids, or a list of such");
  }
  if (found->front().is_string()) return ReadTexts(*found, name);
  if (found->front().is_array()) return ReadIdSequences(*found, name);
  auto ids = ReadIds(*found);
  if (!ids.ok()) return ids.status();
  return IdSequences{*std::move(ids)};
}

absl::Status AddBatch(const ServedModel& model, const SequenceInput& sequences, int64_t most,
                      inference::ModelInferRequest& message) {
  if (const auto* ids = std::get_if<IdSequences>(&sequences)) {
    const auto input = TokenInput(model);
    return input.ok() ? AddIds(*input, *ids, most, message) : input.status();
  }
  const Texts& texts = std::get<Texts>(sequences);
  auto& input = *message.add_inputs();
  input.set_name(kTextInput);
  input.set_datatype("BYTES");
  input.add_shape(std::ssize(texts));
  std::string& raw = *message.add_raw_input_contents();
  for (const std::string& text : texts) AppendText(text, raw);
  return absl::OkStatus();
}

}  // namespace linserve

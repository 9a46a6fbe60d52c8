#include "client/commands/model_listing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/terminal/table.h"
#include "core/json/json_text.h"

namespace linserve {
namespace {

using nlohmann::json;

// Writes "x token [n] < 256, mask mask [n] optional".
std::string InputsText(const ModelDescription& model) {
  std::string text = model.text ? "text or " : "";
  for (const InputSpec& input : model.signature.inputs) {
    if (&input != &model.signature.inputs[0]) text += ", ";
    text += input.name + " " + std::string(Name(input.kind)) + " " + ToString(input.axes);
    if (input.kind == InputKind::kToken) text += " < " + std::to_string(input.vocabulary);
    if (input.optional) text += " optional";
  }
  return text;
}

std::string OutputsText(const Signature& signature) {
  std::string text;
  for (const OutputSpec& output : signature.outputs) {
    if (!text.empty()) text += ", ";
    text += output.name + " " + ToString(output.axes);
  }
  return text;
}

// Writes "texts <= 256, n <= 512, m <= 64 without context". Two parts of a model may have one
// limit, which is told once.
std::string LimitsText(const ModelDescription& model) {
  std::vector<std::string> texts;
  if (model.text && model.max_text_tokens > 0) {
    texts.push_back("texts <= " + std::to_string(model.max_text_tokens));
  }
  for (const LengthLimit& limit : model.signature.limits) {
    const bool exact = limit.shortest == limit.longest;
    std::string text =
        std::string(1, limit.letter) + (exact ? " = " : " <= ") + std::to_string(limit.longest);
    if (!limit.unless_input.empty()) text += " without " + limit.unless_input;
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

// Writes "re-ranker", "3 classes", "sparse", or "mean, normalized; prompts: query (default),
// document".
std::string ServingText(const ModelDescription& model) {
  if (model.labels.size() == 1) return "re-ranker";
  if (!model.labels.empty()) return std::to_string(model.labels.size()) + " classes";
  const auto& outputs = model.signature.outputs;
  const bool sparse = !outputs.empty() && outputs[0].name == "sparse_embedding";
  std::string text = sparse ? "sparse" : model.pooling + (model.normalize ? ", normalized" : "");
  for (const std::string& prompt : model.prompts) {
    text += (&prompt == &model.prompts[0] ? "; prompts: " : ", ") + prompt;
    if (prompt == model.default_prompt) text += " (default)";
  }
  return text;
}

json AxesJson(const std::vector<Axis>& axes) {
  json array = json::array();
  for (const Axis& axis : axes) {
    if (axis.letter == '\0') {
      array.push_back(axis.size);
    } else {
      array.push_back(std::string(1, axis.letter));
    }
  }
  return array;
}

json SignatureJson(const Signature& signature) {
  json inputs = json::array();
  for (const InputSpec& input : signature.inputs) {
    json spec = {{"name", input.name},
                 {"kind", Name(input.kind)},
                 {"axes", AxesJson(input.axes)},
                 {"optional", input.optional}};
    if (input.kind == InputKind::kToken) spec["vocabulary"] = input.vocabulary;
    inputs.push_back(std::move(spec));
  }
  json outputs = json::array();
  for (const OutputSpec& output : signature.outputs) {
    outputs.push_back({{"name", output.name}, {"axes", AxesJson(output.axes)}});
  }
  json limits = json::array();
  for (const LengthLimit& limit : signature.limits) {
    json entry = {{"axis", std::string(1, limit.letter)}, {"longest", limit.longest}};
    if (!limit.unless_input.empty()) entry["unless_input"] = limit.unless_input;
    limits.push_back(std::move(entry));
  }
  return {{"inputs", inputs}, {"outputs", outputs}, {"limits", limits}};
}

}  // namespace

std::string ModelsTable(const std::vector<ModelDescription>& models) {
  Table table({{"name", Align::kLeft},
               {"version", Align::kRight},
               {"state", Align::kLeft},
               {"architecture", Align::kLeft},
               {"parameters", Align::kRight},
               {"dtype", Align::kLeft},
               {"padding", Align::kLeft},
               {"takes", Align::kLeft},
               {"gives", Align::kLeft},
               {"limits", Align::kLeft},
               {"pooling", Align::kLeft}});
  for (const ModelDescription& model : models) {
    table.Add({model.name, std::to_string(model.version), model.state, model.architecture,
               std::to_string(model.parameters), model.dtype, model.padding, InputsText(model),
               OutputsText(model.signature), LimitsText(model), ServingText(model)});
  }
  return table.ToText();
}

std::string ModelsJson(const std::vector<ModelDescription>& models) {
  json array = json::array();
  for (const ModelDescription& model : models) {
    json entry = SignatureJson(model.signature);
    entry.update({{"name", model.name},
                  {"version", model.version},
                  {"architecture", model.architecture},
                  {"state", model.state},
                  {"parameters", model.parameters},
                  {"dtype", model.dtype},
                  {"padding", model.padding},
                  {"pooling", model.pooling},
                  {"normalize", model.normalize},
                  {"text", model.text},
                  {"truncation", model.truncation},
                  {"max_text_tokens", model.max_text_tokens},
                  {"prompts", model.prompts},
                  {"default_prompt", model.default_prompt},
                  {"labels", model.labels},
                  {"session_bytes", model.session_bytes},
                  {"no_sessions", model.no_sessions},
                  {"generates", model.generates},
                  {"replicas", model.replicas},
                  {"threads", model.threads},
                  {"processor", model.processor},
                  {"server_version", model.server_version}});
    array.push_back(std::move(entry));
  }
  return JsonText(array, 2);
}

}  // namespace linserve

#include "core/sequence/signature_json.h"

#include <string>
#include <vector>

namespace linserve {
namespace {

nlohmann::json AxesToJson(const std::vector<Axis>& axes) {
  nlohmann::json list = nlohmann::json::array();
  for (const Axis& axis : axes) {
    if (axis.letter != '\0') {
      list.push_back(std::string(1, axis.letter));
    } else {
      list.push_back(axis.size);
    }
  }
  return list;
}

}  // namespace

nlohmann::json ToJson(const Signature& signature) {
  nlohmann::json inputs = nlohmann::json::array();
  for (const InputSpec& input : signature.inputs) {
    inputs.push_back({{"name", input.name},
                      {"kind", Name(input.kind)},
                      {"axes", AxesToJson(input.axes)},
                      {"optional", input.optional},
                      {"vocabulary", input.vocabulary},
                      {"broadcast", input.broadcast},
                      {"batch_axis", Name(input.batch_axis)},
                      {"folds", input.folds}});
  }
  nlohmann::json outputs = nlohmann::json::array();
  for (const OutputSpec& output : signature.outputs) {
    outputs.push_back({{"name", output.name},
                       {"axes", AxesToJson(output.axes)},
                       {"batch_axis", Name(output.batch_axis)}});
  }
  nlohmann::json limits = nlohmann::json::array();
  for (const LengthLimit& limit : signature.limits) {
    limits.push_back({{"axis", std::string(1, limit.letter)},
                      {"longest", limit.longest},
                      {"shortest", limit.shortest},
                      {"unless_input", limit.unless_input}});
  }
  return {{"inputs", inputs},
          {"outputs", outputs},
          {"limits", limits},
          {"request_is_unit", signature.request_is_unit}};
}

}  // namespace linserve

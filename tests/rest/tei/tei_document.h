#pragma once

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/paths.h"

namespace linserve {

// The routes and schemas of text-embeddings-inference's own OpenAPI document.
class TeiDocument {
 public:
  using Json = nlohmann::json;

  TeiDocument() : document_(Json::parse(std::ifstream(DataFile("tei/openapi.json")))) {}

  const Json& routes() const { return document_["routes"]; }
  const Json& schemas() const { return document_["schemas"]; }

  // Says where a value is not what a schema wants, or holds what the schema does not know; "" if it
  // fits.
  std::string Misfit(const Json& value, const Json& schema, const std::string& where = "") const {
    if (schema.contains("$ref")) return Misfit(value, schemas()[schema["$ref"]], where);
    if (value.is_null() && schema.value("nullable", false)) return "";
    if (schema.contains("allOf")) return Misfit(value, schema["allOf"][0], where);
    if (schema.contains("oneOf")) {
      const bool any =
          std::any_of(schema["oneOf"].begin(), schema["oneOf"].end(),
                      [&](const Json& one) { return Misfit(value, one, where).empty(); });
      return any ? "" : where + ": none of the forms that there are";
    }
    const std::string type = schema.value("type", "");
    if (type == "object") return MisfitOfObject(value, schema, where);
    if (type == "array") return MisfitOfArray(value, schema, where);
    const bool fits = type.empty() || (type == "string" && value.is_string()) ||
                      (type == "integer" && value.is_number_integer()) ||
                      (type == "number" && value.is_number()) ||
                      (type == "boolean" && value.is_boolean());
    if (!fits) return where + ": not of type " + type;
    if (!schema.contains("enum")) return "";
    const Json& names = schema["enum"];
    const bool known = std::find(names.begin(), names.end(), value) != names.end();
    return known ? "" : where + ": not one of " + names.dump();
  }

 private:
  std::string MisfitOfObject(const Json& value, const Json& schema,
                             const std::string& where) const {
    if (!value.is_object()) return where + ": no object";
    const Json required = schema.value("required", Json::array());
    for (const auto& name : required) {
      if (!value.contains(name)) return where + ": lacks " + name.dump();
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, member] : value.items()) {
      if (!properties.contains(name)) return where + ": knows no " + name;
      const std::string misfit = Misfit(member, properties[name], where + "/" + name);
      if (!misfit.empty()) return misfit;
    }
    return "";
  }

  std::string MisfitOfArray(const Json& value, const Json& schema, const std::string& where) const {
    if (!value.is_array()) return where + ": no array";
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string misfit = Misfit(value[i], schema["items"], where + "/" + std::to_string(i));
      if (!misfit.empty()) return misfit;
    }
    return "";
  }

  const Json document_;
};

}  // namespace linserve

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "http/http_message.h"
#include "rest/rest_routes.h"

namespace linserve {

// Makes JSON of a kind, valid or not, of any size.
struct JsonShape {
  std::string name;
  std::function<std::string(size_t size)> text;
};

// Says where JSON comes in: a route, and what stands around a value in its body.
struct JsonDoor {
  std::string name;
  std::string route;  // the end of the route's pattern
  std::string before;
  std::string after;
};

inline JsonShape Filled(const std::string& open, const std::string& part,
                        const std::string& separator, const std::string& close) {
  return {open + part + separator + part + separator + "..." + close, [=](size_t size) {
            std::string text = open + part;
            while (text.size() < size) text += separator + part;
            return text + close;
          }};
}

inline std::vector<JsonShape> JsonShapes() {
  std::vector<JsonShape> shapes;
  for (const char* element : {"{}", "[]", "[1]", "1", "-0.12345e-3", "\"\"", "\"a text\"", "null",
                              "true", R"({"a":[{}]})", "[[[[[[[[]]]]]]]]", " 1 "}) {
    shapes.push_back(Filled("[", element, ",", "]"));
  }
  shapes.push_back(Filled("{", R"("a":1)", ",", "}"));
  shapes.push_back({"{\"0\":1,\"1\":1,...}", [](size_t size) {
                      std::string text = "{\"\":1";
                      for (int key = 0; text.size() < size; ++key) {
                        text += ",\"" + std::to_string(key) + "\":1";
                      }
                      return text + "}";
                    }});
  for (const char* part : {"a", "\\n", "\\u00e9", "\\ud83d\\ude00", "\xc3\xa9"}) {
    shapes.push_back(Filled("\"", part, "", "\""));
  }
  shapes.push_back(Filled("", "7", "", ""));
  shapes.push_back(Filled("0.", "7", "", ""));
  shapes.push_back(Filled("", " ", "", "1"));
  // None of these is JSON.
  shapes.push_back(Filled("[", "1", ",", ""));
  shapes.push_back(Filled("[[1", "[1", "", ""));
  shapes.push_back(Filled("\"", "a", "", ""));
  shapes.push_back(Filled("\"", "\\", "", "\""));
  return shapes;
}

inline std::vector<JsonDoor> JsonDoors() {
  const std::string input = R"({"inputs":[{"name":"x","shape":[1],"datatype":)";
  return {{"a member that is not known", "/infer", R"({"else":)", "}"},
          {"inputs", "/infer", R"({"inputs":)", "}"},
          {"data of FP64", "/infer", input + R"("FP64","data":)", "}]}"},
          {"data of BYTES", "/infer", input + R"("BYTES","data":)", "}]}"},
          {"parameters", "/infer", R"({"parameters":)", "}"},
          {"input", "/embeddings", R"({"model":"nobody","input":)", "}"},
          {"inputs of /embed", "/embed", R"({"model":"nobody","inputs":)", "}"},
          {"inputs of /similarity", "/similarity", R"({"model":"nobody","inputs":)", "}"},
          {"inputs of /tokenize", "/tokenize", R"({"model":"nobody","inputs":)", "}"},
          {"ids of /decode", "/decode", R"({"model":"nobody","ids":)", "}"},
          {"parameters of a command", "/load", R"({"parameters":)", "}"},
          {"an index", "/index", R"({"else":)", "}"}};
}

// Has the route read the value, for a model that there is not. Returns the HTTP code.
inline int ReadAt(const JsonDoor& door, const std::vector<HttpRoute>& routes,
                  const std::string& value, const std::function<bool()>& abandoned) {
  const HttpRequest request{.captures = {"nobody", ""},
                            .headers = {},
                            .body = door.before + value + door.after,
                            .abandoned = abandoned};
  for (const HttpRoute& route : routes) {
    if (route.pattern.ends_with(door.route)) return route.handler(request).status;
  }
  return 0;
}

}  // namespace linserve

#include "rest/openai/openai_form.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/json/json_text.h"
#include "core/status/parameter.h"
#include "rest/calls/http_errors.h"
#include "rest/calls/request_ids.h"
#include "rpc/calls/grpc_status.h"

namespace linserve {
namespace {

using nlohmann::json;

// OpenAI's words for an HTTP code, or words like them.
struct Words {
  int status;
  const char* type;
  const char* code;
};

Words WordsFor(int status) {
  constexpr std::array<Words, 13> kWords{{{401, "authentication_error", "invalid_api_key"},
                                          {403, "permission_error", "permission_denied"},
                                          {404, "invalid_request_error", "unknown_url"},
                                          {405, "invalid_request_error", "method_not_supported"},
                                          {408, "invalid_request_error", "request_timeout"},
                                          {413, "invalid_request_error", "request_too_large"},
                                          {415, "invalid_request_error", "unsupported_media_type"},
                                          {429, "rate_limit_error", "rate_limit_exceeded"},
                                          {499, "invalid_request_error", "request_cancelled"},
                                          {500, "server_error", "internal_error"},
                                          {501, "invalid_request_error", "unsupported"},
                                          {503, "server_error", "service_unavailable"},
                                          {504, "server_error", "timeout"}}};
  for (const Words& words : kWords) {
    if (words.status == status) return words;
  }
  return {status, "invalid_request_error", "invalid_value"};
}

std::string ErrorObject(const std::string& message, const Words& words, const json& parameter) {
  return JsonText(json{
      {"error",
       {{"message", message}, {"type", words.type}, {"param", parameter}, {"code", words.code}}}});
}

}  // namespace

absl::Status ReadOpenAiBody(JsonReader& reader, std::vector<JsonMember> members) {
  for (auto& [name, read] : members) {
    read = [read = std::move(read), name = std::string(name)] { return OfParameter(read(), name); };
  }
  return ReadBody(reader, members);
}

std::string EndOfAnswer(const std::string& model, int64_t tokens) {
  const json usage = {{"prompt_tokens", tokens}, {"total_tokens", tokens}};
  return R"(],"model":)" + JsonText(json(model)) + R"(,"usage":)" + JsonText(usage) + '}';
}

HttpReply OpenAiError(const absl::Status& status) {
  Words words = WordsFor(HttpCode(status));
  json parameter;
  if (const std::string name = ParameterOf(status); !name.empty()) parameter = name;
  if (absl::IsNotFound(status)) {
    words.code = "model_not_found";  // there is nothing else to be found
    parameter = "model";
  }
  HttpReply reply = ErrorReply(status, ErrorObject(MessageOf(status), words, parameter));
  // OpenAI's clients try again what is 5xx, and it is the caller who asked the wrong model.
  if (absl::IsUnimplemented(status)) reply.status = 400;
  return reply;
}

HttpForm OpenAiForm(const std::string& prefix) {
  return {.prefix = prefix,
          .begin = NameRequest,
          .end = [](const HttpRequest& request, HttpReply& reply) {
            NameReply(request, reply);
            if (reply.error.empty()) return;
            reply.body = ErrorObject(reply.error, WordsFor(reply.status), nullptr);
          }};
}

}  // namespace linserve

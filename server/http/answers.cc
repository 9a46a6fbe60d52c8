#include "http/answers.h"

#include <array>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/json/json_text.h"

namespace linserve {
namespace {

// Returns "" for a status whose class says enough.
const char* ReasonOf(int status) {
  constexpr std::array<std::pair<int, const char*>, 21> kReasons{
      {{200, "OK"},
       {400, "Bad Request"},
       {401, "Unauthorized"},
       {403, "Forbidden"},
       {404, "Not Found"},
       {405, "Method Not Allowed"},
       {408, "Request Timeout"},
       {413, "Content Too Large"},
       {414, "URI Too Long"},
       {415, "Unsupported Media Type"},
       {417, "Expectation Failed"},
       {422, "Unprocessable Content"},
       {424, "Failed Dependency"},
       {429, "Too Many Requests"},
       {431, "Request Header Fields Too Large"},
       {499, "Client Closed Request"},
       {500, "Internal Server Error"},
       {501, "Not Implemented"},
       {503, "Service Unavailable"},
       {504, "Gateway Timeout"},
       {505, "HTTP Version Not Supported"}}};
  for (const auto& [known, reason] : kReasons) {
    if (known == status) return reason;
  }
  return "";
}

}  // namespace

HttpReply TextReply(int status, const std::string& text) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = text + "\n"};
}

HttpReply RefusalReply(int status, const std::string& text) {
  return {.status = status, .body = JsonText(nlohmann::json{{"error", text}}), .error = text};
}

HttpReply RefusalReply(const HttpFault& fault) { return RefusalReply(fault.status, fault.text); }

HttpReply RefuseMethod(const std::string& allowed) {
  HttpReply reply = RefusalReply(405, "this path takes " + allowed);
  reply.headers.emplace_back("Allow", allowed);
  return reply;
}

HttpReply HealthReply(const absl::Status& health) {
  return health.ok() ? TextReply(200, "ok") : TextReply(503, std::string(health.message()));
}

HttpReply HealthReply(const absl::Status& health, const std::string& name) {
  if (health.ok()) return {.body = R"({")" + name + R"(":true})"};
  HttpReply reply = RefusalReply(503, std::string(health.message()));
  reply.body = JsonText(nlohmann::ordered_json{{name, false}, {"error", reply.error}});
  return reply;
}

HttpReply BusyReply(const std::string& text) {
  HttpReply reply = RefusalReply(503, text);
  reply.headers.emplace_back("Retry-After", "1");
  reply.last = true;
  return reply;
}

std::string ReplyHead(const HttpReply& reply, bool last, std::chrono::milliseconds idle,
                      int requests) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(idle).count();
  std::string head =
      "HTTP/1.1 " + std::to_string(reply.status) + " " + ReasonOf(reply.status) + "\r\n";
  head += last ? "Connection: close"
               : "Connection: keep-alive\r\nKeep-Alive: timeout=" + std::to_string(seconds) +
                     ", max=" + std::to_string(requests);
  head += "\r\nDate: " +
          absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone());
  head += "\r\nContent-Type: " + reply.content_type +
          "\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\n";
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  return head + "\r\n";
}

}  // namespace linserve

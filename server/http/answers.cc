#include "http/answers.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "telemetry/log.h"

namespace linserve {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";

// Of a body that is not wanted. Packed, it may go on for long.
constexpr size_t kMostOverlooked = 1 << 20;

bool HasBody(const httplib::Request& request) {
  return request.has_header("Content-Length") || request.has_header("Transfer-Encoding");
}

}  // namespace

void AnswerText(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text + "\n", kText);
}

void AnswerError(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(R"({"error":")" + text + R"("})", "application/json");
}

void AnswerHealth(httplib::Response& response, const absl::Status& health) {
  if (health.ok()) return AnswerText(response, 200, "ok");
  AnswerText(response, 503, std::string(health.message()));
}

void AnswerBusy(httplib::Response& response) {
  response.set_header("Retry-After", "1");
  response.set_header("Connection", "close");
  AnswerError(response, 503, "too many requests at once over HTTP; try again, or use gRPC");
}

bool ReadBody(const httplib::Request& request, const httplib::ContentReader& read, size_t most,
              const HttpGate& gate, std::string& body, httplib::Response& response) {
  std::optional<HttpReply> refusal = gate ? gate(0) : std::nullopt;
  if (refusal) {
    Overlook(request, read, response);
    AnswerReply(*refusal, response);
    return false;
  }
  if (request.is_multipart_form_data()) {
    response.status = 415;
    response.set_header("Connection", "close");
    return false;
  }
  if (!HasBody(request)) return true;
  bool too_long = false;
  size_t overlooked = 0;
  // httplib itself looks at no length but the one that is announced.
  const bool whole = read([&](const char* data, size_t size) {
    if (!too_long && !refusal) {
      too_long = size > most - body.size();
      if (!too_long && gate) refusal = gate(size);
    }
    if (!too_long && !refusal) {
      body.append(data, size);
      return true;
    }
    std::string().swap(body);
    overlooked += size;
    return overlooked <= kMostOverlooked;
  });
  if (!whole) response.set_header("Connection", "close");
  if (too_long) response.status = 413;
  if (refusal) AnswerReply(*refusal, response);
  return whole && !too_long && !refusal;
}

void Overlook(const httplib::Request& request, const httplib::ContentReader& read,
              httplib::Response& response) {
  size_t overlooked = 0;
  const auto overlook = [&](const char*, size_t size) {
    overlooked += size;
    return overlooked <= kMostOverlooked;
  };
  const bool whole = !request.is_multipart_form_data() && (!HasBody(request) || read(overlook));
  if (!whole) response.set_header("Connection", "close");
}

HttpRequest Converted(const httplib::Request& request, std::string body) {
  HttpRequest converted{.captures = {},
                        .headers = {},
                        .body = std::move(body),
                        .peer = request.remote_addr,
                        .abandoned = [progress = request.progress] { return !progress(0, 0); }};
  for (size_t i = 1; i < request.matches.size(); ++i) {
    converted.captures.push_back(request.matches[i].str());
  }
  for (const auto& [name, value] : request.headers) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    converted.headers[lower] = value;
  }
  return converted;
}

void AnswerReply(const HttpReply& reply, httplib::Response& response) {
  response.status = reply.status;
  for (const auto& [name, value] : reply.headers) response.set_header(name, value);
  response.set_content(reply.body, reply.content_type);
  // All that a response has which lives as long as it does.
  response.content_provider_resource_releaser_ = [held = reply.sending](bool) {};
}

void AnswerRoute(const HttpRoute& route, const httplib::Request& request, std::string body,
                 httplib::Response& response) {
  AnswerReply(route.handler(Converted(request, std::move(body))), response);
}

void AnswerException(const httplib::Request& request, httplib::Response& response,
                     std::exception_ptr exception) {
  std::string what = "not a std::exception";
  try {
    std::rethrow_exception(std::move(exception));
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  Log(LogLevel::kError, "http handler failed", {{"path", request.path}, {"error", what}});
  AnswerText(response, 500, "internal error: see the server's log");
}

}  // namespace linserve

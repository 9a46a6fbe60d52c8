#pragma once

#include <httplib.h>

#include <cstddef>
#include <exception>
#include <string>

#include "absl/status/status.h"
#include "http/http_message.h"

// For the .cc files of this folder: from httplib's requests to ours, and back.

namespace linserve {

void AnswerText(httplib::Response& response, int status, const std::string& text);

// `text` needs no escape in JSON.
void AnswerError(httplib::Response& response, int status, const std::string& text);

void AnswerHealth(httplib::Response& response, const absl::Status& health);
void AnswerBusy(httplib::Response& response);

// Reads a body and keeps nothing of it: httplib would take what is left of it for a next request. A
// long one ends the connection instead.
void Overlook(const httplib::Request& request, const httplib::ContentReader& read,
              httplib::Response& response);

// Read by ourselves: httplib would wait for a body where there is none (`curl -X POST`), and take
// no more than 8 KiB of one that calls itself a form (`curl -d`). False: the response is complete,
// or httplib completes it.
bool ReadBody(const httplib::Request& request, const httplib::ContentReader& read, size_t most,
              const HttpGate& gate, std::string& body, httplib::Response& response);

// `progress` must say whether the caller is still there.
HttpRequest Converted(const httplib::Request& request, std::string body);

void AnswerReply(const HttpReply& reply, httplib::Response& response);

void AnswerRoute(const HttpRoute& route, const httplib::Request& request, std::string body,
                 httplib::Response& response);

// Not httplib's default, which tells the caller what() in a header.
void AnswerException(const httplib::Request& request, httplib::Response& response,
                     std::exception_ptr exception);

}  // namespace linserve

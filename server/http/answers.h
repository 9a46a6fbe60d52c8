#pragma once

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "http/framing/http_fault.h"
#include "http/http_message.h"

// These are replies that several pages give, and how a reply is sent.

namespace linserve {

HttpReply TextReply(int status, const std::string& text);

// Makes an error in JSON, in which `text` needs no escape.
HttpReply RefusalReply(int status, const std::string& text);
HttpReply RefusalReply(const HttpFault& fault);

// Refuses a method that the path does not take, of which `allowed` lists those that it does.
HttpReply RefuseMethod(const std::string& allowed);

// Says how the server is: as text, or in the form of the Open Inference Protocol, whose word for it
// is `name`.
HttpReply HealthReply(const absl::Status& health);
HttpReply HealthReply(const absl::Status& health, const std::string& name);
HttpReply BusyReply(const std::string& text);

// Returns the head with which a reply is sent; `last` on its connection, which else stays open for
// `idle`, and for so many more requests.
std::string ReplyHead(const HttpReply& reply, bool last, std::chrono::milliseconds idle,
                      int requests);

}  // namespace linserve

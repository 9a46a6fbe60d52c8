#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "access/caller.h"
#include "core/json/json_reader.h"
#include "core/threads/clock.h"
#include "http/http_message.h"
#include "serving/request.h"
#include "serving/service_context.h"

namespace linserve {

// Holds a request over HTTP, of a caller who may call.
struct RestCall {
  ServiceContext& service;
  const HttpRequest& http;
  std::shared_ptr<const Caller> caller;
  int64_t body_bytes = 0;  // as in RequestContext
  TimePoint begin = std::chrono::steady_clock::now();
};

// Returns OK while the body is worth reading: its caller is there, and the server does not drain.
// The reader of the body asks it now and then, and must not outlive the call.
JsonReader::GoOn WantedBy(const RestCall& call);

// This header names a request, and its reply.
inline constexpr const char* kRequestId = "x-request-id";

// Returns the id of a request: what its header says, in kMaxIdBytes at most, else `given`, which
// stands in its body, if that can stand in a header, too, else a new one.
std::string RequestIdOf(const RestCall& call, const std::string& given);

// Makes the context of a request whose body names it so.
RequestContext ContextOf(const RestCall& call, const std::string& given);

// Returns the call's side of a request that `rpc` names in the metrics.
CallSide SideOf(const RestCall& call, const std::string& rpc);

}  // namespace linserve

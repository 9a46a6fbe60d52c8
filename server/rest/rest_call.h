#pragma once

#include <chrono>
#include <memory>

#include "access/caller.h"
#include "batching/clock.h"
#include "http/http_message.h"
#include "rpc/service_context.h"

namespace linserve {

// A request over HTTP, of a caller who may call.
struct RestCall {
  ServiceContext& service;
  const HttpRequest& http;
  std::shared_ptr<const Caller> caller;
  TimePoint begin = std::chrono::steady_clock::now();
};

}  // namespace linserve

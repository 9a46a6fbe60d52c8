#pragma once

#include <memory>

#include "access/caller.h"
#include "http/http_message.h"
#include "rpc/service_context.h"

namespace linserve {

// A request over HTTP, of a caller who may call.
struct RestCall {
  ServiceContext& service;
  const HttpRequest& http;
  std::shared_ptr<const Caller> caller;
};

}  // namespace linserve

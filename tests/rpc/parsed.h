#pragma once

#include <gtest/gtest.h>

#include "rpc/calls/received.h"

namespace linserve {

template <typename Message>
Message Parsed(grpc::ByteBuffer bytes) {
  Message message;
  const absl::Status status = Parse(bytes, message);
  EXPECT_TRUE(status.ok()) << status;
  return message;
}

}  // namespace linserve

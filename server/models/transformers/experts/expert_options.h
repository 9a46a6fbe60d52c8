#pragma once

#include <cstdint>

namespace linserve::transformers {

// Says how many feed-forwards some layers have, and through how many of them a row goes.
struct ExpertOptions {
  int64_t count = 0;  // 0: all layers have one
  int64_t chosen = 0;
};

}  // namespace linserve::transformers

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "models/model_fixture.h"
#include "models/random_weights.h"

namespace linserve {

inline constexpr const char* kMultiheadAttention =
    "linear_multihead_attention.LinearMultiheadAttention";
inline constexpr int64_t kMultiheadLength = 20;
inline constexpr int64_t kProjected = 7;

inline std::string MultiheadArguments(const std::string& more = "") {
  return R"({"embed_dim": 16, "num_heads": 4, "seq_len": 20, "proj_k": 7)" + more + "}";
}

inline std::string Corrected(const std::string& more = "") {
  return MultiheadArguments(R"(, "projection_layout": "corrected")" + more);
}

inline std::string Package(const std::string& more = "") {
  return MultiheadArguments(R"(, "projection_layout": "package")" + more);
}

class LinearMultiheadAttentionTest : public ModelFixture {
 protected:
  std::unique_ptr<Model> Make(const std::string& params) { return Load(Directory(params)); }

  std::string Directory(const std::string& params) {
    return ModelFixture::Directory(kMultiheadAttention, params);
  }

  Item Call(int64_t queries, int64_t keys, int64_t kdim = 16, int64_t vdim = 16) {
    Item item;
    item.inputs["query"] = RandomFloats({queries, 16});
    item.inputs["key"] = RandomFloats({keys, kdim});
    item.inputs["value"] = RandomFloats({keys, vdim});
    item.options.outputs = {"y", "weights"};
    return item;
  }

  std::string Error(const std::string& params) { return InitError(kMultiheadAttention, params); }
};

inline Tensor Bools(const Shape& shape, bool value) {
  auto [tensor, bytes] = Tensor::Allocate(DType::kBool, shape);
  std::fill_n(bytes, tensor.elements(), std::byte(value));
  return tensor;
}

}  // namespace linserve

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "batching/padder.h"
#include "core/sequence/item.h"
#include "engine/model.h"
#include "models/init_model.h"
#include "models/inspect_model.h"
#include "models/model_loader.h"
#include "support/test_files.h"

namespace linserve {

// Ends a test where this CPU has no kernels for the type.
#define SKIP_WITHOUT_TYPE(type)                                       \
  if (const auto types = TypesOfCpu();                                \
      std::find(types.begin(), types.end(), (type)) == types.end()) { \
    GTEST_SKIP() << "this CPU does not compute in " << (type);        \
  }

inline constexpr double kTolerance = 1e-5;
// This is the longest input of most models in these tests; it is not one of the default buckets.
inline constexpr int64_t kLongestInput = 40;

// Makes models with random weights in directories of their own, and computes with them through the
// Padder as a worker does.
class ModelFixture : public testing::Test {
 protected:
  // Makes a new directory with a model; fails the test if it cannot be made.
  std::string Init(const std::string& architecture, const std::string& params, uint64_t seed = 1,
                   const std::string& wrapper = "null");
  // Says why no model can be made of these arguments; "" if one can.
  static std::string InitError(const std::string& architecture, const std::string& params,
                               const std::string& wrapper = "null");
  std::unique_ptr<Model> Load(const std::string& directory, const ModelLoadOptions& options = {});

  // Makes a model whose biases and norms are random, too, so that none of them is left out
  // unnoticed.
  std::string Directory(const std::string& architecture, const std::string& params,
                        const std::string& wrapper = "null");
  std::unique_ptr<Model> Make(const std::string& architecture, const std::string& params,
                              const std::string& wrapper = "null") {
    return Load(Directory(architecture, params, wrapper));
  }

  // Writes a file of the model directory.
  static void Write(const std::string& directory, const std::string& name, const std::string& text);

  // Returns the outputs of each item, computed as one batch.
  static std::vector<TensorMap> Compute(Model& model, const std::vector<Item>& items,
                                        Padding padding = Padding::kPacked);
  // Expects that in every padding each item's outputs are those that it has alone.
  static void ExpectTheSameAloneAndTogether(Model& model, const std::vector<Item>& items);
  // Expects it of so many batches: the first ones are of lengths that are easily got wrong, the
  // others of any up to kLongestInput, every second one with masks.
  using ItemMaker = std::function<Item(int64_t length, bool masked)>;
  void ExpectTheSameInMixes(Model& model, int mixes, const ItemMaker& make);

  int64_t Any(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  // Makes a random sequence of input x.
  Item Tokens(int64_t length, int64_t vocabulary);
  Tensor Ids(int64_t length, int64_t vocabulary);
  Item Floats(int64_t length, int64_t width);
  Tensor RandomFloats(const Shape& shape);
  // Makes a mask each place of which is true with the probability `share`.
  Tensor RandomMask(int64_t length, double share = 0.7);
  // Makes a mask that is true on [begin, end).
  static Tensor MaskOf(int64_t length, int64_t begin, int64_t end);

  std::mt19937_64 random_{42};

 private:
  std::vector<int64_t> LengthsOf(int mix);

  TempDir root_;
  int made_ = 0;
};

// Returns the largest difference between two F32 tensors; infinity if their shapes differ.
double LargestDifference(const Tensor& a, const Tensor& b);
double LargestDifference(const TensorMap& a, const TensorMap& b);

// Returns the smallest cosine between rows of the same index.
double SmallestCosine(const Tensor& a, const Tensor& b);

}  // namespace linserve

#pragma once

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batching/padder.h"
#include "support/test_tensors.h"

namespace linserve {

constexpr int64_t kLongest = 50;       // longest random sequence
constexpr float kHidden = -kInfinity;  // hides an element in an attention mask

// Makes a tensor [rows, 2] of first, first + 1, ...
inline Tensor Counting(int64_t rows, float first) {
  std::vector<float> values;
  for (int64_t i = 0; i < 2 * rows; ++i) values.push_back(first + static_cast<float>(i));
  return Tensor::FromFloats({rows, 2}, values);
}

// Makes an item for the signatures in this file.
inline Item Rows(int64_t length, float first = 1) {
  Item item;
  item.inputs["x"] = Counting(length, first);
  return item;
}

inline Item WithContext(Item item, int64_t length, float first = 1) {
  item.inputs["context"] = Counting(length, first);
  return item;
}

// Takes x [n, 2]; a `longest` of 0 means that there is no limit.
inline Signature Simple(int64_t longest = 0) {
  Signature signature;
  signature.inputs = {{"x", InputKind::kFloat, {Axis::Ragged('n'), Axis::Fixed(2)}}};
  signature.outputs = {{"y", {Axis::Ragged('n'), Axis::Fixed(2)}}};
  if (longest > 0) signature.limits = {{'n', longest, ""}};
  return signature;
}

// Takes x [n, 2], and optionally context [m, 2].
inline Signature TwoInputs(int64_t longest = 0) {
  Signature signature = Simple(longest);
  signature.inputs.push_back(
      {"context", InputKind::kFloat, {Axis::Ragged('m'), Axis::Fixed(2)}, /*optional=*/true});
  if (longest > 0) signature.limits.push_back({'m', longest, ""});
  return signature;
}

// Makes items for TwoInputs(). Every tenth seed gives 64 sequences of one row; all others hold
// among many lengths one of 1 and the longest.
inline std::vector<Item> RandomItems(unsigned seed) {
  if (seed % 10 == 0) return std::vector<Item>(64, Rows(1, static_cast<float>(seed + 1)));
  std::mt19937 random(seed);
  const auto length = [&] { return 1 + static_cast<int64_t>(random() % kLongest); };
  std::vector<Item> items = {Rows(1, 5), Rows(kLongest, 7)};
  for (size_t more = random() % 12; more > 0; --more) {
    items.push_back(Rows(length(), static_cast<float>(random() % 1000 + 1)));
    if (random() % 3 == 0) items.back() = WithContext(items.back(), length(), 100);
  }
  return items;
}

// Returns the groups that may share a batch.
inline std::vector<std::vector<Item>> ByKey(const Padder& padder, const std::vector<Item>& items) {
  std::map<std::string, std::vector<Item>> groups;
  for (const Item& item : items) groups[padder.Key(item)].push_back(item);
  std::vector<std::vector<Item>> result;
  for (auto& [key, group] : groups) result.push_back(std::move(group));
  return result;
}

inline std::vector<const Item*> Pointers(const std::vector<Item>& items) {
  std::vector<const Item*> pointers;
  for (const Item& item : items) pointers.push_back(&item);
  return pointers;
}

}  // namespace linserve

#include "models/model_fixture.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "core/tensor/comparison.h"
#include "models/random_weights.h"

namespace linserve {

namespace fs = std::filesystem;

std::string ModelFixture::Init(const std::string& architecture, const std::string& params,
                               uint64_t seed, const std::string& wrapper) {
  const std::string directory = root_.File(std::to_string(made_++));
  const absl::Status status = InitModel(architecture, params, seed, directory, wrapper);
  EXPECT_TRUE(status.ok()) << status;
  return directory;
}

std::string ModelFixture::InitError(const std::string& architecture, const std::string& params,
                                    const std::string& wrapper) {
  const TempDir directory;
  return std::string(
      InitModel(architecture, params, 1, directory.File("refused"), wrapper).message());
}

std::unique_ptr<Model> ModelFixture::Load(const std::string& directory,
                                          const ModelLoadOptions& options) {
  ModelLoadOptions given = options;
  // The models are tiny, and tests run beside each other.
  if (given.threads == 0) given.threads = 1;
  auto model = LoadModel(directory, given);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

std::string ModelFixture::Directory(const std::string& architecture, const std::string& params,
                                    const std::string& wrapper) {
  const std::string directory = Init(architecture, params, 1, wrapper);
  RandomiseWeights(directory);
  return directory;
}

void ModelFixture::Write(const std::string& directory, const std::string& name,
                         const std::string& text) {
  fs::create_directories(directory);
  std::ofstream(directory + "/" + name) << text;
}

std::vector<TensorMap> ModelFixture::Compute(Model& model, const std::vector<Item>& items,
                                             Padding padding) {
  const Padder padder(model.info().signature, padding);
  std::vector<const Item*> pointers;
  for (const Item& item : items) {
    const absl::Status valid = Validate(model.info().signature, item);
    EXPECT_TRUE(valid.ok()) << valid;
    pointers.push_back(&item);
  }
  auto forward = model.Start(padder.Pad(pointers));
  EXPECT_TRUE(forward.ok()) << forward.status();
  // One for each item, so that a test which has failed goes on to its end.
  const std::vector<TensorMap> none(items.size());
  if (!forward.ok()) return none;
  for (bool done = false; !done;) {
    auto advanced = (*forward)->Advance();
    EXPECT_TRUE(advanced.ok()) << advanced.status();
    done = !advanced.ok() || *advanced;
  }
  auto results = (*forward)->TakeResults();
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) return none;
  std::vector<TensorMap> outputs;
  for (auto& result : *results) {
    EXPECT_TRUE(result.ok()) << result.status();
    outputs.push_back(result.ok() ? *std::move(result) : TensorMap());
  }
  return outputs;
}

void ModelFixture::ExpectTheSameAloneAndTogether(Model& model, const std::vector<Item>& items) {
  std::vector<TensorMap> alone;
  for (const Item& item : items) alone.push_back(Compute(model, {item})[0]);
  for (Padding padding : {Padding::kPacked, Padding::kBucket, Padding::kFixed}) {
    const auto together = Compute(model, items, padding);
    for (size_t i = 0; i < items.size(); ++i) {
      ASSERT_LT(LargestDifference(together[i], alone[i]), kTolerance)
          << Name(padding) << ", sequence " << i << " of " << items.size();
    }
  }
}

std::vector<int64_t> ModelFixture::LengthsOf(int mix) {
  if (mix == 0) return {1};
  if (mix == 1) return {kLongestInput, 1, kLongestInput};
  if (mix == 2) return std::vector<int64_t>(16, 1);
  if (mix == 3) return {8, 16, 9, 7, 24, 24, 24};
  std::vector<int64_t> lengths(static_cast<size_t>(Any(1, 6)));
  for (int64_t& length : lengths) length = Any(1, kLongestInput);
  return lengths;
}

void ModelFixture::ExpectTheSameInMixes(Model& model, int mixes, const ItemMaker& make) {
  for (int mix = 0; mix < mixes; ++mix) {
    SCOPED_TRACE("mix " + std::to_string(mix));
    std::vector<Item> items;
    for (const int64_t length : LengthsOf(mix)) items.push_back(make(length, mix % 2 == 1));
    ASSERT_NO_FATAL_FAILURE(ExpectTheSameAloneAndTogether(model, items));
  }
}

Item ModelFixture::Tokens(int64_t length, int64_t vocabulary) {
  std::vector<int64_t> ids(static_cast<size_t>(length));
  std::uniform_int_distribution<int64_t> any(0, vocabulary - 1);
  for (int64_t& id : ids) id = any(random_);
  Item item;
  item.inputs["x"] = Tensor::FromInts({length}, ids);
  return item;
}

Tensor ModelFixture::Ids(int64_t length, int64_t vocabulary) {
  return Tokens(length, vocabulary).inputs.at("x");
}

Item ModelFixture::Floats(int64_t length, int64_t width) {
  Item item;
  item.inputs["x"] = RandomFloats({length, width});
  return item;
}

Tensor ModelFixture::RandomFloats(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(ElementCount(shape)));
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random_);
  return Tensor::FromFloats(shape, values);
}

Tensor ModelFixture::RandomMask(int64_t length, double share) {
  auto [mask, bytes] = Tensor::Allocate(DType::kBool, {length});
  std::bernoulli_distribution visible(share);
  for (int64_t i = 0; i < length; ++i) bytes[i] = std::byte{visible(random_)};
  return mask;
}

Tensor ModelFixture::MaskOf(int64_t length, int64_t begin, int64_t end) {
  auto [mask, bytes] = Tensor::Allocate(DType::kBool, {length});
  for (int64_t i = begin; i < end; ++i) bytes[i] = std::byte{true};
  return mask;
}

double LargestDifference(const Tensor& a, const Tensor& b) {
  const auto compared = Compare(a, b);
  return compared.ok() ? compared->largest : std::numeric_limits<double>::infinity();
}

double LargestDifference(const TensorMap& a, const TensorMap& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const auto& [name, tensor] : a) {
    if (!b.contains(name)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, LargestDifference(tensor, b.at(name)));
  }
  return largest;
}

double SmallestCosine(const Tensor& a, const Tensor& b) {
  const auto compared = Compare(a, b);
  return compared.ok() ? compared->smallest_cosine : -1;
}

}  // namespace linserve

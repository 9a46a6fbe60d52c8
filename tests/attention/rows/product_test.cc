#include "attention/rows/product.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attention/layouts.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

thread_local int products = 0;  // that LibTorch was asked for

// Counts the products that LibTorch is asked for on this thread while it lives.
class CountedProducts {
 public:
  CountedProducts() : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&Count))) {
    products = 0;
  }
  ~CountedProducts() { at::removeCallback(handle_); }
  CountedProducts(const CountedProducts&) = delete;
  CountedProducts& operator=(const CountedProducts&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> Count(const at::RecordFunction& function) {
    const std::string name = function.name();
    if (name == "aten::mm" || name == "aten::bmm" || name == "aten::addmm") ++products;
    return nullptr;
  }

  at::CallbackHandle handle_;
};

TEST(Product, OfAColumnAndARowIsMultipliedOut) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const auto& [batch, other] :
         std::vector<std::pair<std::vector<int64_t>, int64_t>>{{{}, 5}, {{3}, 1}, {{2, 4}, 7}}) {
      std::vector<int64_t> column = batch;
      std::vector<int64_t> row = batch;
      column.insert(column.end(), {6, 1});
      row.insert(row.end(), {1, other});
      const at::Tensor a = at::randn(column, type);
      const at::Tensor b = at::randn(row, type);
      const at::Tensor expected = at::matmul(a, b);
      at::Tensor set = at::empty_like(expected);
      const CountedProducts counted;
      const at::Tensor result = Product(a, b);
      SetProduct(set, a, b);
      EXPECT_EQ(products, 0);
      EXPECT_TRUE(at::equal(result, expected));
      EXPECT_TRUE(at::equal(set, expected));
    }
  }
  const CountedProducts counted;
  Product(at::ones({2, 2}), at::ones({2, 2}));
  EXPECT_EQ(products, 1);
}

TEST(Product, IsThatOfLibTorchWhateverTheSizes) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t size : {1, 2, 3, 17, 32, 33, 64, 300, 513, 4100}) {
      SCOPED_TRACE(size);
      const at::Tensor rows = at::randn({size, 24}, type);
      const at::Tensor matrix = at::randn({24, 40}, type);
      const at::Tensor columns = at::randn({20, size}, type);
      const double most = type == at::kFloat ? 1e-3 : 4;  // sums of 4,100 products are up to 300
      EXPECT_LT(LargestDifference(Product(rows, matrix), at::matmul(rows, matrix)), most);
      EXPECT_LT(LargestDifference(Product(columns, rows), at::matmul(columns, rows)), most);
      at::Tensor set = at::empty({20, 24}, type);
      SetProduct(set, columns, rows);
      EXPECT_LT(LargestDifference(set, at::matmul(columns, rows)), most);
    }
  }
}

}  // namespace
}  // namespace linserve

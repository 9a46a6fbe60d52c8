#include "batching/identity.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace linserve {
namespace {

std::shared_ptr<const Identity> Of(const std::string& bytes) {
  return std::make_shared<const Identity>(bytes);
}

TEST(Identity, FindsWhatIsOfEqualBytes) {
  ByIdentity<int> found;
  found[Of("a")] = 1;
  found[Of("b")] = 2;
  EXPECT_EQ(found.at(Of("a")), 1);
  EXPECT_EQ(found.at(Of("b")), 2);
  EXPECT_FALSE(found.contains(Of("c")));
}

}  // namespace
}  // namespace linserve

#include "core/threads/elastic_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>

namespace linserve {
namespace {

TEST(ElasticThreads, GoOnAfterATaskThatThrows) {
  std::atomic<int> done{0};
  {
    ElasticThreads threads(1);
    threads.Run([] { throw std::bad_alloc(); });
    threads.Run([] { throw 5; });
    threads.Run([&done] { ++done; });
  }
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace linserve

// The work of reading a body grows with its size and no faster, and ends where nobody waits for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "rest/json_shapes.h"
#include "rest/rest_fixture.h"

namespace linserve {
namespace {

constexpr size_t kKiB = 1 << 10;

double ThreadSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

bool Stays() { return false; }

class Reading : public RestTest {
 protected:
  // Returns the least time of some runs.
  double SecondsFor(const JsonDoor& door, const std::string& value, int runs) const {
    double least = 1e9;
    for (int run = 0; run < runs; ++run) {
      const double begin = ThreadSeconds();
      EXPECT_NE(ReadAt(door, routes_, value, Stays), 0) << "no route for " << door.name;
      least = std::min(least, ThreadSeconds() - begin);
    }
    return least;
  }

  // Returns some of the doors, other ones each time: a failure names what was drawn.
  std::vector<JsonDoor> DrawnDoors(size_t count) {
    std::vector<JsonDoor> doors = JsonDoors();
    std::shuffle(doors.begin(), doors.end(), random_);
    doors.resize(count);
    return doors;
  }

  std::mt19937 random_{std::random_device()()};
  const std::vector<HttpRoute> routes_ = AllRoutes(server_.grpc().context());
};

TEST_F(Reading, LooksAtEachByteTwiceAtMost) {
  for (const JsonShape& shape : JsonShapes()) {
    const std::string value = shape.text(96 * kKiB);
    for (const JsonDoor& door : DrawnDoors(4)) {
      const auto asked = std::make_shared<std::atomic<int>>(0);
      ReadAt(door, routes_, value, [asked] { return ++*asked, false; });
      const int steps = static_cast<int>(value.size() / (64 << 10));
      EXPECT_LE(*asked, 2 * steps + 8) << shape.name << " as " << door.name;
    }
  }
}

TEST_F(Reading, TakesTimeInProportionToTheSize) {
  // What is linear takes 8 times as long, and what is quadratic 64 times.
  constexpr double kMostRatio = 24;
  constexpr double kLeastSeconds = 0.002;  // what takes less says nothing
  for (const JsonShape& shape : JsonShapes()) {
    for (const JsonDoor& door : DrawnDoors(1)) {
      size_t size = 2 * kKiB;
      double seconds = 0;
      while (seconds < kLeastSeconds && size < 128 * kKiB) {
        size *= 2;
        seconds = SecondsFor(door, shape.text(size), 3);
      }
      EXPECT_LE(SecondsFor(door, shape.text(8 * size), 1), kMostRatio * (seconds + kLeastSeconds))
          << shape.name << " as " << door.name << ", " << seconds << " s for " << size << " bytes";
    }
  }
}

TEST_F(Reading, EndsWhenTheCallerLeaves) {
  const std::string value = JsonShapes()[3].text(1024 * kKiB);
  for (const JsonDoor& door : JsonDoors()) {
    const auto asked = std::make_shared<std::atomic<int>>(0);
    const int code = ReadAt(door, routes_, value, [asked] { return ++*asked >= 3; });
    if (code == 400 || code == 422) continue;  // it is none of the values that belong there
    EXPECT_EQ(code, 499) << door.name;
    EXPECT_LT(*asked, 8) << door.name;
  }
}

TEST_F(Reading, EndsWhenTheServerDrains) {
  const std::string value = JsonShapes()[3].text(1024 * kKiB);
  server_.grpc().context().draining = true;
  EXPECT_EQ(ReadAt(JsonDoors()[0], routes_, value, Stays), 503);
  EXPECT_EQ(ReadAt(JsonDoors()[0], routes_, "1", Stays), 400);  // what is short is read and judged
}

}  // namespace
}  // namespace linserve

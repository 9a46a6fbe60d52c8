#include "core/files/json_file.h"

#include <nlohmann/json.hpp>

#include "support/test_files.h"

namespace linserve {
namespace {

TEST(ReadJson, NamesTheFile) {
  const TempDir dir;
  WriteAll(dir.File("a.json"), "{\"a\": 1}");
  EXPECT_EQ(ReadJson(dir.File("a.json"))->dump(), R"({"a":1})");
  WriteAll(dir.File("a.json"), "{");
  EXPECT_THAT(ReadJson(dir.File("a.json")), IsInvalid("a.json: "));
  WriteAll(dir.File("a.json"), "\"" + std::string(1 << 20, 'x') + "\"");
  EXPECT_THAT(ReadJson(dir.File("a.json")), IsInvalid("a.json' is longer than 1048576 bytes"));
  EXPECT_THAT(ReadJson(dir.File("b.json")), IsStatus(kNotFoundCode, "b.json"));
}

}  // namespace
}  // namespace linserve

#include <unistd.h>

#include "core/files/safetensors.h"
#include "support/paths.h"
#include "support/test_files.h"

namespace linserve {
namespace {

std::string Prefix(uint64_t length) {
  std::string prefix(sizeof(length), '\0');
  std::memcpy(prefix.data(), &length, sizeof(length));
  return prefix;
}

absl::StatusOr<SafetensorsFile> ParseBytes(const std::string& bytes) {
  const auto copy = ExactCopy(bytes);
  return ParseSafetensors(copy.get(), bytes.size(), copy, "m.safetensors");
}

// Parses a file of this header and that many bytes of data.
absl::StatusOr<SafetensorsFile> ParseHeader(const std::string& header, size_t data_size = 0) {
  return ParseBytes(Prefix(header.size()) + header + std::string(data_size, '\0'));
}

// Writes the header of one tensor "a".
std::string One(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

TEST(Safetensors, DoesNotFindAFileThatIsNotThere) {
  EXPECT_THAT(ReadSafetensors("/no/such.safetensors"),
              IsStatus(absl::StatusCode::kNotFound, "'/no/such.safetensors'"));
}

TEST(Safetensors, NamesTheFileInEveryMessage) {
  const TempDir dir;
  WriteAll(dir.File("bad.safetensors"), "");
  EXPECT_THAT(ReadSafetensors(dir.File("bad.safetensors")), IsInvalid("bad.safetensors"));
  EXPECT_THAT(ParseHeader("[]"), IsInvalid("'m.safetensors'"));
  EXPECT_THAT(ParseHeader(One(R"("F8")", "[]", "[0,0]")), IsInvalid("'m.safetensors'"));
  EXPECT_THAT(ParseHeader("{}", 1), IsInvalid("'m.safetensors'"));
}

TEST(Safetensors, RefusesAFileWithoutRoomForTheHeaderLength) {
  EXPECT_THAT(ParseBytes(""), IsInvalid("ends at offset 0, expected 8 bytes of header length"));
  EXPECT_THAT(ParseBytes("1234567"), IsInvalid("ends at offset 7"));
}

TEST(Safetensors, RefusesAHeaderLongerThanTheFile) {
  EXPECT_THAT(ParseBytes(Prefix(3) + "{}"),
              IsInvalid("the header length at offset 0 is 3, expected at most the 2 bytes"));
}

TEST(Safetensors, RefusesAHeaderThatIsTooLong) {
  EXPECT_THAT(ParseBytes(Prefix((32 << 20) + 1) + "{}"), IsInvalid("expected at most 33554432"));
  EXPECT_THAT(ParseBytes(Prefix(~uint64_t{0}) + "{}"), IsInvalid("18446744073709551615"));
}

TEST(Safetensors, RefusesMoreTensorsThanANetworkHas) {
  constexpr int kMost = 1 << 17;
  std::string tensors;
  const auto add = [&](int number) {
    tensors += (number == 0 ? "{\"" : ",\"") + std::to_string(number) +
               R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  };
  for (int i = 0; i <= kMost; ++i) add(i);
  EXPECT_THAT(ParseHeader(tensors + "}"), IsInvalid("131072 tensors that a file may have"));
}

TEST(Safetensors, RefusesMoreMetadataThanAnybodyWrites) {
  const auto header = [](int keys) {
    std::string text = R"({"__metadata__":{)";
    for (int i = 0; i < keys; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":"")";
    return text + "}}";
  };
  EXPECT_TRUE(ParseHeader(header(4096)).ok());
  EXPECT_THAT(ParseHeader(header(4097)), IsInvalid("more than 4096 keys"));
}

TEST(Safetensors, RefusesAFileThatIsLargerThanTheMemory) {
  const TempDir dir;
  WriteAll(dir.File("a"), Prefix(2) + "{}");
  ASSERT_EQ(::truncate(dir.File("a").c_str(), off_t{1} << 42), 0);  // 4 TiB that take no space
  EXPECT_THAT(ReadSafetensors(dir.File("a")), IsStatus(kExhaustedCode, "is of 4.0 TiB"));
}

TEST(Safetensors, RefusesAHeaderThatIsNoObject) {
  for (const char* header : {"", "[]", "1", "null", R"("a")", " {}", "\xef\xbb\xbf{}"}) {
    EXPECT_THAT(ParseHeader(header), IsInvalid("at offset 8 is not an object, expected '{'"))
        << header;
  }
}

TEST(Safetensors, RefusesWhatIsNotJson) {
  EXPECT_THAT(ParseHeader("{\"a\""), IsInvalid("not valid JSON at its byte 5, expected {name:"));
  EXPECT_THAT(ParseHeader("{}x"), IsInvalid("not valid JSON at its byte 3"));
  EXPECT_THAT(ParseHeader("{'a':1}"), IsInvalid("not valid JSON"));
  EXPECT_THAT(ParseHeader("{\"\xff\":{}}"), IsInvalid("not valid JSON"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[1e999]", "[0,0]")), IsInvalid("not valid JSON"));
}

TEST(Safetensors, StopsAtNestingThatTheFormatDoesNotHave) {
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(ParseHeader("{\"a\":" + deep), IsInvalid("tensor 'a': it holds an array"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", deep, "[0,0]")), IsInvalid("'shape': it holds an array"));
  EXPECT_THAT(ParseHeader(R"({"a":{"shape":{"b":1}}})"), IsInvalid("'shape': it holds an object"));
}

TEST(Safetensors, RefusesTensorsThatAreNoObjects) {
  EXPECT_THAT(ParseHeader(R"({"a":1})"), IsInvalid("it holds a number, expected an object"));
  EXPECT_THAT(ParseHeader(R"({"a":-1})"), IsInvalid("tensor 'a': it holds a number"));
  EXPECT_THAT(ParseHeader(R"({"a":1.5})"), IsInvalid("tensor 'a': it holds a number"));
  EXPECT_THAT(ParseHeader(R"({"a":null})"), IsInvalid("it holds null"));
  EXPECT_THAT(ParseHeader(R"({"a":true})"), IsInvalid("it holds true or false"));
  EXPECT_THAT(ParseHeader(R"({"a":"F32"})"), IsInvalid("it holds text"));
}

TEST(Safetensors, RefusesFieldsOfTheWrongKind) {
  EXPECT_THAT(ParseHeader(One("1", "[]", "[0,0]")),
              IsInvalid("'dtype': it holds a number, expected text"));
  EXPECT_THAT(ParseHeader(One(R"(["U8"])", "[]", "[0,0]")),
              IsInvalid("'dtype': it holds an array"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "1", "[0,1]")), IsInvalid("'shape': it holds a number"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[true]", "[0,1]")), IsInvalid("expected integers"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[]", R"("0")")),
              IsInvalid("'data_offsets': it holds text"));
}

TEST(Safetensors, RefusesUnknownKeysAndDTypes) {
  EXPECT_THAT(ParseHeader(R"({"a":{"strides":[1]}})"),
              IsInvalid("'strides': unknown key, expected dtype"));
  EXPECT_THAT(ParseHeader(One(R"("F8_E5M2")", "[1]", "[0,1]"), 1),
              IsInvalid("tensor 'a', 'dtype': unknown dtype 'F8_E5M2', expected BOOL, U8"));
}

TEST(Safetensors, RefusesMissingFields) {
  EXPECT_THAT(ParseHeader(R"({"a":{}})"),
              IsInvalid("tensor 'a': a field is missing, expected dtype"));
  EXPECT_THAT(ParseHeader(R"({"a":{"dtype":"U8","shape":[0]}})"), IsInvalid("a field is missing"));
  EXPECT_THAT(ParseHeader(R"({"a":{"dtype":"U8","data_offsets":[0,0]}})"),
              IsInvalid("a field is missing"));
}

TEST(Safetensors, RefusesKeysThatStandTwice) {
  const std::string tensor = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(ParseHeader("{" + tensor + "," + tensor + "}"),
              IsInvalid("tensor 'a': the name stands there twice"));
  EXPECT_THAT(ParseHeader(R"({"a":{"dtype":"U8","dtype":"U8"}})"),
              IsInvalid("'dtype': the key stands there twice"));
  EXPECT_THAT(ParseHeader(R"({"__metadata__":{"k":"1","k":"2"}})"),
              IsInvalid("'k': the key stands there twice"));
  EXPECT_THAT(ParseHeader(R"({"__metadata__":{},"__metadata__":{}})"),
              IsInvalid("the name stands there twice"));
}

TEST(Safetensors, RefusesMetadataThatIsNoText) {
  EXPECT_THAT(ParseHeader(R"({"__metadata__":{"k":1}})"),
              IsInvalid("'k': it holds a number, expected text"));
  EXPECT_THAT(ParseHeader(R"({"__metadata__":{"k":{}}})"),
              IsInvalid("it holds an object, expected text"));
  EXPECT_THAT(ParseHeader(R"({"__metadata__":[]})"),
              IsInvalid("'__metadata__': it holds an array"));
}

TEST(Safetensors, RefusesShapesThatCannotBe) {
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[-1]", "[0,1]"), 1),
              IsInvalid("'shape': it holds -1, expected 0 or more"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[1.5]", "[0,1]"), 1),
              IsInvalid("'shape': it holds a fraction"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[18446744073709551615]", "[0,1]"), 1),
              IsInvalid("expected less than 2^63"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[99999999999999999999]", "[0,1]"), 1),
              IsInvalid("more than 2^64"));
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[" + ones + "]", "[0,1]"), 1),
              IsInvalid("expected at most 64"));
}

TEST(Safetensors, RefusesShapesWhoseBytesOverflow) {
  for (const char* shape : {"[4294967296,4294967296]", "[4611686018427387904,4]",
                            "[4611686018427387904]", "[4294967296,4294967296,0]"}) {
    EXPECT_THAT(ParseHeader(One(R"("F32")", shape, "[0,0]")),
                IsInvalid("overflows, expected fewer than 2^63 bytes"));
  }
}

TEST(Safetensors, RefusesOffsetsThatAreNoPair) {
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[0]", "[0]")),
              IsInvalid("data_offsets [0], expected [begin, end]"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[0]", "[0,0,0]")), IsInvalid("data_offsets [0, 0, 0]"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[1]", "[-1,0]"), 1),
              IsInvalid("'data_offsets': it holds -1"));
}

TEST(Safetensors, RefusesATensorThatEndsBeforeItBegins) {
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[1]", "[1,0]"), 1),
              IsInvalid("tensor 'a': data_offsets [1, 0], expected begin <= end"));
}

TEST(Safetensors, RefusesTensorsPastTheEndOfATruncatedFile) {
  EXPECT_THAT(ParseHeader(One(R"("F32")", "[2]", "[0,8]"), 7),
              IsInvalid("tensor 'a': data_offsets [0, 8] lie past the end, expected at most 7; "
                        "the file is shorter than its header says: copy it again"));
  EXPECT_THAT(ParseHeader(One(R"("U8")", "[1]", "[9223372036854775806,9223372036854775807]"), 1),
              IsInvalid("lie past the end"));
}

TEST(Safetensors, RefusesOffsetsThatDoNotMatchTheShape) {
  EXPECT_THAT(ParseHeader(One(R"("F16")", "[3]", "[0,4]"), 4),
              IsInvalid("data_offsets [0, 4] are 4 bytes, expected 6 of F16 [3]"));
}

std::string Two(const std::string& first, const std::string& second) {
  return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + first +
         R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}";
}

TEST(Safetensors, RefusesTensorsThatOverlap) {
  EXPECT_THAT(
      ParseHeader(Two("[0,2]", "[1,3]"), 3),
      IsInvalid("tensor 'b': data_offsets [1, 3] overlap another tensor, expected to begin at 2"));
  EXPECT_THAT(ParseHeader(Two("[0,2]", "[0,2]"), 2), IsInvalid("overlap another tensor"));
}

TEST(Safetensors, RefusesHoles) {
  EXPECT_THAT(
      ParseHeader(Two("[0,2]", "[3,5]"), 5),
      IsInvalid(
          "tensor 'b': data_offsets [3, 5] leave a hole before them, expected to begin at 2"));
  EXPECT_THAT(ParseHeader(Two("[1,3]", "[3,5]"), 5), IsInvalid("expected to begin at 0"));
  EXPECT_THAT(ParseHeader(Two("[0,2]", "[2,4]"), 5),
              IsInvalid("end at data offset 4 but the data at 5"));
  EXPECT_THAT(ParseHeader("{}", 1), IsInvalid("expected no byte that belongs to no tensor"));
}

TEST(Safetensors, RefusesEveryTruncationOfAFile) {
  const std::string whole = ReadAll(DataFile("goldens/linformer-attn-onekv/model.safetensors"));
  ASSERT_TRUE(ParseBytes(whole).ok());
  for (size_t size = 0; size < whole.size(); size += size < 600 ? 1 : 997) {
    EXPECT_THAT(ParseBytes(whole.substr(0, size)), IsInvalid("expected")) << size;
  }
}

TEST(Safetensors, SurvivesEveryByteOfAHeaderBeingWrong) {
  const std::string whole = ReadAll(DataFile("goldens/linformer-attn-onekv/model.safetensors"));
  for (size_t at = 0; at < 512; ++at) {
    for (char wrong : {'\0', '"', '}', '9', '\xff'}) {
      std::string bytes = whole;
      bytes[at] = wrong;
      const auto file = ParseBytes(bytes);
      if (!file.ok()) {
        EXPECT_THAT(file, IsInvalid("expected")) << at;
      }
    }
  }
}

TEST(Safetensors, CutsHostileNamesInMessages) {
  const auto file = ParseHeader("{\"" + std::string(100'000, 'x') + "\":1}");
  EXPECT_LT(file.status().message().size(), 300u);
}

}  // namespace
}  // namespace linserve

#include "core/files/npy.h"

#include "support/test_files.h"

namespace linserve {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;

absl::StatusOr<Tensor> ParseFile(const std::string& bytes) {
  const auto copy = ExactCopy(bytes);
  return ParseNpy(copy.get(), bytes.size(), copy, "a.npy");
}

// Makes a version 1.0 file of this dictionary, not padded.
std::string File(const std::string& dictionary, const std::string& data = "") {
  return "\x93NUMPY\x01\x00"s + static_cast<char>(dictionary.size()) + '\0' + dictionary + data;
}

std::string Dictionary(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

// Returns what numpy.save writes of numpy.arange(6, dtype="<f4").reshape(2, 3) / 2.
std::string SavedByNumpy() {
  return "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"s +
         std::string(58, ' ') + "\n"s +
         "\x00\x00\x00\x00\x00\x00\x00\x3f\x00\x00\x80\x3f"
         "\x00\x00\xc0\x3f\x00\x00\x00\x40\x00\x00\x20\x40"s;
}

TEST(Npy, ReadsWhatNumpyWrites) {
  const TempDir dir;
  WriteAll(dir.File("a.npy"), SavedByNumpy());
  const auto tensor = ReadNpy(dir.File("a.npy"));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->dtype(), DType::kF32);
  EXPECT_THAT(tensor->shape(), ElementsAre(2, 3));
  const float* values = tensor->data<float>();
  EXPECT_THAT(std::vector<float>(values, values + 6), ElementsAre(0, 0.5f, 1, 1.5f, 2, 2.5f));
}

TEST(Npy, WritesTheSameBytesAsNumpy) {
  const TempDir dir;
  const Tensor tensor = Tensor::FromFloats({2, 3}, {0, 0.5f, 1, 1.5f, 2, 2.5f});
  ASSERT_TRUE(WriteNpy(dir.File("a.npy"), tensor).ok());
  EXPECT_EQ(ReadAll(dir.File("a.npy")), SavedByNumpy());
  EXPECT_EQ(dir.FileCount(), 1u);
}

TEST(Npy, GivesBackEveryTypeAndShape) {
  const TempDir dir;
  for (DType dtype : {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                      DType::kF16, DType::kF32, DType::kF64}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{0, 2}, Shape{1, 2, 3}}) {
      auto [tensor, bytes] = Tensor::Allocate(dtype, shape);
      for (size_t at = 0; at < tensor.byte_size(); ++at) bytes[at] = static_cast<std::byte>(at + 1);
      ASSERT_TRUE(WriteNpy(dir.File("a"), tensor).ok());
      const auto read = ReadNpy(dir.File("a"));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->dtype(), dtype);
      EXPECT_EQ(read->shape(), shape);
      EXPECT_EQ(std::memcmp(read->bytes(), tensor.bytes(), tensor.byte_size()), 0);
    }
  }
}

TEST(Npy, WritesBFloat16AsF32) {
  const TempDir dir;
  const auto tensor = Convert(Tensor::FromFloats({2}, {1.5f, -2}), DType::kBF16);
  ASSERT_TRUE(WriteNpy(dir.File("a"), *tensor).ok());
  const auto read = ReadNpy(dir.File("a"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->dtype(), DType::kF32);
  EXPECT_EQ(read->data<float>()[1], -2);
}

TEST(Npy, ReadsVersionsTwoAndThree) {
  const std::string header = Dictionary("'|i1'", "(2,)");
  for (const char* version : {"\x02", "\x03"}) {
    const auto tensor = ParseFile("\x93NUMPY"s + version + '\0' + static_cast<char>(header.size()) +
                                  "\0\0\0"s + header + "\x01\xff");
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->data<int8_t>()[1], -1);
  }
}

TEST(Npy, ReadsKeysInAnyOrderQuotesAndSpacing) {
  const auto tensor =
      ParseFile(File("{\"shape\":(1,2) ,'fortran_order':False,\n'descr':'|u1'}", "ab"));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(tensor->shape(), ElementsAre(1, 2));
}

TEST(Npy, DoesNotFindAFileThatIsNotThere) {
  EXPECT_THAT(ReadNpy("/no/such.npy"), IsStatus(absl::StatusCode::kNotFound, "'/no/such.npy'"));
}

TEST(Npy, NamesTheFile) { EXPECT_THAT(ParseFile(""), IsInvalid(".npy file 'a.npy': ")); }

TEST(Npy, RefusesOtherFiles) {
  EXPECT_THAT(ParseFile(""), IsInvalid("magic"));
  EXPECT_THAT(ParseFile("PK\x03\x04...."), IsInvalid("magic, expected \\x93NUMPY at offset 0"));
  EXPECT_THAT(ParseFile("\x93NUMPY\x04\x00\x00\x00"s),
              IsInvalid("version 4.0 at offset 6, expected"));
  EXPECT_THAT(ParseFile("\x93NUMPY\x01\x01\x00\x00"s), IsInvalid("version 1.1"));
}

TEST(Npy, RefusesEveryTruncationAndWhatFollowsTheArray) {
  const std::string whole = SavedByNumpy();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ParseFile(whole.substr(0, size)), IsInvalid("expected")) << size;
  }
  EXPECT_THAT(ParseFile(whole + "x"),
              IsInvalid("data at offset 128 are 25 bytes, expected 24 of F32 [2, 3]"));
}

TEST(Npy, RefusesAHeaderLongerThanTheFile) {
  EXPECT_THAT(ParseFile("\x93NUMPY\x02\x00\xff\x00\x00\x00{}"s),
              IsInvalid("header length at offset 8 is 255, expected at most the 2 bytes"));
}

TEST(Npy, RefusesFortranOrder) {
  EXPECT_THAT(ParseFile(File("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }")),
              IsInvalid("fortran_order is True, expected False"));
  EXPECT_THAT(ParseFile(File("{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 3), }")),
              IsInvalid("expected fortran_order to be False"));
}

TEST(Npy, RefusesTypesThatItDoesNotHave) {
  for (const char* descr : {">f4", "|O", "<u2", "<c8", "<U3", "<f16", "<M8[ns]", ""}) {
    EXPECT_THAT(ParseFile(File(Dictionary("'"s + descr + "'", "(1,)"))),
                IsInvalid("descr is '"s + descr + "', expected one of |b1"));
  }
  EXPECT_THAT(ParseFile(File(Dictionary("[('a', '<f4')]", "(1,)"))),
              IsInvalid("no structured array"));
}

TEST(Npy, RefusesShapesThatCannotBe) {
  for (const char* shape : {"(-1,)", "(3)", "(,)", "(1,,2)", "(1 2)", "(1.5,)", "(a,)", "[1]", "1",
                            "(99999999999999999999,)", "(1", "(1,"}) {
    EXPECT_THAT(ParseFile(File(Dictionary("'<f4'", shape))), IsInvalid("the header holds '"))
        << shape;
  }
  EXPECT_THAT(ParseFile(File(Dictionary("'<f4'", "(4294967296, 4294967296)"))),
              IsInvalid("overflows"));
  std::string ones;
  for (int i = 0; i < 65; ++i) ones += "1,";
  EXPECT_THAT(ParseFile(File(Dictionary("'|u1'", "(" + ones + ")"), "x")), IsInvalid("64 axes"));
}

TEST(Npy, RefusesOtherDictionaries) {
  EXPECT_THAT(ParseFile(File("{}")), IsInvalid("a key of the header is missing"));
  EXPECT_THAT(ParseFile(File("{'descr': '|u1', 'descr': '|u1'}")),
              IsInvalid("'descr' stands there twice"));
  EXPECT_THAT(ParseFile(File("{'order': 'C'}")), IsInvalid("unknown key 'order'"));
  EXPECT_THAT(ParseFile(File("{'descr' '|u1'}")), IsInvalid("expected a key and ':'"));
  EXPECT_THAT(ParseFile(File("{'descr': '|u1' 'shape'")), IsInvalid("expected ',' or '}'"));
  EXPECT_THAT(ParseFile(File("{'descr")), IsInvalid("expected a key and ':'"));
  EXPECT_THAT(ParseFile(File("(1,)")), IsInvalid("holds '(1,)' at its byte 0, expected '{'"));
  EXPECT_THAT(ParseFile(File(Dictionary("'|u1'", "()") + "x", "1")), IsInvalid("expected the end"));
}

TEST(Npy, RefusesAHeaderThatIsTooLong) {
  const std::string begin = "\x93NUMPY\x02\x00"s;
  EXPECT_THAT(ParseFile(begin + "\x01\x00\x01\x00"s + std::string(65537, ' ')),
              IsInvalid("the header length at offset 8 is 65537, expected at most 65536"));
  EXPECT_THAT(ParseFile(begin + "\xff\xff\xff\xff"), IsInvalid("expected at most 65536"));
}

TEST(Npy, RefusesAFileThatIsLargerThanTheMemory) {
  const TempDir dir;
  WriteAll(dir.File("a.npy"), "");
  std::filesystem::resize_file(dir.File("a.npy"), uintmax_t{1} << 42);
  EXPECT_THAT(ReadNpy(dir.File("a.npy")), IsStatus(kExhaustedCode, "is of 4.0 TiB"));
}

TEST(Npy, RefusesToWriteMoreAxesThanNumpyHas) {
  const TempDir dir;
  EXPECT_THAT(WriteNpy(dir.File("a"), Tensor::FromFloats(Shape(65, 1), {1})),
              IsInvalid("has 65 axes, expected at most 64"));
}

}  // namespace
}  // namespace linserve

#include "http/framing/body_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "support/http_framing.h"

namespace linserve {
namespace {

using namespace std::string_literals;

constexpr std::string_view kHead = "POST / HTTP/1.1\r\nHost: x\r\n";
constexpr std::string_view kNext = "GET /next HTTP/1.1\r\nHost: x\r\n\r\n";

// Returns what is found in a request with this body and the next one, whatever pieces they come in.
FramedRequests Read(const std::string& field, const std::string& body) {
  const std::string text = std::string(kHead) + field + "\r\n\r\n" + body + std::string(kNext);
  FramedRequests whole(text, text.size());
  for (const size_t piece : {1, 2, 3, 7, 1000}) {
    const FramedRequests slow(text, piece);
    EXPECT_EQ(slow.whole().size(), whole.whole().size()) << text;
    EXPECT_EQ(slow.fault().has_value(), whole.fault().has_value()) << text;
  }
  return whole;
}

// Returns the body of the first of two requests.
std::string BodyOf(const std::string& field, const std::string& body) {
  const FramedRequests found = Read(field, body);
  EXPECT_FALSE(found.fault()) << body << ": " << found.fault()->text;
  EXPECT_EQ(found.whole().size(), 2U) << body;
  if (found.whole().size() < 2) return "";
  EXPECT_EQ(found.whole()[0].end + kNext.size(), found.whole()[1].end);
  EXPECT_EQ(found.whole()[1].head.target, "/next");
  return found.whole()[0].body;
}
std::string BodyOfChunks(const std::string& body) {
  return BodyOf("Transfer-Encoding: chunked", body);
}

int StatusOfChunks(const std::string& body) {
  const FramedRequests found = Read("Transfer-Encoding: chunked", body);
  EXPECT_TRUE(found.whole().empty()) << body;
  return found.fault() ? found.fault()->status : 0;
}

TEST(BodyReader, TakesAsManyBytesAsTheHeadSays) {
  EXPECT_EQ(BodyOf("Content-Length: 0", ""), "");
  EXPECT_EQ(BodyOf("Content-Length: 5", "hello"), "hello");
  EXPECT_EQ(BodyOf("Content-Length: 4", "\r\n\r\n"), "\r\n\r\n");
  EXPECT_EQ(BodyOf("A: b", ""), "");
}

TEST(BodyReader, JoinsChunks) {
  EXPECT_EQ(BodyOfChunks("0\r\n\r\n"), "");
  EXPECT_EQ(BodyOfChunks("5\r\nhello\r\n0\r\n\r\n"), "hello");
  EXPECT_EQ(BodyOfChunks("1\r\nh\r\n0004\r\n\r\n\r\n\r\n00\r\n\r\n"), "h\r\n\r\n");
  EXPECT_EQ(BodyOfChunks("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"),
            "01234567890123456789");
  EXPECT_EQ(BodyOfChunks(std::string(kLongestChunkLine - 1, '0') + "1\r\nh\r\n0\r\n\r\n"), "h");
}

TEST(BodyReader, OverlooksExtensions) {
  for (const char* extension :
       {";a", ";a=b", ";a;b=c", " ; a = b ;c", "\t;a", ";a=\"b c;d\\\"\\\\\"", ";a=\"\""}) {
    EXPECT_EQ(BodyOfChunks("5"s + extension + "\r\nhello\r\n0"s + extension + "\r\n\r\n"), "hello")
        << extension;
  }
  for (const char* extension : {" ", ";", "; ", ";=a", ";a=", ";a b", ";a=b c", ";a=\"b",
                                ";a=\"b\"c", ";a,b", ",a", ";a=\"\\\"", ";a=\x01", ";a=\"\x7f\""}) {
    EXPECT_EQ(StatusOfChunks("5"s + extension + "\r\nhello\r\n0\r\n\r\n"), 400) << extension;
    EXPECT_EQ(StatusOfChunks("0"s + extension + "\r\n\r\n"), 400) << extension;
  }
  EXPECT_EQ(
      StatusOfChunks("5;" + std::string(kLongestChunkLine - 1, 'a') + "\r\nhello\r\n0\r\n\r\n"),
      400);
}

TEST(BodyReader, TakesNoSizeButHexadecimalDigits) {
  for (const char* size : {"", "0x5", "+5", "-5", "-ff", " 5", "5g", "g", "5 5", "\t5", "5\t",
                           "10000000000000000", "fffffffffffffffff", "5.", "\xb2"}) {
    EXPECT_EQ(StatusOfChunks(size + "\r\nhello\r\n0\r\n\r\n"s), 400) << size;
  }
}

TEST(BodyReader, TakesNoLineEndButCrlf) {
  for (const char* body :
       {"5\nhello\r\n0\r\n\r\n", "5\rhello\r\n0\r\n\r\n", "5\r\rhello\r\n0\r\n\r\n",
        "5\n\r\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r0\r\n\r\n",
        "5\r\nhello0\r\n\r\n", "5\r\nhelloworld\r\n0\r\n\r\n", "5\r\nhello \r\n0\r\n\r\n",
        "5\r\nhello\r\n\r\n0\r\n\r\n", "5\r\nhell\r\n0\r\n\r\n", "5\r\nhello\r\n0\n\r\n",
        "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\r\n\r", "5;a\nhello\r\n0\r\n\r\n"}) {
    EXPECT_EQ(StatusOfChunks(body), 400) << body;
  }
}

TEST(BodyReader, DoesNotEndWithoutALastChunk) {
  EXPECT_EQ(StatusOfChunks("5\r\nhello\r\n"), 400);       // the next request is no chunk
  EXPECT_EQ(StatusOfChunks("5\r\nhello\r\n0\r\n"), 400);  // and no trailer
  EXPECT_EQ(StatusOfChunks("ffffffffffffffff\r\n"), 0);   // it goes on
}

TEST(BodyReader, OverlooksTrailersWithinTheBoundsOfAHead) {
  EXPECT_EQ(BodyOfChunks("5\r\nhello\r\n0\r\nA: b\r\nHost: y\r\nA:\r\n\r\n"), "hello");
  const auto status = [](const std::string& trailers) {
    return StatusOfChunks("0\r\n" + trailers + "\r\n");
  };
  for (const char* trailer : {"A", "A : b\r\n", " A: b\r\n", "A: b\n", "A: \x01\r\n", ": b\r\n",
                              "content-length: 0\r\n", "Transfer-Encoding: chunked\r\n"}) {
    EXPECT_EQ(status(trailer), 400) << trailer;
  }
  std::string many;
  for (size_t i = 0; i <= kMostFields; ++i) many += "A:b\r\n";
  EXPECT_EQ(status(many), 431);
  EXPECT_EQ(status("A: " + std::string(kLongestField - 2, 'b') + "\r\n"), 431);
  std::string long_ones;
  for (int i = 0; i < 9; ++i) long_ones += "A: " + std::string(kLongestField - 3, 'b') + "\r\n";
  EXPECT_EQ(status(long_ones), 431);
}

}  // namespace
}  // namespace linserve

#include "http/request_head.h"

#include <gtest/gtest.h>

namespace linserve {
namespace {

int StatusOf(const std::string& head) {
  const auto fault = FaultOf(head);
  return fault ? fault->status : 200;
}

// A head with these fields, each of which ends with CRLF.
std::string Post(const std::string& fields) { return "POST / HTTP/1.1\r\n" + fields + "\r\n"; }

TEST(RequestHead, EndsWithAnEmptyLine) {
  const std::string head = "GET / HTTP/1.1\r\nA: b\r\n\r\n";
  for (size_t size = 0; size < head.size(); ++size)
    EXPECT_EQ(HeadSize(head.substr(0, size), 0), 0U);
  for (size_t searched = 0; searched < head.size(); ++searched) {
    EXPECT_EQ(HeadSize(head + "GET", searched), head.size());
  }
}

TEST(RequestHead, IsOfABoundedLength) {
  const auto line = [](size_t size) { return "GET /" + std::string(size - 14, 'a') + " HTTP/1.1"; };
  EXPECT_EQ(StatusOf(line(kLongestRequestLine - 2) + "\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf(line(kLongestRequestLine + 1) + "\r\n\r\n"), 414);
  EXPECT_EQ(StatusOf(Post("A: " + std::string(kLongestLine - 3, 'a') + "\r\n")), 200);
  EXPECT_EQ(StatusOf(Post("A: " + std::string(kLongestLine, 'a') + "\r\n")), 431);
  std::string fields;
  while (fields.size() < kLongestHead) fields += "A: b\r\n";
  EXPECT_EQ(StatusOf(Post(fields)), 431);
  EXPECT_FALSE(TooLong("GET /"));
  EXPECT_EQ(TooLong(std::string(kLongestRequestLine + 1, 'a'))->status, 414);
  EXPECT_EQ(TooLong("GET / HTTP/1.1\r\n" + std::string(kLongestHead, 'a'))->status, 431);
}

TEST(RequestHead, IsOfLinesOfNamesAndValues) {
  for (const char* field :
       {"A: b\n", "A: b\rc\r\n", "A\r\n", ": b\r\n", "A : b\r\n", " a: b\r\n"}) {
    EXPECT_EQ(StatusOf(Post(field)), 400) << field;
  }
  EXPECT_EQ(StatusOf(Post(std::string("A: \0\r\n", 6))), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\n\r\n"), 400);
  EXPECT_EQ(StatusOf(Post("A:\r\nB: c:d\r\n")), 200);
}

TEST(RequestHead, SaysOnceHowLongTheBodyIs) {
  EXPECT_EQ(StatusOf(Post("Content-Length:5\r\n")), 200);
  EXPECT_EQ(StatusOf(Post("transfer-encoding: Chunked \r\n")), 200);
  for (const char* length : {"", "-1", "5,5", "0x5", "1234567890123456789"}) {
    EXPECT_EQ(StatusOf(Post("Content-Length: " + std::string(length) + "\r\n")), 400) << length;
  }
  const std::string five = "Content-Length: 5\r\n";
  EXPECT_EQ(StatusOf(Post(five + five)), 400);
  EXPECT_EQ(StatusOf(Post(five + "Transfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(StatusOf(Post("Transfer-Encoding: gzip, chunked\r\n")), 501);
}

TEST(RequestHead, HasABodyOnlyWhereItIsRead) {
  const auto with = [](const std::string& method, const std::string& field) {
    return StatusOf(method + " / HTTP/1.1\r\n" + field + "\r\n\r\n");
  };
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_EQ(with(method, "Content-Length: 5"), 200) << method;
  }
  EXPECT_EQ(with("DELETE", "Transfer-Encoding: chunked"), 400);
  for (const char* method : {"GET", "HEAD", "OPTIONS"}) {
    EXPECT_EQ(with(method, "Content-Length: 00"), 200) << method;
    EXPECT_EQ(with(method, "Content-Length: 5"), 400) << method;
    EXPECT_EQ(with(method, "Transfer-Encoding: chunked"), 400) << method;
  }
  for (const char* method : {"PRI", "TRACE", "CONNECT", "get", ""}) {
    EXPECT_EQ(with(method, "A: b"), 405) << method;
  }
}

TEST(RequestHead, CanBeHadWithoutAField) {
  EXPECT_EQ(WithoutField("GET / HTTP/1.1\r\nrange: a\r\nRanges: b\r\nRange:c\r\n\r\n", "Range"),
            "GET / HTTP/1.1\r\nRanges: b\r\n\r\n");
}

}  // namespace
}  // namespace linserve

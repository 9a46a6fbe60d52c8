#include "http/framing/request_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace linserve {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using namespace std::string_literals;

// Returns what is read of one head, which comes as a whole or byte by byte.
HeadReader Read(const std::string& text) {
  HeadReader whole;
  std::string_view left = text;
  const bool done = whole.Take(left);
  HeadReader slow;
  bool slowly_done = false;
  for (size_t i = 0; i < text.size() && !slowly_done; ++i) {
    std::string_view byte = std::string_view(text).substr(i, 1);
    slowly_done = slow.Take(byte);
  }
  EXPECT_EQ(done, slowly_done) << text;
  EXPECT_EQ(whole.fault().has_value(), slow.fault().has_value()) << text;
  EXPECT_TRUE(done) << text;
  return whole;
}

int StatusOf(const std::string& head) {
  const HeadReader reader = Read(head);
  return reader.fault() ? reader.fault()->status : 200;
}

// Returns the status of a request with this line.
int StatusOfLine(const std::string& line) { return StatusOf(line + "\r\nHost: x\r\n\r\n"); }

// A head with these fields, each of which ends with CRLF.
std::string Post(const std::string& fields) {
  return "POST / HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
}
int StatusOfField(const std::string& field) { return StatusOf(Post(field + "\r\n")); }

TEST(RequestHead, EndsWithAnEmptyLine) {
  const std::string head = "GET / HTTP/1.1\r\nHost: b\r\n\r\n";
  for (size_t size = 0; size < head.size(); ++size) {
    std::string_view some = std::string_view(head).substr(0, size);
    EXPECT_FALSE(HeadReader().Take(some));
    EXPECT_TRUE(some.empty());
  }
  const std::string more = head + "GET";
  std::string_view left = more;
  EXPECT_TRUE(HeadReader().Take(left));
  EXPECT_EQ(left, "GET");
}

TEST(RequestHead, MayComeAfterOneEmptyLine) {
  EXPECT_EQ(StatusOf("\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf("\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("\nGET / HTTP/1.1\r\nHost: b\r\n\r\n"), 400);
}

TEST(RequestHead, IsOfABoundedLength) {
  const auto line = [](size_t size) { return "GET /" + std::string(size - 14, 'a') + " HTTP/1.1"; };
  EXPECT_EQ(StatusOfLine(line(kLongestRequestLine)), 200);
  EXPECT_EQ(StatusOfLine(line(kLongestRequestLine + 1)), 414);
  EXPECT_EQ(StatusOf(std::string(kLongestRequestLine + 1, 'a')), 414);  // before it ends
  EXPECT_EQ(StatusOfField("A: " + std::string(kLongestField - 3, 'a')), 200);
  EXPECT_EQ(StatusOfField("A: " + std::string(kLongestField - 2, 'a')), 431);
  std::string fields;
  for (size_t i = 1; i < kMostFields; ++i) fields += "A: b\r\n";  // beside Host
  EXPECT_EQ(StatusOf(Post(fields)), 200);
  EXPECT_EQ(StatusOf(Post(fields + "A: b\r\n")), 431);
  std::string long_fields;
  while (long_fields.size() < kLongestFields)
    long_fields += "A: " + std::string(1000, 'b') + "\r\n";
  EXPECT_EQ(StatusOf(Post(long_fields)), 431);
}

TEST(RequestHead, BeginsWithALineOfThreeWords) {
  for (const std::string& line : std::vector<std::string>{"",
                                                          "GET",
                                                          "GET /",
                                                          "GET  / HTTP/1.1",
                                                          "GET /  HTTP/1.1",
                                                          "GET / HTTP/1.1 ",
                                                          " GET / HTTP/1.1",
                                                          "GET\t/\tHTTP/1.1",
                                                          "GET / x HTTP/1.1",
                                                          "G(T / HTTP/1.1",
                                                          "GET / HTTP/1",
                                                          "GET / HTTP/1.1x",
                                                          "GET / http/1.1",
                                                          "GET / HTTP/01.1",
                                                          "GET / HTTP/1.10",
                                                          "GET / HTTP/1,1",
                                                          "GET / HTTP/a.1",
                                                          "GET / XTTP/1.1",
                                                          "G\x80T / HTTP/1.1",
                                                          "GET / HTTP/1.1\0"s,
                                                          "\0GET / HTTP/1.1"s}) {
    EXPECT_EQ(StatusOfLine(line), 400) << line;
  }
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\rHost: x\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\n"), 400);  // before it ends
}

TEST(RequestHead, IsOfAVersionThatIsSpoken) {
  for (const char* version : {"0.9", "2.0", "9.9"}) {
    EXPECT_EQ(StatusOfLine("GET / HTTP/"s + version), 505) << version;
  }
  EXPECT_EQ(StatusOf("PRI * HTTP/2.0\r\n"), 505);
  for (const char* version : {"1.0", "1.1", "1.2", "1.9"}) {
    EXPECT_EQ(StatusOfLine("GET / HTTP/"s + version), 200) << version;
  }
}

TEST(RequestHead, IsOfAMethodThatIsKnown) {
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}) {
    EXPECT_EQ(StatusOfLine(method + " / HTTP/1.1"s), 200) << method;
  }
  for (const char* method : {"get", "GETS", "PRI", "M-SEARCH", "CONNECT"}) {
    EXPECT_EQ(StatusOfLine(method + " / HTTP/1.1"s), 501) << method;
  }
}

TEST(RequestHead, AsksForATargetInOriginOrAbsoluteForm) {
  for (const char* target : {"/", "//", "/a/b.c?d=e&f", "/%7e~!$&'()*+,;=:@-._?/?", "http://a",
                             "HTTP://a:80/b", "https://[::1]:?c", "http://a%20b/"}) {
    EXPECT_EQ(StatusOfLine("GET "s + target + " HTTP/1.1"), 200) << target;
  }
  for (const char* target : {"*",           "a",
                             "a:80",        "/#",
                             "/a#b",        "/\"",
                             "/<",          "/\\",
                             "/^",          "/`",
                             "/{",          "/|",
                             "/[",          "/\x80",
                             "/\x7f",       "/\x01",
                             "/%",          "/%4",
                             "/%4g",        "/%-1",
                             "/?%+1",       "http:/a",
                             "http:///b",   "http://:80/",
                             "http://a@b/", "http://[::1/",
                             "http://[x]/", "http://a:b/",
                             "ftp://a/",    "://a/",
                             "?a"}) {
    EXPECT_EQ(StatusOfLine("GET "s + target + " HTTP/1.1"), 400) << target;
  }
}

TEST(RequestHead, IsOfLinesOfNamesAndValues) {
  for (const std::string& field : std::vector<std::string>{
           "A", ": b", "A : b", "A\t: b", " a: b", "\ta: b", "A b: c", "A: b\r\n c", "(A): b",
           "A\x80: b", "A: b\0c"s, "A\0: b"s, "A: b\x01", "A: b\x7f", "A: b\x0b", "A: \x1b[0m"}) {
    EXPECT_EQ(StatusOfField(field), 400) << field;
  }
  for (const char* end : {"\n", "\r\r\n", "\n\r\n", "\rc\r\n"}) {
    EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nA: b"s + end + "\r\n"), 400) << end;
  }
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\n Host: x\r\n\r\n"), 400);
  HeadReader reader = Read(Post("A:\r\nb:\tc:d \t\r\nE: f\r\ne:\x80 g\r\n!#$%&'*+-.^_`|~: h\r\n"));
  ASSERT_FALSE(reader.fault());
  EXPECT_THAT(reader.head().headers,
              UnorderedElementsAre(Pair("host", "x"), Pair("a", ""), Pair("b", "c:d"),
                                   Pair("e", "f, \x80 g"), Pair("!#$%&'*+-.^_`|~", "h")));
}

TEST(RequestHead, NamesOneHost) {
  const auto status = [](const std::string& fields, const std::string& version = "1.1") {
    return StatusOf("GET http://a/ HTTP/" + version + "\r\n" + fields + "\r\n");
  };
  EXPECT_EQ(status(""), 400);
  EXPECT_EQ(status("", "1.0"), 200);
  for (const char* host :
       {"", "a", "a:", "a:80", "127.0.0.1:8080", "[::1]", "[::1]:80", "a_b", "%20"}) {
    EXPECT_EQ(status("Host: "s + host + "\r\n"), 200) << host;
  }
  for (const char* host : {"a b", "a, b", "a/b", "a@b", "a:b", "a:80:80", "[::1", "[a]", "[::1]a",
                           "::1", "\"a\"", "a\x80", "%2"}) {
    EXPECT_EQ(status("Host: "s + host + "\r\n"), 400) << host;
  }
  for (const char* version : {"1.0", "1.1"}) {
    EXPECT_EQ(status("Host: a\r\nhost: a\r\n", version), 400);
    EXPECT_EQ(status("Host:\r\nHost:\r\n", version), 400);
  }
}

TEST(RequestHead, SaysHowLongTheBodyIs) {
  for (const auto& [value, length] :
       std::vector<std::pair<std::string, uint64_t>>{{"0", 0},
                                                     {"5", 5},
                                                     {"\t5 ", 5},
                                                     {"0000000000000000000000005", 5},
                                                     {"18446744073709551615", UINT64_MAX}}) {
    HeadReader reader = Read(Post("Content-Length:" + value + "\r\n"));
    ASSERT_FALSE(reader.fault()) << value;
    EXPECT_EQ(reader.head().length, length);
    EXPECT_FALSE(reader.head().chunked);
  }
  for (const char* value : {"", "-1", "+5", "5,5", "5, 5", "5;", "0x5", "5a", "a", "5.0", "5 5",
                            "18446744073709551616", "\xc2\xb2"}) {
    EXPECT_EQ(StatusOfField("Content-Length: "s + value), 400) << value;
  }
  EXPECT_EQ(StatusOfField("Content-Length: 5\r\ncontent-length: 5"), 400);
  EXPECT_EQ(StatusOfField("Content-Length: 5\r\nTransfer-Encoding: chunked"), 400);
}

TEST(RequestHead, TakesBodiesInChunks) {
  for (const char* value : {"chunked", "Chunked ", "\tCHUNKED", ",chunked", "chunked , ,",
                            "\r\nTransfer-Encoding: chunked"}) {
    HeadReader reader = Read(Post("Transfer-Encoding: "s + value + "\r\n"));
    ASSERT_FALSE(reader.fault()) << value;
    EXPECT_TRUE(reader.head().chunked) << value;
  }
  for (const char* value : {"", ",", "identity", "gzip", "chunked, gzip", "chunked, identity",
                            "chunked, chunked", "xchunked", "chunked;a=b", "\"chunked\"",
                            "chunked chunked", "chunked\r\nTransfer-Encoding: chunked"}) {
    EXPECT_EQ(StatusOfField("Transfer-Encoding: "s + value), 400) << value;
  }
  for (const char* value :
       {"gzip, chunked", "identity, chunked", "gzip\r\ntransfer-encoding: chunked"}) {
    EXPECT_EQ(StatusOfField("Transfer-Encoding: "s + value), 501) << value;
  }
  EXPECT_EQ(StatusOf("POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(RequestHead, SaysWhetherMoreFollow) {
  const auto last = [](const std::string& version, const std::string& field) {
    HeadReader reader = Read("GET / HTTP/" + version + "\r\nHost: x\r\n" + field + "\r\n");
    EXPECT_FALSE(reader.fault()) << field;
    return reader.head().last;
  };
  EXPECT_FALSE(last("1.1", ""));
  EXPECT_FALSE(last("1.1", "Connection: keep-alive, upgrade\r\nUpgrade: h2c\r\n"));
  EXPECT_TRUE(last("1.1", "Connection: close\r\n"));
  EXPECT_TRUE(last("1.1", "Connection: keep-alive\r\nconnection: x,Close\r\n"));
  EXPECT_TRUE(last("1.0", ""));
  EXPECT_TRUE(last("1.0", "Connection: keep-alive\r\n"));
}

TEST(RequestHead, MayExpectLeaveToSendItsBody) {
  const auto expects = [](const std::string& version, const std::string& value) {
    HeadReader reader =
        Read("POST / HTTP/" + version + "\r\nHost: x\r\nExpect: " + value + "\r\n\r\n");
    EXPECT_FALSE(reader.fault()) << value;
    return reader.head().expects_continue;
  };
  EXPECT_TRUE(expects("1.1", "100-continue"));
  EXPECT_TRUE(expects("1.1", "100-Continue"));
  EXPECT_FALSE(expects("1.1", ""));
  EXPECT_FALSE(expects("1.0", "100-continue"));
  EXPECT_EQ(StatusOfField("Expect: 100-continue, more"), 417);
  EXPECT_EQ(StatusOfField("Expect: 200-ok"), 417);
}

}  // namespace
}  // namespace linserve

#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "core/files/descriptor.h"

namespace linserve {

// Is a connection to a port of this machine on which a caller misbehaves.
class RawConnection {
 public:
  explicit RawConnection(int port) : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval minute{60, 0};
    ::setsockopt(descriptor_.get(), SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
    const auto* any = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(descriptor_.get(), any, sizeof(address)), 0);
  }

  // Sends the text; false once the server has hung up.
  bool Send(const std::string& text) {
    return ::send(descriptor_.get(), text.data(), text.size(), MSG_NOSIGNAL) >= 0;
  }

  // Reads all that the server sends until it hangs up.
  std::string ReadAll() {
    std::string text;
    std::array<char, 4096> piece{};
    while (true) {
      const ssize_t size = ::recv(descriptor_.get(), piece.data(), piece.size(), 0);
      EXPECT_FALSE(size < 0 && errno == EAGAIN) << "the server does not hang up";
      if (size <= 0) return text;
      text.append(piece.data(), static_cast<size_t>(size));
    }
  }

  // What comes at once.
  std::string Read() {
    std::string text(4096, '\0');
    const ssize_t size = ::recv(descriptor_.get(), text.data(), text.size(), 0);
    EXPECT_GE(size, 0) << "the server does not answer";
    text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }

  // Whether something comes, or the server hangs up, within the time.
  bool Answers(std::chrono::milliseconds within) {
    pollfd waiting{descriptor_.get(), POLLIN, 0};
    return ::poll(&waiting, 1, static_cast<int>(within.count())) > 0;
  }

  // Sends no more, as one who has asked all that it wants to.
  void HalfClose() { ::shutdown(descriptor_.get(), SHUT_WR); }

  void Close() { descriptor_.Close(); }

 private:
  Descriptor descriptor_;
};

}  // namespace linserve

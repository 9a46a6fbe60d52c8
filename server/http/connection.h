#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "core/files/descriptor.h"
#include "core/threads/clock.h"

// These are OpenSSL's own, so that its headers stay in the .cc files.
struct ssl_ctx_st;
struct ssl_st;

namespace linserve {

// Is a connection that was accepted, in plain text or under TLS, for one thread at a time. Nothing
// waits beyond a deadline.
class Connection {
 public:
  // Takes over a descriptor that does not block.
  explicit Connection(Descriptor descriptor);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Speaks TLS from now on, whose handshake is made by the first reads. False for want of memory.
  bool Secure(ssl_ctx_st& context);
  // Returns whether the handshake has not ended.
  bool handshaking() const;

  // Holds what came of an attempt: as of Read(), or what it has to wait for, POLLIN or POLLOUT.
  struct Attempt {
    ssize_t result;
    short wanted;  // 0: there is a result
  };
  // Waits until the socket is ready for that, POLLIN or POLLOUT; false at the deadline.
  bool Ready(short events, TimePoint deadline) const;

  // Reads what is there, or writes what there is room for, without waiting.
  Attempt TryRead(char* to, size_t most);
  Attempt TryWrite(const char* from, size_t size);

  // Says that nothing follows. What comes should be overlooked until the other side ends, too:
  // closed with something unread, a connection is reset, and the last answer perhaps lost.
  void End();
  // Reads what is there, perhaps encrypted, and forgets it.
  Attempt TryOverlook();

  int descriptor() const { return descriptor_.get(); }
  const ssl_st* tls() const { return tls_.get(); }  // null: plain text

 private:
  static Attempt OfSocket(ssize_t result, short wanted);
  Attempt OfTls(int result) const;

  Descriptor descriptor_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
};

}  // namespace linserve

// io_uring for a packet thread. Multishot receives put datagrams into buffers that the kernel chooses, and one system
// call sends all packets of a turn. It calls the kernel directly, because liburing would save little code.
#pragma once
#include <linux/io_uring.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace media {

/** One ring with its buffers. A single thread creates, uses and destroys it (IORING_SETUP_SINGLE_ISSUER). */
class Uring {
 public:
  /** Opens a ring with room for `sockets` attached sockets. Null when the kernel or a sandbox forbids io_uring. */
  static std::unique_ptr<Uring> open(unsigned sockets);
  ~Uring();
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;

  /** Stores a descriptor at a place of the table; -1 removes it. False when the kernel refuses. */
  bool attach(unsigned place, int fd);
  unsigned places() const { return places_; }

  // Requests. They start at the next submit. The completion returns `tag`.
  void receive(unsigned place, uint64_t tag);
  /** Sends a datagram: from place when it lies in the ring's buffers, otherwise from a copy. Only a failure causes a
   * completion. */
  void send(unsigned place, const uint8_t* p, size_t n, uint64_t tag);
  /** Lets `send` use these bytes in place. The caller must not change them before the next submit. */
  void trust(const uint8_t* begin, const uint8_t* end) {
    trusted_begin_ = begin;
    trusted_end_ = end;
  }
  void poll_once(int fd, uint64_t tag);
  /** Cancels a receive. Packets that it has already received are still delivered. */
  void cancel(uint64_t tag);

  struct Completion {
    uint64_t tag;
    int result;
    bool more;        // the receive continues
    uint8_t* packet;  // null without a packet; valid until give_back
  };
  /** Reports whether a receive that ended with this result cannot work on this kernel or in this sandbox. */
  static bool unusable(int result);
  /** Submits the requests, lets the kernel process received packets, and waits at most `wait_us` for a completion.
   * Costs nothing when there is nothing to do. */
  void submit(uint64_t wait_us = 0);
  bool next(Completion& out);
  /** Returns the tag of the completion after `n` others, for prefetching its stream. Returns 0 when there is none. */
  uint64_t ahead(unsigned n) const {
    const unsigned at = *cq_head_ + n;
    return static_cast<int>(__atomic_load_n(cq_tail_, __ATOMIC_ACQUIRE) - at) > 0 ? completions_[at & cq_mask_].user_data
                                                                                  : 0;
  }
  /** Reports whether another submit would bring more completions. */
  bool unfinished() const {
    return __atomic_load_n(sq_flags_, __ATOMIC_ACQUIRE) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
  }
  /** Returns to the kernel the buffers that next() has taken since the last call. Submit sends from them first. */
  void give_back();

  /** An odd number of cache lines. A power of two would map the headers of all packets to a few cache sets. */
  static constexpr size_t kBufferSize = 27 * 64, kBuffers = 512;

 private:
  Uring() = default;
  bool set_up(unsigned sockets);
  bool full() const { return tail_ - __atomic_load_n(sq_head_, __ATOMIC_ACQUIRE) > sq_mask_; }
  io_uring_sqe* entry();
  void enter(unsigned to_submit, uint64_t wait_us);

  int fd_ = -1;
  unsigned places_ = 0;
  uint8_t* rings_ = nullptr;
  size_t rings_size_ = 0;
  io_uring_sqe* entries_ = nullptr;
  size_t entries_size_ = 0;
  unsigned *sq_head_ = nullptr, *sq_tail_ = nullptr, *sq_flags_ = nullptr;
  unsigned *cq_head_ = nullptr, *cq_tail_ = nullptr;
  unsigned sq_mask_ = 0, cq_mask_ = 0, tail_ = 0;
  io_uring_cqe* completions_ = nullptr;
  uint8_t* buffers_ = nullptr;  // the receive buffers, followed by those for copies
  io_uring_buf_ring* buffer_ring_ = nullptr;
  uint16_t buffer_tail_ = 0;
  uint16_t taken_[kBuffers];
  unsigned taken_count_ = 0;
  unsigned copies_ = 0;
  const uint8_t *trusted_begin_ = nullptr, *trusted_end_ = nullptr;
};

}  // namespace media

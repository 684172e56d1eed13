// io_uring for a packet thread. Multishot receives bring datagrams into buffers that the kernel picks, and one system
// call sends everything that leaves in a turn. liburing would save little, so this speaks to the kernel directly.
#pragma once
#include <linux/io_uring.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace media {

/** One ring with its buffers. One thread makes, uses and destroys it (IORING_SETUP_SINGLE_ISSUER). */
class Uring {
 public:
  /** Null when the kernel or a sandbox does not allow io_uring. `sockets`: how many can be attached at once. */
  static std::unique_ptr<Uring> open(unsigned sockets);
  ~Uring();
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;

  /** Puts a descriptor into a place of the table; -1 takes it out. False when the kernel refuses. */
  bool attach(unsigned place, int fd);
  unsigned places() const { return places_; }

  // Requests. They start with the next submit. `tag` comes back with the completion.
  void receive(unsigned place, uint64_t tag);
  /** Sends bytes of our own buffers from where they are, and a copy of others. Only a failure has a completion. */
  void send(unsigned place, const uint8_t* p, size_t n, uint64_t tag);
  /** Trusts the caller to leave these bytes alone until the next submit: they too are sent from where they are. */
  void trust(const uint8_t* begin, const uint8_t* end) {
    trusted_begin_ = begin;
    trusted_end_ = end;
  }
  void poll_once(int fd, uint64_t tag);
  /** Ends a receive. Packets that it has received already still come. */
  void cancel(uint64_t tag);

  struct Completion {
    uint64_t tag;
    int result;
    bool more;        // the receive goes on
    uint8_t* packet;  // null when none came; valid until give_back
  };
  /** Whether a receive that ended with this result would always end so: this kernel or sandbox cannot do it. */
  static bool unusable(int result);
  /** Hands the requests over, lets the kernel process what came in, and waits for a completion for `wait_us` at most.
   * Costs nothing when there is nothing to do. */
  void submit(uint64_t wait_us = 0);
  bool next(Completion& out);
  /** The tag of the completion after `n` others, so that its stream can be fetched ahead. 0 when there is none. */
  uint64_t ahead(unsigned n) const {
    const unsigned at = *cq_head_ + n;
    return static_cast<int>(__atomic_load_n(cq_tail_, __ATOMIC_ACQUIRE) - at) > 0 ? completions_[at & cq_mask_].user_data
                                                                                  : 0;
  }
  /** Whether the kernel processed only a part: another submit brings more. */
  bool unfinished() const {
    return __atomic_load_n(sq_flags_, __ATOMIC_ACQUIRE) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
  }
  /** Gives the buffers that next() took since the last call back to the kernel. Submit what they hold before. */
  void give_back();

  /** An odd number of cache lines: a power of two would put the headers of all packets into a few sets of the caches.
   * */
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
  uint8_t* buffers_ = nullptr;  // the kernel's ring of buffers, the buffers, and then those for copies
  io_uring_buf_ring* buffer_ring_ = nullptr;
  uint16_t buffer_tail_ = 0;
  uint16_t taken_[kBuffers];
  unsigned taken_count_ = 0;
  unsigned copies_ = 0;
  const uint8_t *trusted_begin_ = nullptr, *trusted_end_ = nullptr;
};

}  // namespace media

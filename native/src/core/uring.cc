#include "uring.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "stream.h"

namespace media {

namespace {
constexpr unsigned kEntries = 256, kCompletions = 8192, kCopies = 128;
constexpr uint16_t kGroup = 1;
constexpr size_t kRingBytes = Uring::kBuffers * sizeof(io_uring_buf);
constexpr size_t kPoolBytes = kRingBytes + (Uring::kBuffers + kCopies) * Uring::kBufferSize;

template <typename T>
T load(const T* p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <typename T>
void store(T* p, T v) {
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
long control(int fd, unsigned what, void* arg, unsigned n) {
  return syscall(SYS_io_uring_register, fd, what, arg, n);
}
}  // namespace

std::unique_ptr<Uring> Uring::open(unsigned sockets) {
  std::unique_ptr<Uring> ring(new Uring);
  return ring->set_up(sockets) ? std::move(ring) : nullptr;
}

bool Uring::set_up(unsigned sockets) {
  io_uring_params p{};
  // The kernel processes completions only when we ask, on our thread, without interrupting it (Linux 6.1).
  p.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE | IORING_SETUP_TASKRUN_FLAG |
            IORING_SETUP_SUBMIT_ALL;
  p.cq_entries = kCompletions;
  fd_ = static_cast<int>(syscall(SYS_io_uring_setup, kEntries, &p));
  if (fd_ < 0) return false;
  const unsigned needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP;
  if ((p.features & needed) != needed) return false;

  rings_size_ = std::max<size_t>(p.sq_off.array + p.sq_entries * sizeof(unsigned),
                                 p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe));
  void* rings = mmap(nullptr, rings_size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, IORING_OFF_SQ_RING);
  if (rings == MAP_FAILED) return false;
  rings_ = static_cast<uint8_t*>(rings);
  entries_size_ = p.sq_entries * sizeof(io_uring_sqe);
  void* entries = mmap(nullptr, entries_size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, IORING_OFF_SQES);
  if (entries == MAP_FAILED) return false;
  entries_ = static_cast<io_uring_sqe*>(entries);
  const auto at = [&](unsigned offset) { return reinterpret_cast<unsigned*>(rings_ + offset); };
  sq_head_ = at(p.sq_off.head);
  sq_tail_ = at(p.sq_off.tail);
  sq_flags_ = at(p.sq_off.flags);
  sq_mask_ = *at(p.sq_off.ring_mask);
  cq_head_ = at(p.cq_off.head);
  cq_tail_ = at(p.cq_off.tail);
  cq_mask_ = *at(p.cq_off.ring_mask);
  completions_ = reinterpret_cast<io_uring_cqe*>(rings_ + p.cq_off.cqes);
  unsigned* order = at(p.sq_off.array);
  for (unsigned i = 0; i < p.sq_entries; ++i) order[i] = i;

  void* pool = mmap(nullptr, kPoolBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pool == MAP_FAILED) return false;
  buffer_ring_ = static_cast<io_uring_buf_ring*>(pool);
  buffers_ = static_cast<uint8_t*>(pool) + kRingBytes;
  io_uring_buf_reg reg{};
  reg.ring_addr = reinterpret_cast<uint64_t>(pool);
  reg.ring_entries = kBuffers;
  reg.bgid = kGroup;
  if (control(fd_, IORING_REGISTER_PBUF_RING, &reg, 1) != 0) return false;
  for (unsigned i = 0; i < kBuffers; ++i) taken_[i] = static_cast<uint16_t>(i);
  taken_count_ = kBuffers;
  give_back();

  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  places_ = static_cast<unsigned>(std::min<rlim_t>(sockets, files.rlim_cur));
  io_uring_rsrc_register table{};
  table.nr = places_;
  table.flags = IORING_RSRC_REGISTER_SPARSE;
  return control(fd_, IORING_REGISTER_FILES2, &table, sizeof table) == 0;
}

Uring::~Uring() {
  if (fd_ >= 0) ::close(fd_);
  if (rings_) munmap(rings_, rings_size_);
  if (entries_) munmap(entries_, entries_size_);
  if (buffer_ring_) munmap(buffer_ring_, kPoolBytes);
}

bool Uring::attach(unsigned place, int fd) {
  io_uring_rsrc_update update{};
  update.offset = place;
  update.data = reinterpret_cast<uint64_t>(&fd);
  return control(fd_, IORING_REGISTER_FILES_UPDATE, &update, 1) == 1;
}

io_uring_sqe* Uring::entry() {
  if (full()) submit();
  io_uring_sqe* e = &entries_[tail_++ & sq_mask_];
  std::memset(e, 0, sizeof *e);
  return e;
}

void Uring::receive(unsigned place, uint64_t tag) {
  io_uring_sqe* e = entry();
  e->opcode = IORING_OP_RECV;
  e->flags = IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
  e->ioprio = IORING_RECV_MULTISHOT;
  e->fd = static_cast<int>(place);
  e->buf_group = kGroup;
  e->user_data = tag;
}

void Uring::send(unsigned place, const uint8_t* p, size_t n, uint64_t tag) {
  // Submit before copying. A submit after the copy would let the next copy overwrite this one.
  if (full()) submit();
  const bool stays = (p >= buffers_ && p < buffers_ + kBuffers * kBufferSize) ||
                     (p >= trusted_begin_ && p < trusted_end_);
  if (!stays) {
    if (copies_ == kCopies) submit();
    uint8_t* copy = buffers_ + (kBuffers + copies_++) * kBufferSize;
    std::memcpy(copy, p, n);
    p = copy;
  }
  io_uring_sqe* e = entry();
  e->opcode = IORING_OP_SEND;
  e->flags = IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS;
  e->fd = static_cast<int>(place);
  e->addr = reinterpret_cast<uint64_t>(p);
  e->len = static_cast<uint32_t>(n);
  e->msg_flags = MSG_DONTWAIT;
  e->user_data = tag;
}

void Uring::poll_once(int fd, uint64_t tag) {
  io_uring_sqe* e = entry();
  e->opcode = IORING_OP_POLL_ADD;
  e->fd = fd;
  e->poll32_events = POLLIN;
  e->user_data = tag;
}

void Uring::cancel(uint64_t tag) {
  submit();  // otherwise a queued receive would start after its cancellation
  io_uring_sync_cancel_reg reg{};
  reg.addr = tag;
  reg.fd = -1;
  reg.timeout.tv_nsec = 20'000'000;  // keeps the packet thread's wait short; the tag identifies a late completion
  control(fd_, IORING_REGISTER_SYNC_CANCEL, &reg, 1);
}

void Uring::enter(unsigned to_submit, uint64_t wait_us) {
  __kernel_timespec limit{static_cast<int64_t>(wait_us / 1'000'000), static_cast<long long>(wait_us % 1'000'000 * 1000)};
  io_uring_getevents_arg arg{};
  arg.ts = reinterpret_cast<uint64_t>(&limit);
  syscall(SYS_io_uring_enter, fd_, to_submit, wait_us ? 1 : 0, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg,
          sizeof arg);
}

void Uring::submit(uint64_t wait_us) {
  const unsigned waiting = tail_ - load(sq_head_);
  if (waiting == 0 && wait_us == 0 && !unfinished()) return;
  store(sq_tail_, tail_);
  enter(waiting, wait_us);
  copies_ = 0;
  if (load(sq_head_) == tail_) return;
  // The submit was interrupted or ran out of memory. Drop the sends, as a full socket would: their bytes are about to
  // be overwritten. Keep the other requests in the queue.
  unsigned kept = load(sq_head_);
  for (unsigned i = kept; i != tail_; ++i) {
    if (entries_[i & sq_mask_].opcode == IORING_OP_SEND) continue;
    if (i != kept) entries_[kept & sq_mask_] = entries_[i & sq_mask_];
    ++kept;
  }
  tail_ = kept;
  store(sq_tail_, tail_);
}

bool Uring::next(Completion& out) {
  const unsigned head = *cq_head_;
  if (head == load(cq_tail_)) return false;
  const io_uring_cqe& c = completions_[head & cq_mask_];
  out.tag = c.user_data;
  out.result = c.res;
  out.more = c.flags & IORING_CQE_F_MORE;
  out.packet = nullptr;
  if (c.flags & IORING_CQE_F_BUFFER) {
    const auto id = static_cast<uint16_t>(c.flags >> IORING_CQE_BUFFER_SHIFT);
    out.packet = buffers_ + id * kBufferSize;
    taken_[taken_count_++] = id;
  }
  store(cq_head_, head + 1);
  return true;
}

bool Uring::unusable(int result) {
  return result == -EINVAL || result == -EOPNOTSUPP || result == -EBADF || result == -ENOSYS || result == -EPERM;
}

void Uring::give_back() {
  for (unsigned i = 0; i < taken_count_; ++i) {
    // Do not use the member `bufs`: in C++ the header's flexible array begins one byte late.
    io_uring_buf& b = reinterpret_cast<io_uring_buf*>(buffer_ring_)[(buffer_tail_ + i) & (kBuffers - 1)];
    b.addr = reinterpret_cast<uint64_t>(buffers_ + taken_[i] * kBufferSize);
    b.len = static_cast<uint32_t>(kBufferSize - kTailRoom);
    b.bid = taken_[i];
  }
  buffer_tail_ = static_cast<uint16_t>(buffer_tail_ + taken_count_);
  store(&buffer_ring_->tail, buffer_tail_);
  taken_count_ = 0;
}

}  // namespace media

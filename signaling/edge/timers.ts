import type { Clock, Timer } from '../../core/runtime/clock.ts'

// One timer wheel for all SIP timers. A call starts about a dozen and cancels nearly all of them, so a start or a
// cancel costs only a list operation. The resolution, of 10 ms or a 32nd of the delay, is ample for RFC 3261.

const TICK_MS = 10
const SLOTS = 1024
/**
 * How late a timer may be, as a part of its delay. Each call starts timers of 32 s that only forget something; without
 * this a busy process would wake a hundred times a second for one or two of them at a time.
 */
const SLACK = 1 / 32
/** The coarsest step, a power of two, in ticks. */
const MOST_TICKS = 32

/** A started timer of a wheel. */
export interface WheelTimer {
  cancel(): void
}

class Entry implements WheelTimer {
  previous: Entry | undefined
  next: Entry | undefined
  wheel: TimerWheel | undefined
  readonly slot: number
  readonly due: number
  readonly run: () => void

  constructor(wheel: TimerWheel, slot: number, due: number, run: () => void) {
    this.wheel = wheel
    this.slot = slot
    this.due = due
    this.run = run
  }

  cancel(): void {
    this.wheel?.remove(this)
  }
}

/** Starts, counts and fires timers. It sleeps until the first of them is due and never keeps a process alive. */
export class TimerWheel {
  readonly #clock: Clock
  readonly #onError: (error: unknown) => void
  readonly #slots: (Entry | undefined)[] = new Array(SLOTS).fill(undefined)
  #count = 0
  #done_tick = 0
  #sleeper: Timer | undefined
  /** The tick at which the sleeper wakes. */
  #wakes_at = 0

  constructor(clock: Clock, on_error: (error: unknown) => void) {
    this.#clock = clock
    this.#onError = on_error
  }

  get count(): number {
    return this.#count
  }

  /** @throws RangeError for a delay that ends at no time: the search for the next timer would never end. */
  after(delay_ms: number, run: () => void): WheelTimer {
    if (!Number.isFinite(delay_ms)) throw new RangeError(`a timer of ${delay_ms} ms`)
    const now_ms = this.#clock.monotonic_ms()
    if (this.#count === 0) this.#done_tick = Math.floor(now_ms / TICK_MS)
    const step = stepOf(delay_ms)
    const due = Math.max(this.#done_tick + 1, Math.ceil((now_ms + Math.max(0, delay_ms)) / (step * TICK_MS)) * step)
    const slot = due % SLOTS
    const entry = new Entry(this, slot, due, run)
    const head = this.#slots[slot]
    entry.next = head
    if (head) head.previous = entry
    this.#slots[slot] = entry
    this.#count++
    if (this.#sleeper === undefined || due < this.#wakes_at) this.#sleepUntil(due)
    return entry
  }

  /**
   * Like `after`, but at a time of the monotonic clock. Repeating timers count from the time when they were due, so a
   * busy process adds no drift.
   */
  at(due_ms: number, run: () => void): WheelTimer {
    return this.after(due_ms - this.#clock.monotonic_ms(), run)
  }

  remove(entry: Entry): void {
    if (!entry.wheel) return
    entry.wheel = undefined
    if (entry.previous) entry.previous.next = entry.next
    else this.#slots[entry.slot] = entry.next
    if (entry.next) entry.next.previous = entry.previous
    entry.previous = undefined
    this.#count--
  }

  /** Cancels all timers. */
  close(): void {
    for (let slot = 0; slot < SLOTS; slot++) {
      let entry = this.#slots[slot]
      this.#slots[slot] = undefined
      while (entry) {
        entry.wheel = undefined
        entry = entry.next
      }
    }
    this.#count = 0
    this.#sleeper?.cancel()
    this.#sleeper = undefined
  }

  #tick(): void {
    this.#sleeper = undefined
    const now_tick = Math.floor(this.#clock.monotonic_ms() / TICK_MS)
    // After a long pause every slot is visited once instead of every tick.
    const first = Math.max(this.#done_tick + 1, now_tick - SLOTS + 1)
    this.#done_tick = Math.max(now_tick, this.#done_tick)
    for (let tick = first; tick <= now_tick && this.#count > 0; tick++) this.#fire(tick % SLOTS, now_tick)
    if (this.#count > 0) this.#sleepUntil(this.#nextTick())
  }

  /** The next tick whose slot holds a timer, which may be due in a later round. */
  #nextTick(): number {
    let tick = this.#done_tick + 1
    while (this.#slots[tick % SLOTS] === undefined) tick++
    return tick
  }

  #sleepUntil(tick: number): void {
    this.#sleeper?.cancel()
    this.#wakes_at = tick
    const delay_ms = tick * TICK_MS - this.#clock.monotonic_ms()
    // One more, because timers of Node.js count whole milliseconds and may be one early: then it would wake twice.
    this.#sleeper = this.#clock.after(Math.max(0, Math.ceil(delay_ms)) + 1, () => this.#tick())
  }

  #fire(slot: number, now_tick: number): void {
    let due: Entry[] | undefined
    for (let entry = this.#slots[slot]; entry; entry = entry.next) {
      if (entry.due > now_tick) continue
      due ??= []
      due.push(entry)
    }
    if (!due) return
    // New entries are at the front of a list; older ones fire first.
    for (let i = due.length - 1; i >= 0; i--) {
      const entry = due[i]
      if (!entry?.wheel) continue
      this.remove(entry)
      try {
        entry.run()
      } catch (error) {
        this.#onError(error)
      }
    }
  }
}

/** The number of ticks, a power of two, at whose multiples a timer of this delay fires. */
function stepOf(delay_ms: number): number {
  const ticks = Math.min(MOST_TICKS, (delay_ms * SLACK) / TICK_MS)
  return ticks < 2 ? 1 : 1 << (31 - Math.clz32(ticks))
}

/** The base values of RFC 3261 §17.1.1.1 in milliseconds. Tests scale them down. */
export interface TimerScale {
  readonly t1: number
  readonly t2: number
  readonly t4: number
}

export const DEFAULT_TIMER_SCALE: TimerScale = { t1: 500, t2: 4000, t4: 5000 }

// Which group of test files starts next. Calls must be answered in time, so files with live calls start only while the
// machine has room for them; files that only work give way to them and fill what they leave.
import { cpus } from 'node:os'

/** Even groups that only wait need memory, ports and moments of a core. */
const MOST_PER_CORE = 3
/** A group that keeps this part of a core busy waits for no peer or timer. */
const WORKING_LOAD = 0.75
/** Live files at once, by core: each has bursts in which it needs one for itself. */
const MOST_LIVE_PER_CORE = 2
/** More live files than cores start while the part of the machine that they could have is at least this. */
const ROOM = 0.3
/** A group loads its modules and starts its platform for about this long. The next one of those starts after it. */
const STARTING_MS = 4000
/** The machine is measured over this time. */
const WINDOW_MS = 3000

/** Files whose peers, timers and media run in real time. */
const LIVE = /^test\/(flows|adversary|conformance\/(admission|edge|sip)|unit\/(media|signaling))\//

/** Whether a group only works, by its expected times. One without expected times only works if none of it is live. */
export const givesWay = ({ files, expected_ms, expected_cpu_ms = expected_ms }) =>
  !(expected_cpu_ms < WORKING_LOAD * expected_ms) && !files.some(file => LIVE.test(file))

/**
 * Returns the first of the waiting groups, which are sorted, that may start beside the running ones; undefined when
 * none may. `room` is the part of the machine that live calls could have; one live file on each core always fits. One
 * group that gives way runs beside live files, and one on each core without them.
 */
export function nextGroup(waiting, running, { cores, room, now = Date.now() }) {
  if (running.length >= cores * MOST_PER_CORE) return undefined
  const live = running.filter(group => !givesWay(group))
  const working = running.length - live.length
  const starting = live.some(group => now < group.started_at + STARTING_MS)
  const fits = live.length < cores || (live.length < cores * MOST_LIVE_PER_CORE && room >= ROOM && !starting)
  const most_working = live.length === 0 ? cores : 1
  return waiting.find(group => (givesWay(group) ? working < most_working : fits))
}

/** Measures the part of the machine that a process could have: what is idle, and what gives way (`nice`). */
export class Meter {
  #samples = []

  /** Returns the part over the last few seconds, from 0 to 1. It is meant to be called about once a second. */
  room(now = Date.now(), cores = cpus()) {
    const sum = name => cores.reduce((total, { times }) => total + times[name], 0)
    const free = sum('idle') + sum('nice')
    const all = free + sum('user') + sum('sys') + sum('irq')
    this.#samples = [...this.#samples.filter(sample => now - sample.at <= WINDOW_MS), { at: now, free, all }]
    const first = this.#samples[0]
    return all > first.all ? (free - first.free) / (all - first.all) : 1
  }
}

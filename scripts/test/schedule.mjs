// Which group of test files starts next. Calls must be answered in time, so files with live calls start only while the
// machine has room for them; files that only work give way to them and fill what they leave.
import { cpus, getPriority } from 'node:os'

/** Even groups that only wait need memory, ports and moments of a core. */
const MOST_PER_CORE = 6
/** A group that keeps this part of a core busy waits for no peer or timer. */
const WORKING_LOAD = 0.75
/** Another group starts while the part of the machine that it could have is at least this. */
const ROOM = 0.1
/** A group loads its modules and starts its platform for about this long. The next one of those starts after it. */
const STARTING_MS = 4000
/** The machine is measured over this time. What started since then is not measured yet. */
const WINDOW_MS = 3000

/** Files whose peers, timers and media run in real time. */
const LIVE = /^test\/(flows|cluster|adversary|conformance\/(admission|edge|sip)|unit\/(media|signaling))\//

/** The cores that a group keeps busy, by its expected times: at most one and a half, as a platform does when it starts. */
const loadOf = ({ expected_ms, expected_cpu_ms = expected_ms }) => Math.min(1.5, expected_cpu_ms / expected_ms) || 1

const isLive = ({ files }) => files.some(file => LIVE.test(file))

/** Whether a group only works, by its expected times. One without expected times only works if none of it is live. */
export const givesWay = ({ files, expected_ms, expected_cpu_ms = expected_ms }) =>
  !(expected_cpu_ms < WORKING_LOAD * expected_ms) && !isLive({ files })

/**
 * Returns the first of the waiting groups, which are sorted, that may start beside the running ones; undefined when
 * none may. `idle` is the unused part of the machine. `room` is the idle part and the part that work of a lower priority
 * uses: live calls can have both. One live group on each core always fits. One group of other files always runs, and
 * more while the expected times or the machine say that there is room.
 */
export function nextGroup(waiting, running, { cores, room, idle, now = Date.now() }) {
  if (running.length >= cores * MOST_PER_CORE) return undefined
  const live = running.filter(isLive)
  const others = running.length - live.length
  const startedWithin = (groups, ms) => groups.some(group => now < group.started_at + ms)
  const sum = groups => groups.reduce((load, group) => load + loadOf(group), 0)
  const more_live = room >= ROOM && !startedWithin(live, STARTING_MS)
  const more_others = idle >= ROOM && !startedWithin(running, WINDOW_MS)
  const fits = group =>
    isLive(group)
      ? live.length < cores || (more_live && sum(live) + loadOf(group) <= cores)
      : others < 1 || more_others || sum(running) + loadOf(group) <= cores
  return waiting.find(fits)
}

/** Measures the parts of the machine that a process could have: what is idle, and with it what gives way (`nice`). */
export class Meter {
  #samples = []

  /** Returns both parts over the last few seconds, from 0 to 1. It is meant to be called about once a second. */
  look(now = Date.now(), cores = cpus(), priority = getPriority()) {
    const sum = name => cores.reduce((total, { times }) => total + times[name], 0)
    const idle = sum('idle')
    // Below a runner that gives way itself, all tests do.
    const room = idle + (priority > 0 ? 0 : sum('nice'))
    const all = idle + sum('nice') + sum('user') + sum('sys') + sum('irq')
    this.#samples = [...this.#samples.filter(sample => now - sample.at <= WINDOW_MS), { at: now, idle, room, all }]
    const first = this.#samples[0]
    const part = (now, then) => (all > first.all ? (now - then) / (all - first.all) : 1)
    return { idle: part(idle, first.idle), room: part(room, first.room) }
  }
}

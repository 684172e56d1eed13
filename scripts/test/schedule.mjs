// Which group of test files starts next. A file that mostly waits for timers and peers leaves its core to another.

/** Even groups that only wait need memory, ports and moments of a core. */
const MOST_PER_CORE = 3
/** A group takes at least this part of a core: waiting files work in bursts. */
const LEAST_LOAD = 0.2
/** A group that keeps a core this busy waits for no peer or timer. */
const WORKING_LOAD = 0.75
/** The part of the machine that files with live calls may be expected to use: a start or a loud moment needs the rest. */
const LIVE_PART = 0.7

/** Files whose peers, timers and media run in real time. */
const LIVE = /^test\/(flows|adversary|conformance\/(admission|edge|sip)|unit\/(media|signaling))\//

/** The cores that a group keeps busy while it runs, by its expected times. One without expected times takes a core. */
export const loadOf = ({ expected_ms, expected_cpu_ms }) =>
  expected_cpu_ms === undefined || !(expected_ms > 0) ? 1 : Math.max(LEAST_LOAD, expected_cpu_ms / expected_ms)

/** Whether a group only works: it gives way to live files, so that calls are answered in time. */
export const givesWay = group => loadOf(group) >= WORKING_LOAD && !group.files.some(file => LIVE.test(file))

const sumOf = groups => groups.reduce((sum, group) => sum + loadOf(group), 0)

/**
 * Returns the first of the waiting groups, which are sorted, that fits beside the running ones on so many cores;
 * undefined when none does. A group always fits on an idle machine. Live files share a part of the cores. Groups that
 * give way take what is left, one at least.
 */
export function nextGroup(waiting, running, cores) {
  if (running.length >= cores * MOST_PER_CORE) return undefined
  const live = running.filter(group => !givesWay(group))
  const working = running.filter(givesWay)
  const fits = group => live.length === 0 || sumOf([...live, group]) <= cores * LIVE_PART
  const most_working = live.length === 0 ? cores : Math.max(1, cores - 1)
  return waiting.find(group => (givesWay(group) ? working.length < most_working : fits(group)))
}

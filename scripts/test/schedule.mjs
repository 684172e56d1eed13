// Which group of test files starts next. A file that mostly waits for timers and peers leaves its core to another.

/** Even groups that only wait need memory, ports and moments of a core. */
const MOST_PER_CORE = 3
/** A group takes at least this part of a core: waiting files work in bursts. */
const LEAST_LOAD = 0.2

/** The cores that a group keeps busy while it runs, by its expected times. One without expected times takes a core. */
export const loadOf = ({ expected_ms, expected_cpu_ms }) =>
  expected_cpu_ms === undefined || !(expected_ms > 0) ? 1 : Math.max(LEAST_LOAD, expected_cpu_ms / expected_ms)

/**
 * Returns the first of the waiting groups, which are sorted, that fits beside the running ones on so many cores;
 * undefined when none does. A group always fits on an idle machine.
 */
export function nextGroup(waiting, running, cores) {
  if (running.length === 0) return waiting[0]
  if (running.length >= cores * MOST_PER_CORE) return undefined
  const free = cores - running.reduce((sum, group) => sum + loadOf(group), 0)
  return waiting.find(group => loadOf(group) <= free)
}

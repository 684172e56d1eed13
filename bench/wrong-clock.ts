/** Runs before the program of a process. What it measures by its monotonic clock stays right. */
const WRONG = `
  const right = Date.now
  Date.now = () => right() + AHEAD_MS
  globalThis.Date = new Proxy(Date, {
    construct: (date, values, target) => Reflect.construct(date, values.length === 0 ? [date.now()] : values, target),
  })
`

/**
 * Returns the NODE_OPTIONS of processes whose wall clock is wrong by so many milliseconds, as on a machine without NTP.
 * Processes that read no file of ours can load it, too.
 */
export const wrongClock = (ahead_ms: number): string =>
  `--import=data:text/javascript;base64,${Buffer.from(WRONG.replace('AHEAD_MS', `${ahead_ms}`)).toString('base64')}`

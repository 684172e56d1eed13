import { existsSync } from 'node:fs'

/**
 * Where Chromium lies, the cheapest first: the headless shell draws the same pages without the processes and pages of
 * windows, for half the CPU time.
 */
const PLACES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/snap/bin/chromium',
]

/** Returns the path of Chromium. Throws when it is missing. */
export function chromiumPath(): string {
  const path = PLACES.find(existsSync)
  if (path === undefined) throw new Error('chromium is missing: `npm test` installs it')
  return path
}

import { write, writeSync } from 'node:fs'

const STANDARD_ERROR = 2
/** Bytes that may wait for a reader that is slow, or gone. */
const MOST_WAITING = 1024 * 1024
const AGAIN_MS = 100

/** Where log lines go. */
interface LineOutput {
  write(line: string): void
  /** Writes what waits, as far as it is taken at once: for the end of the process. */
  flushSync(): void
}

/**
 * Returns an output of lines to a descriptor. It may fail at any moment: the terminal was closed, the disk is full.
 * What it does not take is lost then: a platform without a log is better than none.
 */
function linesTo(fd: number): LineOutput {
  let waiting: Buffer[] = []
  let length = 0
  /** A write is under way, or was put off. */
  let busy = false
  const next = (): void => {
    if (busy || waiting.length === 0) return
    busy = true
    const bytes = Buffer.concat(waiting)
    waiting = []
    length = 0
    write(fd, bytes, (error, count) => {
      const again = error?.code === 'EAGAIN'
      const left = again ? bytes : error ? null : bytes.subarray(count)
      if (left && left.length > 0) {
        waiting.unshift(left)
        length += left.length
      }
      const goOn = (): void => {
        busy = false
        next()
      }
      // The reader is slow, and a program that shares the descriptor has made it non-blocking.
      if (again) setTimeout(goOn, AGAIN_MS)
      else goOn()
    })
  }
  return {
    write(line) {
      if (length > MOST_WAITING) return
      const bytes = Buffer.from(line)
      waiting.push(bytes)
      length += bytes.length
      next()
    },
    flushSync() {
      try {
        for (const bytes of waiting) writeSync(fd, bytes)
      } catch {
        // See above.
      }
      waiting = []
      length = 0
    },
  }
}

/** Standard error: standard output carries a command's result. */
export const standardError = linesTo(STANDARD_ERROR)
process.once('exit', () => standardError.flushSync())

import { writeSync } from 'node:fs'

/** What one file's tests came to. */
export interface FileEnd {
  readonly event: 'end'
  readonly file: string
  readonly pass: number
  readonly fail: number
  readonly skip: number
  readonly wall_ms: number
  /** CPU time of this process and of those that it has started, for this file. */
  readonly cpu_ms: number
  /** Time until the first assertion: loading modules and starting processes. */
  readonly start_ms: number
}

export interface Failure {
  readonly event: 'failure'
  readonly file: string
  /** Names of the tests around the assertion, outermost first, then the assertion's own. */
  readonly path: readonly string[]
  readonly detail: string
}

/** What a test process tells the runner (scripts/test.mjs), one JSON object a line. */
export type Message =
  | { readonly event: 'begin'; readonly file: string }
  | { readonly event: 'comment'; readonly file: string; readonly text: string }
  | Failure
  | FileEnd

/** The runner opens this file descriptor for reports and names it in the environment. */
const descriptor = Number(process.env['STROWGER_TEST_REPORT'] ?? Number.NaN)
// Processes that tests start report to their tests.
delete process.env['STROWGER_TEST_REPORT']

const indented = (text: string): string => text.replace(/^(?=.)/gm, '    ')

function asText(message: Message): string {
  switch (message.event) {
    case 'begin':
      return `# ${message.file}\n`
    case 'comment':
      return `# ${message.text}\n`
    case 'failure':
      return `not ok ${message.path.join(' > ')}\n${indented(message.detail)}\n`
    case 'end': {
      const skipped = message.skip > 0 ? `, ${message.skip} skipped` : ''
      return `${message.pass} passed, ${message.fail} failed${skipped} (${Math.round(message.wall_ms)} ms)\n`
    }
  }
}

/** Sends a message to the runner, or prints it when there is none. */
export function report(message: Message): void {
  if (Number.isNaN(descriptor)) process.stdout.write(asText(message))
  else writeSync(descriptor, `${JSON.stringify(message)}\n`)
}

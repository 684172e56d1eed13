import { AsyncLocalStorage } from 'node:async_hooks'
import { userInfo } from 'node:os'
import { text } from 'node:stream/consumers'
import { visible } from '../core/domain/text/visible.ts'
import { fitted } from './fit.ts'

/** Where one run of a command reads its surroundings and prints. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The Unix user who runs the command, for the audit trail. */
  readonly user: string
  /** Width of the screen in characters; null when a program reads what is printed. */
  readonly columns: number | null
  readonly colour: boolean
  /** Calls `done` when the reader has taken it. */
  out(chunk: string | Uint8Array, done?: (error?: Error | null) => void): void
  err(text: string): void
  /** All of standard input. */
  input(): Promise<string>
  /** The command goes on, and ends with exit code 1. */
  fail(): void
  /** Ends the command with exit code 1. */
  leave(): never
}

const current = new AsyncLocalStorage<Terminal>()

/** Runs commands in a terminal other than that of this process. */
export const withTerminal = <T>(terminal: Terminal, work: () => Promise<T>): Promise<T> => current.run(terminal, work)

/** Colour is for people: a program that reads us, `NO_COLOR` (no-color.org) and a terminal without it get none. */
const coloured = (stream: NodeJS.WriteStream): boolean =>
  stream.isTTY === true && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb'

const OWN: Terminal = {
  env: process.env,
  get user() {
    return userInfo().username
  },
  get columns() {
    return process.stdout.isTTY === true ? process.stdout.columns : null
  },
  get colour() {
    return coloured(process.stdout)
  },
  out: (chunk, done) => void process.stdout.write(chunk, done),
  err: text => void process.stderr.write(text),
  input: () => text(process.stdin),
  fail() {
    process.exitCode = 1
  },
  leave: () => process.exit(1),
}

export const terminal = (): Terminal => current.getStore() ?? OWN

/** Prints text for people. Lines that are too long for the screen continue on the next one. */
export function tell(sentence: string): void {
  const { columns, out } = terminal()
  out(visible(columns === null ? sentence : fitted(sentence, columns)))
}

/** Prints what programs read, such as JSON, as it is. */
export const give = (text: string): void => terminal().out(visible(text))

/** Prints lines of a table, which fit the screen and have sequences for colour. Others' texts in it are harmless. */
export const show = (lines: readonly string[]): void => terminal().out(Buffer.from(`${lines.join('\n')}\n`))

/** Tells a person what is wrong, or how far long work is, beside what the command prints. */
export function complain(sentence: string): void {
  const { columns, err } = terminal()
  err(visible(columns === null ? sentence : fitted(sentence, columns)))
}

/** Long work says what it does, to people. */
export function progress(what: string): void {
  if (terminal().columns !== null) complain(`${what} …\n`)
}

/** Notes that the command ends with exit code 1. */
export const fail = (): void => terminal().fail()

/**
 * Makes what commands print harmless to a terminal: names and SIP messages that others wrote may have escape sequences.
 * Text passes one function here, whatever prints it; a command's own sequences are bytes. A reader that has seen
 * enough, such as head(1), ends no command: what it no longer reads is lost.
 */
export function guardTerminal(stream: NodeJS.WriteStream): void {
  const write = stream.write.bind(stream) as (chunk: unknown, ...rest: unknown[]) => boolean
  stream.write = ((chunk: unknown, ...rest: unknown[]) =>
    write(typeof chunk === 'string' ? visible(chunk) : chunk, ...rest)) as typeof stream.write
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}

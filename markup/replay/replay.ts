import { maskCards } from '../../core/domain/ladder/cards.ts'
import { startRun, step } from '../interpreter/step.ts'
import type { Command, Event, Run, StartFacts, StepResult } from '../interpreter/types.ts'

/**
 * One line of a run's log, as JSON: the facts (first line) or an event, and the commands that resulted. A replay needs
 * nothing else. The log holds documents, so protect it like recordings. It records the number and the times of key
 * presses but not the keys, so that nobody can read a card number from it (docs/calls.md).
 */
type Entry =
  | { readonly facts: StartFacts; readonly commands: readonly Command[] }
  | { readonly event: Event; readonly commands: readonly Command[] }

/** Formats the first line of a log, without a line end. */
export function startLine(facts: StartFacts, result: StepResult): string {
  return line({ facts, commands: result.commands })
}

/** Formats the line of one event, without a line end. */
export function eventLine(event: Event, result: StepResult): string {
  const obeyed = result.key_obeyed
  const secret = result.commands.some(command => command.type === 'fetch' && command.secret !== undefined)
  return line({
    event: anonymous(event, obeyed, secret),
    commands: result.commands.map(command => withoutEntries(command, secret)),
  })
}

/** Replaces logged keys. No telephone has this key, so no script reacts to it in a replay. */
const SOME_KEY = 'x'
const SPOKEN = '[secret]'
const someKeys = (keys: string): string => keys.replace(/[0-9A-D*#]/g, SOME_KEY)

function anonymous(event: Event, obeyed: boolean, secret: boolean): Event {
  if (event.type === 'digit') return obeyed ? event : { ...event, digit: SOME_KEY }
  if (event.type === 'record_ended' && event.key !== null) return { ...event, key: SOME_KEY }
  if (event.type === 'speech_result' && secret && event.text !== '') return { ...event, text: SPOKEN }
  return event
}

function withoutEntries(command: Command, secret: boolean): Command {
  if (command.type !== 'fetch' && command.type !== 'callback') return command
  const { Digits, SpeechResult } = command.parameters
  const parameters = {
    ...command.parameters,
    ...(Digits === undefined ? {} : { Digits: someKeys(Digits) }),
    ...(SpeechResult && secret ? { SpeechResult: SPOKEN } : {}),
  }
  return { ...command, parameters }
}

/** Formats an entry and masks card numbers. The mask is a digit, so that numbers in documents remain numbers. */
function line(entry: Entry): string {
  return JSON.stringify(entry, (_name, value: unknown) => (typeof value === 'string' ? plain(value) : value))
}

/** Masks card numbers, and input in URLs: a redirect may repeat a GET's query, and the URL becomes a base. */
const plain = (text: string): string =>
  maskCards(text, '0').replace(
    /([?&](?:Digits|SpeechResult)=)[^&#\s"'<]+/g,
    (_all, name: string) => `${name}${SOME_KEY}`,
  )

type Replayed =
  | { readonly same: true; readonly steps: number; readonly run: Run }
  | { readonly same: false; readonly difference: Difference }

export interface Difference {
  /** Line of the log, counted from 1. */
  readonly line: number
  /** The input: `start`, the type of the event, or `log` for an unreadable log. */
  readonly event: string
  /** Index of the first command that differs; null when the log itself cannot be read. */
  readonly command: number | null
  readonly logged: string | null
  readonly replayed: string | null
  readonly detail: string
}

/** Runs a log again. Its commands must match byte for byte; otherwise the first difference is returned. */
export function replay(log: string): Replayed {
  const lines = log.split('\n').filter(line => line.trim() !== '')
  let run: Run | null = null
  for (const [index, text] of lines.entries()) {
    const line = index + 1
    const entry = readLine(text)
    if (typeof entry === 'string') return unreadable(line, entry)
    if ((run === null) !== 'facts' in entry) {
      return unreadable(line, run === null ? 'the first line has no facts' : 'a second start')
    }
    const result: StepResult = 'facts' in entry ? startRun(entry.facts) : step(run as Run, entry.event)
    run = result.run
    const difference = compare(entry.commands, result.commands)
    if (difference) {
      const event = 'facts' in entry ? 'start' : entry.event.type
      return { same: false, difference: { line, event, ...difference } }
    }
  }
  return run ? { same: true, steps: lines.length, run } : unreadable(0, 'the log is empty')
}

type Found = Pick<Difference, 'command' | 'logged' | 'replayed' | 'detail'>

function compare(logged: readonly Command[], replayed: readonly Command[]): Found | null {
  for (let i = 0; i < Math.max(logged.length, replayed.length); i++) {
    const [a, b] = [text(logged[i]), text(replayed[i])]
    if (a === b) continue
    let at = 0
    while (a !== null && b !== null && a[at] === b[at]) at++
    const detail =
      a === null
        ? 'the replay gives a command more'
        : b === null
          ? 'the replay gives a command less'
          : `first difference at character ${at + 1}`
    return { command: i, logged: a, replayed: b, detail }
  }
  return null
}

function text(command: Command | undefined): string | null {
  return command === undefined ? null : JSON.stringify(command)
}

function readLine(text: string): Entry | string {
  try {
    const value: unknown = JSON.parse(text)
    const entry = value as Partial<Record<string, unknown>> | null
    const known = entry && typeof entry === 'object' && Array.isArray(entry['commands'])
    const named = known && (isRecord(entry['facts']) || isRecord(entry['event']))
    return named ? (value as Entry) : 'not a line of a run log'
  } catch {
    return 'not JSON'
  }
}

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function unreadable(line: number, detail: string): Replayed {
  return { same: false, difference: { line, event: 'log', command: null, logged: null, replayed: null, detail } }
}

import { SIMULATED } from '../../../bin/script/simulated.ts'
import { startRun, step } from '../../../markup/interpreter/step.ts'
import type { Command, Event, Run, StartFacts, StepResult } from '../../../markup/interpreter/types.ts'
import { eventLine, replay, startLine } from '../../../markup/replay/replay.ts'
import type { Test } from '../../support/harness/index.ts'

export const BASE = 'https://app.example.test/ivr/voice?tenant=7'

export const FACTS: StartFacts = {
  kind: 'call',
  entry: { kind: 'request', url: BASE, method: 'POST' },
  fallback: null,
  leg: { answered: true, direction: 'inbound', sip: true, from: '+2348030000099', to: '+2342010000001' },
  account_sid: `AC${'0'.repeat(32)}`,
  call_sid: `CA${'1'.repeat(32)}`,
  speech: {
    voices: ['Polly.Joanna'],
    languages: ['en-US', 'fr', 'yo'],
    default_voice: 'man',
    default_language: 'en-US',
    recognizer: false,
    transcriber: false,
  },
  siprec_connectors: [],
}

interface Changes {
  readonly kind?: StartFacts['kind']
  readonly inline?: boolean
  readonly answered?: boolean
  readonly sip?: boolean
  readonly fallback?: StartFacts['fallback']
  readonly speech?: Partial<StartFacts['speech']>
  readonly siprec_connectors?: readonly string[]
}

/** A run without a telephone. Tests check the commands of each step. At teardown the log of the run must replay. */
export class Phone {
  readonly facts: StartFacts
  private readonly t: Test
  private readonly lines: string[] = []
  run: Run
  /** Commands of the last step. */
  commands: readonly Command[] = []
  readonly all: Command[] = []
  unexpected: string | null = null

  constructor(t: Test, facts: StartFacts) {
    this.t = t
    this.facts = facts
    const first = startRun(facts)
    this.run = first.run
    this.lines.push(startLine(facts, first))
    this.take(first)
    t.teardown(() => {
      const replayed = replay(this.log())
      if (!replayed.same) throw new Error(`the log does not replay: ${JSON.stringify(replayed.difference)}`)
    })
  }

  log(): string {
    return this.lines.join('\n')
  }

  send(event: Event): readonly Command[] {
    // Passes the run through JSON between steps, because it must survive storage.
    const result = step(JSON.parse(JSON.stringify(this.run)) as Run, event)
    this.lines.push(eventLine(event, result))
    this.take(result)
    return result.commands
  }

  private take(result: StepResult): void {
    this.run = result.run
    this.commands = result.commands
    this.all.push(...result.commands)
    this.unexpected = result.unexpected
  }

  /** Returns the last command of a type. */
  last<T extends Command['type']>(type: T): Extract<Command, { type: T }> {
    const found = this.all.findLast(command => command.type === type)
    if (!found) throw new Error(`no ${type} command was given; given: ${this.all.map(c => c.type).join(' ')}`)
    return found as Extract<Command, { type: T }>
  }

  /** Returns the types of the last step's commands. */
  types(): string {
    return this.commands.map(command => command.type).join(' ')
  }

  expect(types: string, message = types): this {
    this.t.equal(this.types(), types, message)
    return this
  }

  notes(): string[] {
    return this.all.flatMap(c => (c.type === 'note' ? [`${c.level} ${c.number} ${c.line}:${c.column}`] : []))
  }

  // ----------------------------------------------------------------------------------------- events in short form

  fetched(text: string, content_type = 'text/xml', final_url?: string): this {
    const { id, url } = this.last('fetch')
    this.send({ type: 'fetched', id, result: { ok: true, text, content_type, final_url: final_url ?? url } })
    return this
  }

  unfetched(number: number, detail = 'not to be had'): this {
    this.send({ type: 'fetched', id: this.last('fetch').id, result: { ok: false, number, detail } })
    return this
  }

  answered(): this {
    this.send({ type: 'answered', id: this.last('answer').id })
    return this
  }

  played(failures: Extract<Event, { type: 'play_ended' }>['failures'] = []): this {
    this.send({ type: 'play_ended', id: this.last('play').id, failures })
    return this
  }

  timer(): this {
    this.send({ type: 'timer', id: this.last('start_timer').id })
    return this
  }

  keys(digits: string): this {
    for (const digit of digits) this.send({ type: 'digit', digit })
    return this
  }

  hangup(): this {
    this.send({ type: 'hangup' })
    return this
  }

  recorded(
    duration_seconds: number | null,
    reason: 'silence' | 'key' | 'max_length' | 'hangup' = 'silence',
    key = '',
  ): this {
    const recording = duration_seconds === null ? null : { ...RECORDING, duration_seconds }
    const absent = recording ? null : 16102
    this.send({ type: 'record_ended', id: this.last('record').id, reason, key: key || null, recording, absent })
    return this
  }

  child(event: 'ringing' | 'early_media' | 'initiated', child = this.last('dial_child').child): this {
    this.send({ type: 'child_progress', child, state: event, call_sid: CHILD_SID })
    return this
  }

  childAnswered(child = this.last('dial_child').child): this {
    this.send({ type: 'child_answered', child, call_sid: CHILD_SID })
    return this
  }

  childEnded(
    status: Extract<Event, { type: 'child_ended' }>['status'],
    child = this.last('dial_child').child,
    more: Partial<Extract<Event, { type: 'child_ended' }>> = {},
  ): this {
    const codes = { completed: 200, busy: 486, 'no-answer': 487, failed: 503, canceled: 487 }
    this.send({
      type: 'child_ended',
      child,
      status,
      call_sid: CHILD_SID,
      duration_seconds: status === 'completed' ? 12 : null,
      sip_code: codes[status],
      sip_call_id: 'b-leg@edge',
      headers: {},
      number: null,
      detail: null,
      ...more,
    })
    return this
  }

  bridged(): this {
    this.send({ type: 'bridged', child: this.last('bridge').child })
    return this
  }
}

export const CHILD_SID = SIMULATED.call_sid
export const RECORDING = SIMULATED.recording

/** Starts a call whose first document is this text: fetched from BASE, or inline. */
export function call(t: Test, text: string, changes: Changes = {}): Phone {
  const { kind = 'call', inline = false, answered = true, sip = true, fallback = null, speech = {} } = changes
  const phone = new Phone(t, {
    ...FACTS,
    kind,
    fallback,
    entry: inline ? { kind: 'inline', text } : FACTS.entry,
    leg: { ...FACTS.leg, answered, sip },
    speech: { ...FACTS.speech, ...speech },
    siprec_connectors: changes.siprec_connectors ?? [],
  })
  return inline ? phone : phone.fetched(text)
}

/** Returns a document with these verbs. */
export function response(...verbs: readonly string[]): string {
  return `<Response>\n${verbs.join('\n')}\n</Response>`
}

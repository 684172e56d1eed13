import type { MarkupFinding } from '../verbs/shape.ts'
import { open, readStatement } from './document.ts'
import { type Move, resolveUrl, Turn, withoutUser } from './turn.ts'
import type {
  Done,
  Element,
  Entry,
  Event,
  Fetch,
  Fetched,
  FormParameters,
  Method,
  Phase,
  Place,
  Run,
  StartFacts,
  StepResult,
} from './types.ts'

/** Limits on document requests: per run, and in a row without a verb that takes time (voice-compat.md §7.5). */
export const FETCH_LIMITS = { run: 1000, idle: 100, quick: 10 } as const
/** Documents that take no time are slowed after the quick ones, so that a circle of them is no flood of requests. */
const SLOWED_MS = 250

const NOTICE = 'We are sorry, an application error has occurred. Goodbye.'

/** Starts a run: requests its first document, or runs the first verbs of its inline document. */
export function startRun(facts: StartFacts): StepResult {
  const run: Run = {
    facts,
    phase: { name: 'done' },
    document: { verbs: [], url: null, live: false, fallback: false },
    answered: facts.leg.answered,
    refusal: null,
    fallback: facts.fallback,
    failed: [],
    counter: 1,
    fetches: 0,
    idle_fetches: 0,
    activities: [],
    noted: [],
  }
  const turn = new Turn(run)
  return close(
    turn,
    enter(turn, facts.entry, facts.kind === 'call' || facts.kind === 'whisper' ? 'entry' : 'wait'),
    null,
  )
}

/**
 * Applies one event to a run. Pure: the same run and event give the same commands. A late event, whose id is no longer
 * awaited, changes nothing. An event with an id that was never given out is returned as `unexpected`.
 */
export function step(run: Run, event: Event): StepResult {
  const unexpected = strange(run, event)
  if (run.phase.name === 'done' || unexpected !== null) return { run, commands: [], unexpected, key_obeyed: false }
  const turn = new Turn(run)
  return close(turn, advance(turn, run.phase, event), null)
}

function close(turn: Turn, phase: Phase, unexpected: string | null): StepResult {
  return { run: turn.finish(phase), commands: turn.commands, unexpected, key_obeyed: turn.key_obeyed }
}

function advance(turn: Turn, phase: Phase, event: Event): Phase {
  if (event.type === 'hangup') return gone(turn, phase)
  if (event.type === 'update') return phase.name === 'closing' ? phase : update(turn, phase, event)
  // A run has one leg. The answer may belong to a document that an update has replaced meanwhile.
  if (event.type === 'answered') turn.answered = true
  if (activity(turn, event)) return phase
  switch (phase.name) {
    case 'fetching':
      return event.type === 'fetched' && event.id === phase.id ? fetched(turn, phase, event) : other(turn, phase, event)
    case 'answering':
      return event.type === 'answered' ? goTo(turn, phase.index) : other(turn, phase, event)
    case 'notice':
      return event.type === 'play_ended' && event.id === phase.id ? hangUp(turn) : other(turn, phase, event)
    case 'verb':
    case 'closing':
      return toVerb(turn, phase, event)
    case 'done':
      return phase
  }
}

// ------------------------------------------------------------------------------------------------------ documents

function enter(turn: Turn, entry: Entry, document: Fetch['document'], live = false): Phase {
  if (entry.kind === 'inline') return load(turn, entry.text, { url: null, live, fallback: false })
  const url = resolveUrl(entry.url, null)
  if (url === undefined) return failed(turn, 11100, `"${entry.url.slice(0, 80)}" is not an absolute http(s) URL`)
  return request(turn, document, url, entry.method, entry.parameters ?? {})
}

function request(
  turn: Turn,
  document: Fetch['document'],
  url: string,
  method: Method,
  parameters: FormParameters,
  secret: readonly string[] = [],
): Phase {
  turn.fetches++
  turn.idle_fetches++
  if (turn.fetches > FETCH_LIMITS.run || turn.idle_fetches > FETCH_LIMITS.idle) {
    const why = turn.fetches > FETCH_LIMITS.run ? `over ${FETCH_LIMITS.run} documents in one call` : idleDetail()
    noteFatal(turn, 12400, why, turn.document.url, null)
    return giveUp(turn)
  }
  const id = turn.id('fetch')
  const slowed = turn.idle_fetches > FETCH_LIMITS.quick ? { delay_ms: SLOWED_MS } : {}
  const hidden = secret.length > 0 ? { secret } : {}
  turn.emit({ type: 'fetch', id, document, url, method, parameters, ...hidden, ...slowed })
  return { name: 'fetching', id, document, url }
}

function idleDetail(): string {
  return `over ${FETCH_LIMITS.idle} documents in a row without a verb that takes time`
}

function fetched(turn: Turn, phase: Extract<Phase, { name: 'fetching' }>, { result }: Fetched): Phase {
  const fallback = phase.document === 'fallback'
  if (!result.ok) return failed(turn, result.number, result.detail, { url: phase.url, fallback })
  const about = { url: result.final_url, live: false, fallback }
  const type = result.content_type
  if (type.startsWith('audio/')) return run(turn, audioDocument(turn, result.final_url), about)
  const markup = type === '' || type === 'text/xml' || type === 'application/xml' || type === 'text/html'
  if (type === 'text/plain') {
    if (open(result.text, turn.facts.kind).ok) return load(turn, result.text, about)
    return run(turn, spokenDocument(result.text), about)
  }
  if (!markup && !type.endsWith('+xml')) {
    return failed(turn, 12300, `content type "${type.slice(0, 80)}" is not usable`, { url: phase.url, fallback })
  }
  // A response without a body is a document without verbs.
  if (result.text.trim() === '') return run(turn, [], about)
  return load(turn, result.text, about)
}

type About = { readonly url: string | null; readonly live: boolean; readonly fallback: boolean }

function load(turn: Turn, text: string, about: About): Phase {
  const opened = open(text, turn.facts.kind)
  if (!opened.ok) {
    const { number, detail, ...place } = opened.fault
    turn.document = { verbs: [], ...about }
    return failed(turn, number, detail, { url: about.url, fallback: about.fallback, place })
  }
  turn.document = { verbs: opened.verbs, ...about }
  for (const finding of opened.findings) noteFinding(turn, finding)
  return goTo(turn, 0)
}

function run(turn: Turn, verbs: readonly Element[], about: About): Phase {
  turn.document = { verbs, ...about }
  return goTo(turn, 0)
}

/** Notes a warning as the document loads. A fatal fault is noted only when execution reaches its verb. */
function noteFinding(turn: Turn, { number, effect, detail, line, column }: MarkupFinding): void {
  if (number !== 0 && effect !== 'document') turn.warn(number, detail, { line, column })
}

/** Wraps audio that was served in place of a document in a Play. For a conference's wait, the Play loops. */
function audioDocument(turn: Turn, url: string): readonly Element[] {
  const looped = turn.facts.kind === 'conference_wait' ? { loop: { value: '0', line: 1, column: 1 } } : {}
  return [{ name: 'Play', attributes: looped, children: [url], line: 1, column: 1 }]
}

function spokenDocument(text: string): readonly Element[] {
  return text.trim() === '' ? [] : [{ name: 'Say', attributes: {}, children: [text], line: 1, column: 1 }]
}

// ---------------------------------------------------------------------------------------------------------- verbs

/** Runs verbs from index `from` until one waits or the run is over. */
function goTo(turn: Turn, from: number): Phase {
  let index = from
  for (;;) {
    const element = turn.document.verbs[index]
    if (!element) return endOfDocument(turn)
    const statement = readStatement(element, turn.facts.kind)
    turn.place = { line: element.line, column: element.column }
    if (statement.fatal) {
      const { number, detail, line, column } = statement.fatal
      return failed(turn, number, detail, { place: { line, column } })
    }
    const { verb, node } = statement
    if (!verb || !node) {
      index++
      continue
    }
    if (!turn.answered && verb.answers(node, turn)) return answer(turn, index)
    const phase = follow(turn, index, verb.begin(node, turn))
    if (phase !== 'next') return phase
    index++
  }
}

function follow(turn: Turn, index: number, move: Move): Phase | 'next' {
  switch (move.to) {
    case 'next':
      return 'next'
    case 'stay':
      turn.idle_fetches = 0
      turn.failed = []
      return { name: 'verb', index, state: move.state }
    case 'hangup':
      return endOfCall(turn)
    case 'done':
      return done(turn, move.outcome)
    case 'request': {
      const url = move.url === null ? (turn.document.url ?? undefined) : turn.resolve(move.url)
      if (url !== undefined) return request(turn, move.document, url, move.method, move.parameters, move.secret)
      const what = move.url === null ? 'the missing URL means this document' : `"${move.url.slice(0, 80)}" is relative`
      return failed(turn, turn.document.live ? 15004 : 11100, `${what}, which was given inline and has no URL`)
    }
  }
}

function toVerb(turn: Turn, phase: Extract<Phase, { name: 'verb' | 'closing' }>, event: Event): Phase {
  const element = turn.document.verbs[phase.index]
  if (!element) return phase
  const { verb, node } = readStatement(element, turn.facts.kind)
  if (!verb || !node) return phase
  turn.place = { line: element.line, column: element.column }
  const move = verb.on?.(node, turn, phase.state, event)
  if (!move) return other(turn, phase, event)
  if (phase.name === 'closing') return move.to === 'stay' ? { ...phase, state: move.state } : done(turn, 'gone')
  const after = follow(turn, phase.index, move)
  return after === 'next' ? goTo(turn, phase.index + 1) : after
}

/** Handles an event that the run does not await. Only a transfer request needs a reply. */
function other(turn: Turn, phase: Phase, event: Event): Phase {
  if (event.type !== 'refer_received') return phase
  turn.emit({ type: 'answer_refer', leg: event.leg, sip_code: 603 })
  turn.warn(13802, 'a transfer was asked for and refused: no referUrl applies')
  return phase
}

/** Handles the end of a background activity; returns true when the event was about one. */
function activity(turn: Turn, event: Event): boolean {
  if (event.type !== 'recording_ended' && event.type !== 'stream_ended' && event.type !== 'activity_ended') return false
  if (!turn.activities.some(known => known.id === event.id)) return false
  turn.activities = turn.activities.filter(known => known.id !== event.id)
  if (event.type !== 'recording_ended' && event.number !== null) {
    turn.note('error', event.number, event.detail ?? 'a background activity failed', null)
  }
  return true
}

// -------------------------------------------------------------------------------------------------------- endings

function answer(turn: Turn, index: number): Phase {
  const id = turn.id('answer')
  turn.emit({ type: 'answer', id })
  return { name: 'answering', id, index }
}

function endOfDocument(turn: Turn): Phase {
  switch (turn.facts.kind) {
    case 'call':
      return endOfCall(turn)
    case 'whisper':
    case 'conference_wait':
      return done(turn, 'finished')
    case 'queue_wait':
      return again(turn)
  }
}

/** Restarts a queue's wait document. The request carries the parameters current at that time. */
function again(turn: Turn): Phase {
  const { entry } = turn.facts
  if (entry.kind === 'request') return enter(turn, entry, 'wait')
  if (++turn.idle_fetches <= FETCH_LIMITS.idle) return enter(turn, entry, 'wait')
  noteFatal(turn, 12400, idleDetail(), turn.document.url, null)
  return giveUp(turn)
}

/** Ends the call for the script. An unanswered call is answered first, unless a failed Dial left a refusal for it. */
function endOfCall(turn: Turn): Phase {
  if (turn.facts.kind !== 'call') return done(turn, 'hangup')
  if (turn.answered) return hangUp(turn)
  if (turn.refusal) {
    turn.emit({ type: 'reject', ...turn.refusal })
    return done(turn, 'rejected')
  }
  return answer(turn, turn.document.verbs.length)
}

function hangUp(turn: Turn): Phase {
  turn.emit({ type: 'hangup' })
  return done(turn, 'hangup')
}

function done(turn: Turn, outcome: Done['outcome']): Phase {
  turn.emit({ type: 'done', outcome })
  return { name: 'done' }
}

/** Handles the end of the leg. The running verb may still wait for what its last request needs. */
function gone(turn: Turn, phase: Phase): Phase {
  if (phase.name === 'closing') return phase
  if (phase.name !== 'verb') return done(turn, 'gone')
  const element = turn.document.verbs[phase.index]
  const statement = element && readStatement(element, turn.facts.kind)
  if (!statement?.verb?.gone || !statement.node) return done(turn, 'gone')
  turn.place = { line: statement.element.line, column: statement.element.column }
  const move = statement.verb.gone(statement.node, turn, phase.state)
  if (move.to === 'stay') return { name: 'closing', index: phase.index, state: move.state }
  return done(turn, 'gone')
}

/** Replaces the document of a live call: cuts the running verb and drops what is pending. */
function update(turn: Turn, phase: Phase, event: Extract<Event, { type: 'update' }>): Phase {
  if (phase.name === 'notice') turn.emit({ type: 'stop_play', id: phase.id })
  if (phase.name === 'verb') {
    const element = turn.document.verbs[phase.index]
    const statement = element && readStatement(element, turn.facts.kind)
    if (statement?.verb && statement.node) statement.verb.cut?.(statement.node, turn, phase.state)
  }
  turn.place = null
  turn.refusal = null
  turn.failed = []
  if (event.fallback !== undefined) turn.fallback = event.fallback
  return enter(turn, event.entry, 'entry', true)
}

/**
 * Handles a document that cannot be fetched or run (voice-compat.md §7.5): tries the fallback once, then gives up. A
 * fallback that leads straight back to what failed, or to itself, has failed too.
 */
function failed(
  turn: Turn,
  number: number,
  detail: string,
  about: { url?: string | null; fallback?: boolean; place?: Place } = {},
): Phase {
  const url = about.url === undefined ? turn.document.url : about.url
  noteFatal(turn, number, detail, url, about.place ?? (about.url === undefined ? turn.place : null))
  const tried = (about.fallback ?? turn.document.fallback) || turn.failed.includes(url ?? '')
  if (!turn.fallback || tried) return giveUp(turn)
  const target = resolveUrl(turn.fallback.url, null)
  if (target === undefined) return giveUp(turn)
  turn.failed = [...turn.failed, url ?? '', target]
  const parameters = { ErrorCode: String(number), ...(url === null ? {} : { ErrorUrl: withoutUser(url) }) }
  return request(turn, 'fallback', target, turn.fallback.method, parameters)
}

function noteFatal(turn: Turn, number: number, detail: string, url: string | null, place: Place | null): void {
  const { line, column } = place ?? { line: null, column: null }
  turn.emit({
    type: 'note',
    level: 'error',
    fatal: true,
    number,
    url: url === null ? null : withoutUser(url),
    line,
    column,
    detail,
  })
}

/** Ends a run that cannot continue. A call is refused, or hears a spoken notice; other kinds of run just end. */
function giveUp(turn: Turn): Phase {
  if (turn.facts.kind !== 'call') return done(turn, 'failed')
  if (!turn.answered) {
    turn.emit({ type: 'reject', sip_code: 503, status: 'failed' })
    return done(turn, 'rejected')
  }
  const id = turn.id('play')
  const { default_voice: voice, default_language: language } = turn.facts.speech
  turn.emit({ type: 'play', id, items: [{ kind: 'speech', text: NOTICE, ssml: null, voice, language, loop: 1 }] })
  return { name: 'notice', id }
}

// --------------------------------------------------------------------------------------------------------- events

/** Describes an event that cannot belong to this run because its id was never given out; else returns null. */
function strange(run: Run, event: Event): string | null {
  const id = 'id' in event ? event.id : 'child' in event ? event.child : null
  if (id === null) return null
  const number = /^[a-z]+-(\d+)$/.exec(id)?.[1]
  return number !== undefined && Number(number) < run.counter
    ? null
    : `${event.type} for unknown id "${id.slice(0, 40)}"`
}

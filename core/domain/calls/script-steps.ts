import { hostOf, userOrHost } from '../sip/address.ts'
import { counted } from '../text/counted.ts'

/** A step of a call's script, as a person reads it. `at` is the time of the line in the run's log. */
export interface ScriptStep {
  readonly at: string
  readonly detail: { readonly verb: string; readonly text: string }
}

type Facts = Readonly<Record<string, unknown>>
type StepDetail = ScriptStep['detail']

const MAX_TEXT = 200

const said = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? String(value) : '')
const factsOf = (value: unknown): Facts => (typeof value === 'object' && value !== null ? (value as Facts) : {})
const listOf = (value: unknown): readonly Facts[] => (Array.isArray(value) ? value.map(factsOf) : [])
/** User and host of an address: its parameters and headers may hold a secret, as the rest of its user part does. */
const bareUri = (uri: string): string => {
  const user = userOrHost(uri)
  const host = hostOf(uri)
  return user === host ? host : `${user}@${host}`
}

/** What each command of a script is to a person; a command that is not here is part of another step. */
const COMMANDS: Readonly<Record<string, (command: Facts) => readonly StepDetail[]>> = {
  answer: () => [{ verb: 'Answer', text: 'the call is answered' }],
  play: ({ items }) => listOf(items).map(itemDetail),
  digits_on: () => [{ verb: 'Gather', text: 'waits for keys' }],
  recognize: ({ language }) => [{ verb: 'Gather', text: `listens for speech in ${said(language)}` }],
  send_digits: ({ digits }) => [
    { verb: 'Play', text: `sends ${counted(said(digits).replace(/[wW]/g, '').length, 'key')}` },
  ],
  record: ({ max_seconds }) => [{ verb: 'Record', text: `records for at most ${said(max_seconds)} s` }],
  dial_child: ({ target }) => [{ verb: 'Dial', text: dialled(factsOf(target)) }],
  bridge: () => [{ verb: 'Dial', text: 'both sides are joined' }],
  join_conference: ({ name }) => [{ verb: 'Dial', text: `joins the conference ${said(name)}` }],
  enqueue: ({ name }) => [{ verb: 'Enqueue', text: `waits in the queue ${said(name)}` }],
  dequeue: ({ name }) => [{ verb: 'Dial', text: `takes the first of the queue ${said(name)}` }],
  refer: ({ uri }) => [{ verb: 'Refer', text: bareUri(said(uri)) }],
  start_stream: ({ url }) => [{ verb: 'Stream', text: said(url).replace(/\?.*$/, '') }],
  start_recording: () => [{ verb: 'Recording', text: 'starts' }],
  start_siprec: ({ connector }) => [{ verb: 'Siprec', text: said(connector) }],
  start_transcription: ({ language }) => [{ verb: 'Transcription', text: said(language) }],
  start_echo: () => [{ verb: 'Echo', text: 'the caller hears themselves' }],
  reject: ({ sip_code }) => [{ verb: 'Reject', text: `with ${said(sip_code)}` }],
  hangup: () => [{ verb: 'Hangup', text: 'the script ends the call' }],
}

/** What happened to a script: results of its steps. That a key was pressed is told, never which. */
const EVENTS: Readonly<Record<string, (event: Facts) => readonly StepDetail[]>> = {
  digit: () => [{ verb: 'Keys', text: 'a key was pressed' }],
  child_answered: () => [{ verb: 'Dial', text: 'answered' }],
  child_ended: ({ status }) => [{ verb: 'Dial', text: `ended: ${said(status)}` }],
  record_ended: ({ recording }) => [
    {
      verb: 'Record',
      text: recording === null ? 'nothing was recorded' : `recorded ${said(factsOf(recording)['duration_seconds'])} s`,
    },
  ],
  conference_left: () => [{ verb: 'Dial', text: 'left the conference' }],
  queue_left: ({ result }) => [{ verb: 'Enqueue', text: `left the queue: ${said(result)}` }],
  update: () => [{ verb: 'Update', text: 'new instructions replaced the running ones' }],
  hangup: () => [{ verb: 'Leg', text: 'the other side hung up' }],
}

function itemDetail({ kind, text, url, ms }: Facts): StepDetail {
  if (kind === 'speech') return { verb: 'Say', text: said(text) }
  if (kind === 'silence') return { verb: 'Pause', text: `${Number(ms) / 1000} s` }
  return { verb: 'Play', text: said(url).replace(/\?.*$/, '') }
}

function dialled({ kind, number, uris, identity, id }: Facts): string {
  if (kind === 'sip')
    return listOf(uris)
      .map(({ uri }) => bareUri(said(uri)))
      .join(', ')
  return said(number) || said(identity) || said(id)
}

/** Reads the log of a run: one JSON object a line. A line that cannot be read, or that has no time, is left out. */
export function stepsOf(log: string): ScriptStep[] {
  return log.split('\n').flatMap(line => {
    const { at, event, commands } = factsOf(parsed(line))
    if (typeof at !== 'string') return []
    const { type, ...happened } = factsOf(event)
    const results = EVENTS[said(type)]?.(happened) ?? []
    const steps = listOf(commands).flatMap(command => COMMANDS[said(command['type'])]?.(command) ?? [])
    return [...results, ...steps].map(({ verb, text }) => ({ at, detail: { verb, text: text.slice(0, MAX_TEXT) } }))
  })
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

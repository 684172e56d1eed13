import { DRACHTIO_PROGRAM } from '../../bench/drachtio-server.ts'

/** The result of a flow file behind drachtio-server v0.9.10. */
interface OnDrachtio {
  readonly result: 'passes' | 'fails' | 'not run to its end' | 'not run' | 'embedded edge only'
  /** Why not all of it passes. */
  readonly why?: string
  /** Tests that are skipped there, with the reason. */
  readonly without?: Readonly<Record<string, string>>
}

const LADDER = 'a drachtio-server does not show its SIP messages, so none are kept'
const NO_SIP = 'it places no call, so the SIP server takes no part'
const RELIABLE = 'signaling sends no reliable provisional responses through such a server'

/**
 * Every flow file, and whether it was run behind a drachtio-server (`STROWGER_TEST_DRACHTIO`). docs/drachtio.md shows
 * this list. On the embedded edge every file must pass in CI.
 */
const ON_DRACHTIO = {
  admission: { result: 'passes' },
  'admission-carriers': {
    result: 'passes',
    without: {
      'a registrar over TLS must present a valid certificate, or the pinned one':
        'a TLS registrar is reached only with verification off',
    },
  },
  'admission-faults': { result: 'passes' },
  'admission-wire': { result: 'passes' },
  'alert-channels': { result: 'not run', why: NO_SIP },
  alerts: { result: 'not run', why: NO_SIP },
  console: { result: 'not run', why: 'its telephone needs ws and wss on one port, as the embedded edge has them' },
  'console-board': { result: 'not run', why: NO_SIP },
  'console-pages': { result: 'not run', why: 'its pages show the ladder of a call and figures of the embedded edge' },
  'faults-descriptors': { result: 'not run', why: 'it takes the file descriptors of the embedded edge away' },
  host: { result: 'not run', why: 'it looks at files and environments of our own processes' },
  management: {
    result: 'not run',
    why: 'it kills the embedded edge among our processes; its effects on SIP are those of `trunk` and `admission`',
  },
  'postgres-stories': { result: 'not run', why: 'its stories run there with their state in SQLite' },
  readme: { result: 'not run', why: 'the commands of the README start the embedded edge' },
  'sip-world': {
    result: 'not run',
    why: "sofia-sip's reader takes the messages apart before ours; `test/unit/signaling/drachtio/real-server.test.ts` has what it passes on",
  },
  start: { result: 'not run', why: 'it starts, refuses and stops the embedded edge' },
  'two-nodes': { result: 'not run', why: 'it starts two embedded edges, and the harness one drachtio-server' },
  'webhook-faults': {
    result: 'not run',
    why: "it breaks a customer's web server; what the caller hears then is in `voice`, which passes",
  },
  'b2bua-browser': { result: 'passes' },
  'b2bua-media': { result: 'passes' },
  'b2bua-stories': {
    result: 'fails',
    why: 'the call of “a target may move acknowledged early media by UPDATE and answer without SDP” is not answered, and the cause is not known; 287 checks passed before the time limit',
    without: {
      'a caller that supports 100rel gets early media in a reliable 183, and its UPDATE before the 200 is answered':
        RELIABLE,
      'a call survives a PRACK that never comes': RELIABLE,
      'an offer in a PRACK is answered in its 200': RELIABLE,
      'an INVITE without an offer that requires 100rel gets our offer in a reliable 180': RELIABLE,
    },
  },
  baresip: { result: 'passes' },
  'admission-clients': { result: 'passes' },
  cli: {
    result: 'passes',
    without: { 'a call is placed and followed, its ladder is drawn, and its script replays the same': LADDER },
  },
  drain: { result: 'passes' },
  'edge-families': { result: 'embedded edge only', why: 'ws and wss on one port' },
  'edge-faults': { result: 'embedded edge only', why: 'faults of the embedded edge itself' },
  'edge-hep': { result: 'embedded edge only', why: 'only the embedded edge has this HEP export' },
  faults: {
    result: 'fails',
    why: 'after kill -9 of the server the sandbox carrier keeps its call, because nothing notifies the far end',
  },
  'faults-calls': { result: 'passes' },
  'first-call': { result: 'passes' },
  fraud: { result: 'passes' },
  ivr: { result: 'passes' },
  'live-control': { result: 'passes' },
  'media-crossing': { result: 'passes' },
  'media-srtp': { result: 'passes' },
  metrics: { result: 'passes' },
  operations: {
    result: 'not run to its end',
    why: '`strowger top` and a short message as SIP MESSAGE ran into the time limit',
  },
  sip: { result: 'not run to its end', why: 'one test fails, and the file does not end; the cause is not known' },
  traces: { result: 'passes' },
  transfer: { result: 'passes' },
  trunk: {
    result: 'passes',
    without: {
      'the ladder of a call shows every message of both legs': LADDER,
    },
  },
  'trunk-tests': {
    result: 'passes',
    without: {
      'the finding names the fault of the peer and what to do':
        'a TLS target is reached only with verification off, so its certificate is not checked',
    },
  },
  'verbs-dial': { result: 'passes' },
  'verbs-media': { result: 'passes' },
  'verbs-rooms': { result: 'passes' },
  voice: { result: 'passes' },
} as const satisfies Readonly<Record<string, OnDrachtio>>

type Listed = typeof ON_DRACHTIO
type Title = {
  [File in keyof Listed]: Listed[File] extends { without: infer Tests } ? keyof Tests : never
}[keyof Listed]

const FILES: Readonly<Record<string, OnDrachtio>> = ON_DRACHTIO

/** Returns the `skip` option of a test: the reason, or false on the embedded edge and for a test not in the list. */
export function embeddedOnly(title: string): string | false {
  if (DRACHTIO_PROGRAM === null) return false
  return Object.values(FILES).find(({ without }) => without?.[title] !== undefined)?.without?.[title] ?? false
}

/** Returns the title and the options of a listed test: `t.test(...onEmbedded('title'), async t => …)`. */
export const onEmbedded = (title: Title): [string, { readonly skip: string | false }] => [
  title,
  { skip: embeddedOnly(title) },
]

/** Returns a row for each flow file: its name, its result on the embedded edge and behind a drachtio-server. */
export const edgeRows = (files: readonly string[]): string[][] =>
  files.map(file => {
    const { result, why, without = {} }: Partial<OnDrachtio> = FILES[file] ?? {}
    const left_out = Object.entries(without).map(([title, reason]) => `“${title}” is skipped: ${reason}`)
    const notes = [...(why === undefined ? [] : [why]), ...left_out].join('; ')
    return [`\`${file}\``, 'passes', `${result ?? 'not run. It was added later'}${notes === '' ? '' : `. ${notes}`}`]
  })

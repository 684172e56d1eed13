import pino from 'pino'
import { readBody } from '../../../../core/domain/sip/body.ts'
import type { AdmissionContext } from '../../../../signaling/admission/context.ts'
import { receiveInvite } from '../../../../signaling/admission/receive.ts'
import type { InboundInvite, ResponseOptions } from '../../../../signaling/drachtio/types.ts'
import type { DigestAuthenticator } from '../../../../signaling/trunks/digest.ts'
import { EMPTY_SNAPSHOT, type TrunkConfig } from '../../../../signaling/trunks/snapshot.ts'
import t from '../../../support/harness/index.ts'

// Every INVITE that does not become a call is counted and answered once, whichever step refuses it.

const trunk = { id: 'trk_1', project_id: 'prj_1', subaccount_id: null, targets: [] } as unknown as TrunkConfig

/** Receives an INVITE of a trunk's authenticated peer. Returns what was answered and counted. */
async function received(headers: Record<string, string>, body = '', changes: Partial<AdmissionContext> = {}) {
  const answers: { status: number; headers: Record<string, string> }[] = []
  const counted: string[] = []
  const invite = {
    ...{ method: 'INVITE', uri: 'sip:+2348030000001@strowger.test', call_id: 'c', headers, body },
    header: (name: string) => headers[name.toLowerCase()] ?? null,
    content: () => readBody(body, { type: headers['content-type'] ?? null, disposition: null, encoding: null }),
    source: { address: '192.0.2.1', port: 5060, transport: 'udp' },
    progress: async () => undefined,
    refuse: (status: number, options: ResponseOptions = {}) =>
      void answers.push({ status, headers: { ...options.headers } }),
  } as unknown as InboundInvite
  const ctx = {
    ...{ config: { domain: 'strowger.test' }, log: pino({ level: 'silent' }), draining: () => false },
    ...{ media: { connected: true }, calls: new Map(), state: { db: null } },
    snapshot: () => ({ ...EMPTY_SNAPSHOT, trunks: new Map([[trunk.id, trunk]]) }),
    metrics: { refusals: { inc: ({ reason }: { reason: string }) => void counted.push(reason) } },
    ...changes,
  } as unknown as AdmissionContext
  const digest = { check: () => ({ kind: 'authenticated', trunk_id: trunk.id }) } as unknown as DigestAuthenticator
  await receiveInvite(ctx, digest, invite)
  return { answers, counted }
}

const SDP = 'v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 70000 RTP/AVP 8\r\n'

t.test('a refusal of any step is counted and answered once, those by SIP alone too', async t => {
  t.match(await received({ supported: 'timer', 'session-expires': '30' }), {
    answers: [{ status: 422, headers: { 'Min-SE': '90' } }],
    counted: ['sip_422'],
  })
  t.match(await received({ replaces: 'no dialog' }), { answers: [{ status: 400 }], counted: ['sip_400'] })
  const unusable = await received({ 'content-type': 'application/sdp' }, SDP)
  t.match(unusable, { answers: [{ status: 488 }], counted: ['no_common_codec'] })
  t.match(unusable.answers[0]?.headers['Warning'], /the SDP of the offer cannot be used: /)
  t.match(await received({ 'max-forwards': '0' }), { answers: [{ status: 483 }], counted: ['too_many_hops'] })
  t.match(await received({ 'content-type': 'text/html' }, '<p>'), {
    answers: [{ status: 415, headers: { Accept: /application\/sdp/ } }],
    counted: ['body_unsupported'],
  })
})

t.test('a call that was diverted more often than any network allows goes round, and is refused', async t => {
  const numbers = (count: number) =>
    Array.from({ length: count }, (_, at) => `<sip:+23420100000${10 + at}@pbx.example>`)
  const diversion = (count: number) => numbers(count).map(by => `${by};reason=unconditional`)
  const loop = { answers: [{ status: 482 }], counted: ['loop_detected'] }
  for (const [what, headers] of [
    ['a forwarder adds its number', { diversion: diversion(15).join(', ') }],
    ['it counts', { diversion: `${diversion(1)};counter=15` }],
    ['it adds where it sends the call', { 'history-info': numbers(16).join(', ') }],
  ] as const)
    t.match(await received(headers), loop, what)
  for (const headers of [
    { diversion: diversion(14).join(', ') },
    {
      diversion: diversion(6)
        .map((by, at) => `${by};counter=${6 - at}`)
        .join(', '),
    },
    { 'history-info': Array.from({ length: 30 }, () => numbers(1)[0]).join(', ') },
  ])
    t.notOk((await received(headers)).counted.includes('loop_detected'), JSON.stringify(headers))
})

t.test('a step that fails unexpectedly is counted and answered once', async t => {
  const broken = () => {
    throw new Error('broken')
  }
  t.match(await received({}, '', { snapshot: broken }), { answers: [{ status: 500 }], counted: ['sip_500'] })
  t.match(await received({}, '', { gate: null as never }), {
    answers: [{ status: 503 }],
    counted: ['state_unavailable'],
  })
})

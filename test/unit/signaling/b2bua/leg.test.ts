import { EventEmitter } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import pino from 'pino'
import { systemClock } from '../../../../core/runtime/clock.ts'
import { InboundLeg } from '../../../../signaling/b2bua/inbound-leg.ts'
import type { LegListener } from '../../../../signaling/b2bua/leg.ts'
import type { LegPolicy } from '../../../../signaling/b2bua/media.ts'
import { OutboundLeg } from '../../../../signaling/b2bua/outbound-leg.ts'
import type { LegServices } from '../../../../signaling/b2bua/services.ts'
import type {
  Dialog,
  DialogHandler,
  Headers,
  InboundInvite,
  InboundRequest,
  InviteOptions,
  InviteProgress,
  InviteResult,
  SipResponse,
} from '../../../../signaling/drachtio/types.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import t from '../../../support/harness/index.ts'
import { AGREED, legServices, sessionWith } from '../../../support/one-leg.ts'

// Orders of events at a leg that are rare in a real network. The leg is real, and so is its media session; the SIP
// stack and the media worker are fakes.

const SOURCE = { address: '192.0.2.1', port: 5060, transport: 'udp' } as const

function message(headers: Record<string, string> = {}, body = '') {
  const content = () => ({ sdp: body, parts: [], refused: null, notes: [] })
  return { call_id: 'c', headers, header: (name: string) => headers[name] ?? null, body, content, source: SOURCE }
}

/** Makes a request that records the codes of its responses. */
function request(method: string, headers: Record<string, string> = {}, body = '') {
  const answers: number[] = []
  const made: InboundRequest = {
    ...message(headers, body),
    method,
    uri: 'sip:x',
    respond: status => void answers.push(status),
  }
  return { made, answers }
}

const response = (status: number, body = '', headers: Record<string, string> = {}): SipResponse => ({
  ...message(headers, body),
  status,
  reason: '',
})
const asPeer: Parameters<DialogHandler>[1] = { server_end: null }

const POLICY: LegPolicy = {
  ...{ codecs: ['PCMU'], security: 'rtp', source_validation: 'relaxed', sources: [], signalled_from: null },
  telephone_event: true,
}

/** The SIP stack of a leg that is called. */
const CALLED: LegServices['sip'] = {
  invite: () => {
    throw new Error('a leg that is called sends no INVITE')
  },
}
const called = { clock: systemClock, sip: CALLED }

async function stage() {
  const log: string[] = []
  const byes: Headers[] = []
  /** The answers that were given to the media worker. */
  const taken: string[] = []
  const waits = { answer: Promise.resolve() }
  const events = new EventEmitter()
  const session = await sessionWith(async (method, { sdp = '' }) => {
    if (method === 'leg.remote_answer') {
      taken.push(sdp)
      await waits.answer
    }
    return { ...AGREED, hold: sdp === 'v=0 held' }
  }, events)
  const dialog: Dialog = {
    id: 'd',
    call_id: 'c',
    remote_target: 'sip:x',
    local_tag: 'ours',
    remote_tag: 'theirs',
    ended: false,
    request: async () => response(200),
    bye: async (headers = {}) => void byes.push(headers),
  }
  const nothing = (): void => undefined
  const listener: LegListener = {
    ended: (_leg, { cause }) => void log.push(`ended: ${cause}`),
    digit: (_leg, digit) => void log.push(`key ${digit}`),
    ...{ refer: nothing, notify: nothing, held: nothing, measured: nothing, message: nothing, media: nothing },
  }
  return { log, byes, taken, waits, session, dialog, listener, events }
}

async function outbound() {
  const invites: Headers[] = []
  const { log, byes, taken, waits, session, dialog, listener } = await stage()
  let settle: (result: InviteResult) => void = () => undefined
  let progress: InviteProgress | null = null
  const sip = {
    invite({ headers }: InviteOptions, given: InviteProgress) {
      invites.push(headers)
      progress = given
      const result = new Promise<InviteResult>(resolve => {
        settle = resolve
      })
      return { result, cancel: () => void log.push('CANCEL') }
    },
  }
  const leg = new OutboundLeg(legServices({ clock: systemClock, sip }), {
    id: 'b',
    session,
    log: pino({ level: 'silent' }),
    listener: { ...listener, sent: () => undefined, progress: () => undefined },
  })
  const handle: DialogHandler = (made, facts) => progress?.handler(made, facts)
  const hear = (heard: SipResponse): void => progress?.provisional?.(heard)
  const answer = (final = response(200, 'v=0 theirs')): void => settle({ kind: 'answered', dialog, response: final })
  const refuse = (final = response(487)): void => settle({ kind: 'refused', response: final })
  return { leg, log, byes, taken, waits, handle, hear, answer, refuse, invites }
}

t.test('of two forks with early media, the one that answers without SDP has the media', async t => {
  for (const [answers, taken_then] of [
    ['one', ['v=0 one']],
    ['two', []],
    // Its tag is in none of the 18x: the media stays as it is.
    ['three', []],
  ] as const) {
    const { leg, taken, hear, answer } = await outbound()
    const placed = leg.place({ uri: 'sip:x', headers: {} })
    await turn()
    const of = (tag: string) => ({ to: `<sip:x>;tag=${tag}` })
    for (const tag of ['one', 'two']) hear(response(183, `v=0 ${tag}`, of(tag)))
    answer(response(200, '', of(answers)))
    t.equal((await placed).kind, 'answered')
    t.same(taken, ['v=0 one', 'v=0 two', ...taken_then], `${answers} answers`)
  }
})

t.test('a callee that hangs up while its answer is applied is reported as answered, then as ended', async t => {
  const { leg, log, waits, handle, answer } = await outbound()
  let taken: () => void = () => undefined
  waits.answer = new Promise(resolve => {
    taken = resolve
  })
  const placed = leg.place({ uri: 'sip:x', headers: {} }).then(outcome => log.push(outcome.kind))
  await turn()
  answer()
  await turn()
  const bye = request('BYE')
  handle(bye.made, asPeer)
  t.same(bye.answers, [200])
  t.same(log, ['CANCEL'], 'nothing is reported before the answer; the CANCEL after the 200 has no effect')
  taken()
  await placed
  await turn()
  t.same(log, ['CANCEL', 'answered', 'ended: hung_up'])
})

t.test('a callee that hangs up before its final response gets a CANCEL for its INVITE', async t => {
  const { leg, log, handle, refuse } = await outbound()
  const placed = leg.place({ uri: 'sip:x', headers: {} }).then(outcome => log.push(outcome.kind))
  await turn()
  const bye = request('BYE')
  handle(bye.made, asPeer)
  t.same(bye.answers, [200])
  refuse()
  await placed
  await turn()
  t.same(log, ['CANCEL', 'refused'])
})

t.test('a 200 that crosses our CANCEL gets a BYE', async t => {
  const { leg, log, byes, answer } = await outbound()
  const placed = leg.place({ uri: 'sip:x', headers: {} }).then(outcome => log.push(outcome.kind))
  await turn()
  await leg.end(null)
  answer()
  await placed
  t.same(log, ['CANCEL', 'failed'])
  t.equal(byes.length, 1)
})

t.test('a called leg keeps the address and the custom headers of its answer', async t => {
  const { leg, answer } = await outbound()
  const placed = leg.place({ uri: 'sip:x', headers: {} })
  await turn()
  t.equal(leg.answer, null)
  const headers = { 'X-Desk': '7', 'User-to-User': '00', Server: 'desk', 'X-Strowger-CallSid': 'CA2' }
  const final = response(200, 'v=0 theirs', headers)
  answer(final)
  await placed
  t.same(leg.answer, { headers: { 'X-Desk': '7', 'User-to-User': '00' }, address: final.source.address })
})

t.test('a 422 is followed once, by an INVITE with its Min-SE, or without a timer when it has none', async t => {
  for (const [min_se, then] of [
    ['3600', { expires: '3600', least: '3600' }],
    [null, { expires: undefined, least: undefined }],
    ['90', { expires: undefined, least: undefined }],
    ['4000000000', { expires: undefined, least: undefined }],
  ] as const) {
    const { leg, refuse, invites } = await outbound()
    const placed = leg.place({ uri: 'sip:x', headers: {} })
    for (let turns = 0; turns < 3; turns++) {
      await turn()
      refuse(response(422, '', min_se === null ? {} : { 'min-se': min_se }))
    }
    t.match(await placed, { kind: 'refused', response: { status: 422 } })
    t.same(
      invites.map(headers => ({ expires: headers['Session-Expires'], least: headers['Min-SE'] })),
      [{ expires: '1800', least: '90' }, then],
      `Min-SE: ${min_se}`,
    )
  }
})

t.test('an offer that comes while our INVITE has no answer gets 491', async t => {
  const { leg, hear, handle, answer, waits } = await outbound()
  const update = (body: string) => {
    const { made, answers } = request('UPDATE', {}, body)
    handle(made, asPeer)
    return answers
  }
  const placed = leg.place({ uri: 'sip:x', headers: {} })
  await turn()
  hear(response(180, '', { to: '<sip:x>;tag=one' }))
  const first = update('v=0 their offer')
  await turn()
  t.same(first, [491], 'RFC 3311 §5.2')
  t.same(update(''), [200], 'one without an offer changes no session')
  let applied = (): void => undefined
  waits.answer = new Promise(resolve => {
    applied = resolve
  })
  hear(response(183, 'v=0 theirs', { to: '<sip:x>;tag=one' }))
  await turn()
  const second = update('v=0 their offer')
  await turn()
  t.same(second, [200], 'our offer has its answer, which is being applied')
  applied()
  answer()
  t.equal((await placed).kind, 'answered')
})

/** An INVITE of a caller; `does` is what this test looks at. */
const inviteOf = (content: ReturnType<typeof message>, does: Partial<InboundInvite>): InboundInvite => ({
  ...content,
  method: 'INVITE',
  uri: 'sip:x',
  onEarly: () => undefined,
  onCancel: () => undefined,
  progress: async () => undefined,
  refuse: () => undefined,
  accept: () => Promise.reject(new Error('this INVITE is not answered')),
  ...does,
})

async function inbound() {
  const { log, byes, taken, session, dialog, listener } = await stage()
  let handler: DialogHandler = () => undefined
  const invite = inviteOf(message({}, 'v=0 theirs'), {
    refuse: status => void log.push(`refused ${status}`),
    async accept(_answer, given) {
      handler = given
      return dialog
    },
  })
  const leg = new InboundLeg(legServices(called), {
    id: 'a',
    session,
    log: pino({ level: 'silent' }),
    listener,
    invite,
  })
  await leg.answer()
  return { leg, log, byes, taken, dialog, handle: (made: InboundRequest, facts = asPeer) => handler(made, facts) }
}

t.test('a re-INVITE that its CANCEL ends before our 200 is followed by one of ours, which agrees again', async t => {
  const { dialog, taken, handle } = await inbound()
  const sent: string[] = []
  dialog.request = async method => {
    sent.push(method)
    return response(200, 'v=0 as before')
  }
  const kept = request('INVITE', {}, 'v=0 moved')
  const turns = async (until: () => boolean) => {
    for (let n = 0; n < 50 && !until(); n++) await turn()
  }
  handle(kept.made, asPeer)
  await turns(() => kept.answers.length > 0)
  t.same([kept.answers, sent], [[200], []], 'its 200 was sent')
  const cancelled = request('INVITE', {}, 'v=0 moved again')
  handle({ ...cancelled.made, respond: (_status, options) => options?.unsent?.() }, asPeer)
  await turns(() => taken.length > 0)
  t.same([sent, taken], [['INVITE'], ['v=0 as before']])

  // Without an offer, ours is taken back: the next exchange may begin.
  const empty = request('INVITE')
  handle({ ...empty.made, respond: (_status, options) => options?.unsent?.() }, asPeer)
  await turns(() => false)
  const next = request('INVITE', {}, 'v=0 next')
  handle(next.made, asPeer)
  await turns(() => next.answers.length > 0)
  t.same(next.answers, [200])
})

/** A leg that is called by an INVITE with these headers. It keeps what it tells the caller before its answer. */
async function ringing(
  headers: Record<string, string> = {},
  acknowledged: () => Promise<void> = async () => undefined,
) {
  const { session, listener, dialog } = await stage()
  const said: { status: number; body?: string; reliable?: boolean }[] = []
  const clock = new ManualClock()
  let early: DialogHandler = () => undefined
  const invite = inviteOf(message(headers, 'v=0 theirs'), {
    onEarly: given => {
      early = given
    },
    progress: (status, { body, reliable } = {}) => {
      said.push({ status, ...(body ? { body } : {}), ...(reliable ? { reliable } : {}) })
      return reliable ? acknowledged() : Promise.resolve()
    },
    accept: async () => dialog,
  })
  const leg = new InboundLeg(legServices({ ...called, clock }), {
    id: 'a',
    session,
    log: pino({ level: 'silent' }),
    listener,
    invite,
  })
  return { leg, clock, said, handle: (made: InboundRequest) => early(made, asPeer) }
}

t.test('an offer that comes while the INVITE has no answer of ours gets 500 with Retry-After', async t => {
  const { leg, handle } = await ringing({ supported: '100rel' })
  leg.ring()
  const retries: (string | undefined)[] = []
  const [first, second] = [request('UPDATE', {}, 'v=0 1'), request('UPDATE', {}, 'v=0 2')]
  const respond: InboundRequest['respond'] = (status, options) => {
    retries.push(options?.headers?.['Retry-After'])
    first.made.respond(status)
  }
  handle({ ...first.made, respond })
  await turn()
  t.same([first.answers, retries.length], [[500], 1], 'RFC 3311 §5.2')
  t.match(retries[0], /^\d+$/)
  await leg.early()
  handle(second.made)
  await turn()
  t.same(second.answers, [200], 'the offer of the INVITE has its answer')
})

t.test('a caller that has heard nothing for 50 s gets a 183', async t => {
  const { leg, clock, said } = await ringing()
  clock.advance(59_000)
  t.same(said, [{ status: 183 }])
  leg.ring()
  t.same(said, [{ status: 183 }, { status: 180 }], 'a 180 can still follow')
})

t.test('a caller hears again each minute what it was told last, until the answer', async t => {
  const rings = await ringing()
  rings.leg.ring()
  rings.clock.advance(110_000)
  const [ring, media] = [{ status: 180 }, { status: 183, body: 'v=0 ours' }]
  t.same(rings.said, [ring, ring, ring], 'a proxy on the way gives up after 2 or 3 minutes without one')
  await rings.leg.early()
  rings.clock.advance(59_000)
  t.same(rings.said.slice(3), [media, media], 'the same answer to its offer')
  await rings.leg.answer()
  rings.clock.advance(300_000)
  t.equal(rings.said.length, 5)

  const required = await ringing({ require: '100rel' })
  required.leg.ring()
  required.clock.advance(59_000)
  const reliable = { status: 180, reliable: true }
  t.same(required.said, [reliable, reliable])
  await required.leg.early()
  required.clock.advance(59_000)
  t.same(
    required.said.slice(2),
    [
      { ...media, reliable: true },
      { status: 183, reliable: true },
    ],
    'it has our answer',
  )

  const ended = await ringing({ supported: '100rel' })
  await ended.leg.early()
  ended.clock.advance(59_000)
  t.same(ended.said, [{ ...media, reliable: true }, { status: 183 }])
  await ended.leg.end(null)
  ended.clock.advance(300_000)
  t.equal(ended.said.length, 2)
})

t.test('early media of a caller that requires 100rel waits for the PRACK of the 180', async t => {
  const pracks: (() => void)[] = []
  const { leg, said } = await ringing({ require: '100rel' }, () => new Promise(resolve => pracks.push(resolve)))
  leg.ring()
  const early = leg.early()
  await turn()
  t.same(said, [{ status: 180, reliable: true }], 'RFC 3262 §3: one unacknowledged response at a time')
  pracks[0]?.()
  t.equal(await early, true)
  t.same(said.at(-1), { status: 183, body: 'v=0 ours', reliable: true })

  const other = await ringing({ require: '100rel' }, () => new Promise(resolve => pracks.push(resolve)))
  other.leg.ring()
  const late = other.leg.early()
  await turn()
  const answering = other.leg.answer()
  pracks.at(-1)?.()
  await Promise.all([late, answering])
  t.same(other.said, [{ status: 180, reliable: true }], 'a 200 that waits already has our SDP')
})

t.test(
  'an INVITE without an offer that requires 100rel gets ours in a reliable 180; the PRACK has the answer',
  async t => {
    const { session, listener, dialog, taken } = await stage()
    const said: object[] = []
    let early: DialogHandler = () => undefined
    const invite = inviteOf(message({ require: '100rel' }), {
      onEarly: given => {
        early = given
      },
      progress: async (status, { body, reliable } = {}) => void said.push({ status, body, reliable }),
      async accept({ body }) {
        said.push({ status: 200, body })
        return dialog
      },
    })
    const leg = new InboundLeg(legServices(called), {
      id: 'a',
      session,
      log: pino({ level: 'silent' }),
      listener,
      invite,
    })
    leg.ring()
    await turn()
    t.same(said, [{ status: 180, body: 'v=0 ours', reliable: true }])
    const update = request('UPDATE', {}, 'v=0 their offer')
    early(update.made, asPeer)
    await turn()
    t.same(update.answers, [491], 'our offer is open (RFC 3311 §5.2)')
    const answering = leg.answer()
    const prack = request('PRACK', {}, 'v=0 theirs')
    early(prack.made, asPeer)
    await answering
    t.same(prack.answers, [200])
    t.same(taken, ['v=0 theirs'])
    t.same(said.at(-1), { status: 200, body: undefined }, 'the exchange is complete')
  },
)

t.test('our BYE waits for the ACK of our 200, and is sent once', async t => {
  const { leg, byes, handle } = await inbound()
  await leg.end('Q.850;cause=16')
  t.same(byes, [])
  handle(request('ACK').made)
  t.same(byes, [{ Reason: 'Q.850;cause=16' }])
  const late = request('INVITE', {}, 'v=0')
  handle(late.made)
  t.same(late.answers, [481], 'a request after the BYE belongs to no call')
})

t.test('after the ACK our BYE is sent at once', async t => {
  const { leg, byes, handle } = await inbound()
  handle(request('ACK').made)
  await leg.end(null)
  t.same(byes, [{}])
})

t.test('a leg reports why the SIP server ended its dialog', async t => {
  for (const [server_end, cause] of [
    ['session_expired', 'session_expired'],
    ['no_ack', 'no_ack'],
    ['other', 'hung_up'],
  ] as const) {
    const { log, handle } = await inbound()
    handle(request('BYE').made, { server_end })
    t.same(log, [`ended: ${cause}`])
  }
})

t.test('a leg refuses an offer while another exchange is open, until the ACK with the answer', async t => {
  const { handle } = await inbound()
  handle(request('ACK').made)
  const [first, second] = [request('INVITE', {}, 'v=0 1'), request('UPDATE', {}, 'v=0 2')]
  handle(first.made)
  handle(second.made)
  await turn()
  t.same([first.answers, second.answers], [[200], [500]])
  const late = request('INVITE')
  handle(late.made)
  await turn()
  t.same(late.answers, [200])
  const between = request('UPDATE', {}, 'v=0 3')
  handle(between.made)
  t.same(between.answers, [491], 'our offer is still open')
  handle(request('ACK', {}, 'v=0 4').made)
  await turn()
  const after = request('INVITE', {}, 'v=0 5')
  handle(after.made)
  await turn()
  t.same(after.answers, [200])
})

t.test('a browser that waits for the answer before it sends is not silent since our early SDP', async t => {
  for (const [kind, silences] of [
    ['webrtc', [20_000, 60_000]],
    ['rtp', [90_000, 130_000]],
  ] as const) {
    const { session, listener, dialog, events } = await stage()
    const clock = new ManualClock()
    const invite = inviteOf(message({}, 'v=0 theirs'), { accept: async () => dialog })
    const options = { id: 'a', session, log: pino({ level: 'silent' }), listener, invite }
    const leg = new InboundLeg(legServices({ ...called, clock }), options)
    await leg.openMedia(POLICY, kind)
    await leg.early()
    clock.advance(70_000)
    await leg.answer()
    t.equal(leg.silent_ms, 0)
    clock.advance(20_000)
    events.emit('leg.silent', { leg_id: 'a', for_ms: 90_000 })
    const first = leg.silent_ms
    clock.advance(40_000)
    events.emit('leg.silent', { leg_id: 'a', for_ms: 130_000 })
    t.same([first, leg.silent_ms], silences, kind)
  }
})

t.test('a browser that sends no ICE checks is silent on hold, too', async t => {
  const { session, listener, dialog, events } = await stage()
  const clock = new ManualClock()
  const invite = inviteOf(message({}, 'v=0 theirs'), { accept: async () => dialog })
  const options = { id: 'a', session, log: pino({ level: 'silent' }), listener, invite }
  const leg = new InboundLeg(legServices({ ...called, clock }), options)
  await leg.openMedia(POLICY, 'webrtc')
  await leg.answer()
  clock.advance(100_000)
  const silent = (for_ms: number, fields: object = {}) => {
    events.emit('leg.silent', { leg_id: 'a', for_ms, ...fields })
    return leg.silent_ms
  }
  t.equal(silent(20_000), 20_000)
  await leg.takeOffer('v=0 held')
  t.equal(silent(60_000), 0, 'a hold may be silent')
  t.equal(silent(60_000, { no_consent: true }), 60_000)
  t.equal(silent(0, { no_consent: true }), 0, 'it is there again')
  silent(60_000, { no_consent: true })
  await leg.takeOffer('v=0 theirs')
  t.equal(leg.silent_ms, 0, 'it has sent an offer')
})

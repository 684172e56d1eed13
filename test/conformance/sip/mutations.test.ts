import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import pino from 'pino'
import { applicationHeaders } from '../../../core/domain/calls/custom-headers.ts'
import { readSdp } from '../../../core/domain/codecs/sdp.ts'
import { hasToken, readReasons, readSeconds, readSessionExpires } from '../../../core/domain/sip/values.ts'
import { type Clock, systemClock } from '../../../core/runtime/clock.ts'
import { readInvite } from '../../../signaling/admission/read-invite.ts'
import { connectStack } from '../../../signaling/drachtio/stack.ts'
import type { InboundInvite, SipRequest, SipResponse, SipStack } from '../../../signaling/drachtio/types.ts'
import { createEdge } from '../../../signaling/edge/index.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { MUTATIONS, randomOf } from '../../support/sip-mutations.ts'
import { asRefusal, headerOf, type WorldCase, worldCases, writtenCase } from '../../support/sip-world.ts'
import { PATIENCE_MS } from '../../support/wait.ts'
import { testClock } from '../edge/test-clock.ts'

// Takes every message of fixtures/sip/world through harmless changes. What we read of it must stay the same: over the
// wire, through the edge and the control link, by the readers that admission uses.

const AT_ONCE = 40
const SEED = 39
const PEER = { kind: 'trunk', trunk: { country: 'NG' } } as Parameters<typeof readInvite>[0]

/** Everything that admission reads of an INVITE before it asks the state. */
function readingOf(invite: InboundInvite): object {
  const { peer: _, ...asked } = readInvite(PEER, invite, new Map())
  return { asked, ...readingOfAny(invite), replaces: invite.header('replaces') }
}

/** What a message says whichever way it goes. */
function readingOfAny(message: SipRequest | SipResponse): object {
  const { sdp, refused } = message.content()
  return {
    refused: refused ?? null,
    sdp: sdp === '' ? null : readSdp(sdp, () => message.source.address),
    told: Object.entries(applicationHeaders(message.headers))
      .map(([name, value]) => `${name.toLowerCase()}: ${value.replaceAll(/\s*,\s*/g, ',')}`)
      .sort(),
    expires: readSessionExpires(message.header('session-expires') ?? message.header('x')),
    min_se: readSeconds(message.header('min-se')),
    reasons: readReasons(message.header('reason')),
    reliable: hasToken(message.header('require'), '100rel'),
    updates: hasToken(message.header('allow'), 'UPDATE'),
  }
}

/** An edge, signaling's link to it, and a peer's socket. */
async function town(t: Test, clock: Clock) {
  const edge = await createEdge({
    listeners: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    control: { host: '127.0.0.1', port: 0, secret: 'cymru' },
    clock,
    isConfiguredSource: () => true,
  })
  const sip = connectStack({
    ...{ host: '127.0.0.1', port: edge.control.port, secret: 'cymru', log: pino({ level: 'silent' }), clock },
    ...{ reliable: true, served: { hosts: ['127.0.0.1'], sip_port: 5060, sips_port: 5061, ws_port: 5066 } },
  })
  t.teardown(() => {
    sip.close()
    edge.close()
  })
  await new Promise<void>(resolve => sip.onLink(up => up && resolve()))
  const port = edge.listeners[0]?.port ?? 0
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const places = {
    platform: { host: '127.0.0.1', port },
    caller: '+2342010000001',
    peer: { ip: '127.0.0.1', port: socket.address().port },
    media_port: 40_000,
  }
  const send = (message: string): void => void socket.send(Buffer.from(message, 'latin1'), port, '127.0.0.1')
  return { sip, socket, places, send }
}

/** Takes each message through each change, many at once, and compares the outcomes. */
async function compareAll(
  t: Test,
  outcomeOf: (one: WorldCase, change: Change) => Promise<object | null>,
): Promise<void> {
  const counts = new Map<string, number>()
  const work = worldCases()
  const next = async (): Promise<void> => {
    for (let one = work.shift(); one; one = work.shift()) {
      const plain = await outcomeOf(one, same => same)
      for (const [at, [what, mutation]] of Object.entries(MUTATIONS).entries()) {
        const outcome = await outcomeOf(one, same => mutation(same, randomOf(SEED + at)))
        if (!outcome) continue
        counts.set(what, (counts.get(what) ?? 0) + 1)
        t.same(outcome, plain, `${one.name}: ${what}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  for (const what of Object.keys(MUTATIONS)) t.ok((counts.get(what) ?? 0) > 0, `${what}: ${counts.get(what)} messages`)
}

/** Returns the changed message; null when the change does not apply. */
type Change = (one: WorldCase) => WorldCase | null

t.test('no harmless change of a message of the corpus changes what is read of it', { timeout: 300_000 }, async t => {
  const { sip, socket, places, send } = await town(t, testClock())
  const readings = new Map<string, object>()
  sip.onInvite(invite => {
    readings.set(invite.call_id, readingOf(invite))
    invite.refuse(480)
  })
  const waiting = new Map<string, (final: string) => void>()
  socket.on('message', data => {
    const text = data.toString('latin1')
    if (!text.startsWith('SIP/2.0 1')) waiting.get(headerOf(text, 'Call-ID') ?? '')?.(text)
  })
  let sent = 0
  /** Sends a message; resolves with the final status of the edge or of admission, and what admission read. */
  await compareAll(t, async (one, change) => {
    const changed = change(one)
    if (!changed) return null
    const n = ++sent
    const call_id = `mutation-${n}`
    const text = writtenCase(changed, places, { call_id, n })
    const final = await new Promise<string>((resolve, reject) => {
      waiting.set(call_id, resolve)
      setTimeout(() => reject(new Error(`no final answer to\n${text}`)), PATIENCE_MS).unref()
      send(text)
    })
    waiting.delete(call_id)
    const line = (name: string): string => `${name}: ${headerOf(final, name)}`
    const uri = changed.start.split(' ')[1] ?? ''
    const ack = [`ACK ${uri} SIP/2.0`, `Via: ${headerOf(text, 'Via', 'v')}`, line('From'), line('To'), line('Call-ID')]
    send(
      [...ack, `CSeq: ${/\d+/.exec(headerOf(text, 'CSeq') ?? '')?.[0]} ACK`, 'Content-Length: 0', '', ''].join('\r\n'),
    )
    return { status: Number(final.slice(8, 11)), read: readings.get(call_id) ?? null }
  })
})

t.test('nor what is read of an answer with its headers and its body', { timeout: 300_000 }, async t => {
  const { sip, socket, places, send } = await town(t, systemClock)
  const answers = new Map<string, (invite: string) => string>()
  socket.on('message', data => {
    const text = data.toString('latin1')
    const answer = text.startsWith('INVITE ') ? answers.get(/^INVITE sip:([^@]+)@/.exec(text)?.[1] ?? '') : undefined
    if (answer) send(answer(text))
  })
  let asked = 0
  await compareAll(t, async (one, change) => {
    const n = ++asked
    const key = `answer-${n}`
    let applies = true
    answers.set(key, invite => {
      const changed = change(asRefusal(one, invite))
      applies = changed !== null
      return writtenCase(changed ?? asRefusal(one, invite), places, { call_id: key, n })
    })
    const response = await answered(sip, `sip:${key}@127.0.0.1:${places.peer.port}`)
    answers.delete(key)
    return applies ? { status: response.status, ...readingOfAny(response) } : null
  })
})

/** Sends an INVITE; resolves with the response that refuses it. */
async function answered(sip: SipStack, uri: string): Promise<SipResponse> {
  const { result } = sip.invite({ uri, headers: {}, body: 'v=0\r\n' }, { handler: request => request.respond(500) })
  const outcome = await result
  if (outcome.kind !== 'refused') throw new Error(`the INVITE to ${uri} was not refused`)
  return outcome.response
}

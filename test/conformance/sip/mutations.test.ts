import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import pino from 'pino'
import { toldHeaders } from '../../../core/domain/calls/custom-headers.ts'
import { readSdp } from '../../../core/domain/codecs/sdp.ts'
import { readSessionExpires } from '../../../core/domain/sip/values.ts'
import { readInvite } from '../../../signaling/admission/read-invite.ts'
import { connectStack } from '../../../signaling/drachtio/stack.ts'
import type { InboundInvite } from '../../../signaling/drachtio/types.ts'
import { createEdge } from '../../../signaling/edge/index.ts'
import t from '../../support/harness/index.ts'
import { MUTATIONS, randomOf } from '../../support/sip-mutations.ts'
import { headerOf, type WorldCase, worldCases, writtenCase } from '../../support/sip-world.ts'
import { PATIENCE_MS } from '../../support/wait.ts'
import { testClock } from '../edge/test-clock.ts'

// Takes every message of fixtures/sip/world through harmless changes. What we read of it must stay the same: over the
// wire, through the edge and the control link, by the readers that admission uses.

const AT_ONCE = 40
const SEED = 39
const PEER = { kind: 'trunk', trunk: {} } as Parameters<typeof readInvite>[0]

/** Everything that admission reads of an INVITE before it asks the state. */
function readingOf(invite: InboundInvite): object {
  const { peer: _, ...asked } = readInvite(PEER, invite)
  const { sdp, refused } = invite.content()
  return {
    asked,
    refused: refused ?? null,
    sdp: sdp === '' ? null : readSdp(sdp, () => invite.source.address),
    told: Object.entries(toldHeaders(invite.headers))
      .map(([name, value]) => `${name.toLowerCase()}: ${value.replaceAll(/\s*,\s*/g, ',')}`)
      .sort(),
    expires: readSessionExpires(invite.header('session-expires') ?? invite.header('x')),
    replaces: invite.header('replaces'),
  }
}

t.test('no harmless change of a message of the corpus changes what is read of it', { timeout: 120_000 }, async t => {
  const clock = testClock()
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
  const readings = new Map<string, object>()
  sip.onInvite(invite => {
    readings.set(invite.call_id, readingOf(invite))
    invite.refuse(480)
  })
  const port = edge.listeners[0]?.port ?? 0
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const waiting = new Map<string, (final: string) => void>()
  socket.on('message', data => {
    const text = data.toString('latin1')
    if (!text.startsWith('SIP/2.0 1')) waiting.get(headerOf(text, 'Call-ID') ?? '')?.(text)
  })
  const places = {
    platform: { host: '127.0.0.1', port },
    caller: '+2342010000001',
    peer: { ip: '127.0.0.1', port: socket.address().port },
    media_port: 40_000,
  }
  let sent = 0
  /** Sends a message; resolves with the final status of the edge or of admission, and what admission read. */
  const outcomeOf = async (one: WorldCase): Promise<object> => {
    const n = ++sent
    const call_id = `mutation-${n}`
    const text = writtenCase(one, places, { call_id, n })
    const send = (message: string): void => void socket.send(Buffer.from(message, 'latin1'), port, '127.0.0.1')
    const final = await new Promise<string>((resolve, reject) => {
      waiting.set(call_id, resolve)
      setTimeout(() => reject(new Error(`no final answer to\n${text}`)), PATIENCE_MS).unref()
      send(text)
    })
    waiting.delete(call_id)
    const line = (name: string): string => `${name}: ${headerOf(final, name)}`
    const uri = one.start.split(' ')[1] ?? ''
    const ack = [`ACK ${uri} SIP/2.0`, `Via: ${headerOf(text, 'Via', 'v')}`, line('From'), line('To'), line('Call-ID')]
    send(
      [...ack, `CSeq: ${/\d+/.exec(headerOf(text, 'CSeq') ?? '')?.[0]} ACK`, 'Content-Length: 0', '', ''].join('\r\n'),
    )
    return { status: Number(final.slice(8, 11)), read: readings.get(call_id) ?? null }
  }

  const counts = new Map<string, number>()
  const work = worldCases()
  const next = async (): Promise<void> => {
    for (let one = work.shift(); one; one = work.shift()) {
      const plain = await outcomeOf(one)
      for (const [at, [what, mutation]] of Object.entries(MUTATIONS).entries()) {
        const changed = mutation(one, randomOf(SEED + at))
        if (!changed) continue
        counts.set(what, (counts.get(what) ?? 0) + 1)
        t.same(await outcomeOf(changed), plain, `${one.name}: ${what}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  for (const what of Object.keys(MUTATIONS)) t.ok((counts.get(what) ?? 0) > 0, `${what}: ${counts.get(what)} messages`)
})

import { connect } from 'node:tls'
import pino from 'pino'
import type { AdmissionContext } from '../../../../signaling/admission/context.ts'
import { identify } from '../../../../signaling/admission/peer.ts'
import { answerRefused, InviteRefused } from '../../../../signaling/admission/refuse.ts'
import { connectStack } from '../../../../signaling/drachtio/stack.ts'
import { createEdge } from '../../../../signaling/edge/index.ts'
import type { DigestAuthenticator } from '../../../../signaling/trunks/digest.ts'
import { EMPTY_SNAPSHOT } from '../../../../signaling/trunks/snapshot.ts'
import { finalTo, Peer, request, SDP } from '../../../conformance/edge/peer.ts'
import { testClock } from '../../../conformance/edge/test-clock.ts'
import { testTls } from '../../../conformance/edge/test-tls.ts'
import t from '../../../support/harness/index.ts'

// Unknown peers over real sockets: an edge that judges nobody, as a drachtio-server, and the node's rule.

t.test('a TLS peer whose address no trunk lists learns that address with its 403, and a UDP peer does not', async t => {
  const clock = testClock()
  const log = pino({ level: 'silent' })
  const edge = await createEdge({
    listeners: [
      { protocol: 'tls', host: '127.0.0.1', port: 0 },
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
    ],
    ...{ tls: await testTls(), control: { host: '127.0.0.1', port: 0, secret: 'cymru' }, clock },
  })
  const served = { hosts: ['127.0.0.1'], sip_port: 5060, sips_port: 5061, ws_port: 5066 }
  const { port } = edge.control
  const sip = connectStack({ host: '127.0.0.1', port, secret: 'cymru', log, clock, reliable: false, served })
  t.teardown(() => {
    sip.close()
    edge.close()
  })
  const ctx = {
    ...{ snapshot: () => EMPTY_SNAPSHOT, config: { domain: 'strowger.test' }, log },
    metrics: { refusals: { inc: () => undefined } },
  } as unknown as AdmissionContext
  const digest = { check: () => ({ kind: 'refused' }) } as unknown as DigestAuthenticator
  const known: unknown[] = []
  sip.onInvite(invite => {
    const peer = identify(ctx, digest, invite)
    if (peer instanceof InviteRefused) answerRefused(ctx, invite, peer)
    else known.push(peer)
  })
  await new Promise<void>(resolve => sip.onLink(up => up && resolve()))
  const portOf = (wanted: string): number => edge.listeners.find(({ protocol }) => protocol === wanted)?.port ?? 0

  const secure = connect({ host: '127.0.0.1', port: portOf('tls'), rejectUnauthorized: false })
  t.teardown(() => secure.destroy())
  const over_tls = new Promise<string>((resolve, reject) => {
    let read = ''
    secure.on('data', data => {
      read += data.toString('latin1')
      const final = /SIP\/2\.0 [2-6][\s\S]*\r\n\r\n/.exec(read)
      if (final) resolve(final[0])
    })
    secure.once('error', reject)
  })
  secure.write(request('INVITE', 5061, { via: 'SIP/2.0/TLS', body: SDP }), 'latin1')
  const refused = await over_tls
  t.match(refused, /^SIP\/2\.0 403 /)
  t.match(refused, /\r\nWarning: 399 strowger "127\.0\.0\.1 is in no enabled source of a trunk; list it at the trunk/)

  const peer = await Peer.open(t)
  const invite = request('INVITE', peer.port, { body: SDP })
  peer.send(invite, portOf('udp'))
  const bare = await peer.next(finalTo(invite))
  t.match(bare, /^SIP\/2\.0 403 /)
  t.notMatch(bare, /Warning/)
  t.same(known, [])
})

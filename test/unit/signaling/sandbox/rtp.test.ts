import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { silence, tone } from '../../../../signaling/sandbox/audio.ts'
import { encode, hasSound, type Law } from '../../../../signaling/sandbox/g711.ts'
import { RtpSession } from '../../../../signaling/sandbox/rtp.ts'
import t from '../../../support/harness/index.ts'

const LAWS: readonly Law[] = ['PCMU', 'PCMA']

t.test('a tone is sound, silence and the noise of an idle line are none', async t => {
  const noise = Int16Array.from({ length: 160 }, (_value, at) => (at % 2 ? 1 : -1) * 60)
  for (const law of LAWS) {
    t.ok(hasSound(law, encode(law, tone(440, 20))), law)
    t.ok(
      hasSound(
        law,
        encode(
          law,
          tone(440, 20).map(sample => sample / 10),
        ),
      ),
      `${law}, -30 dBFS`,
    )
    t.notOk(hasSound(law, encode(law, silence(20))), law)
    t.notOk(hasSound(law, encode(law, noise)), law)
    t.notOk(hasSound(law, Buffer.alloc(0)), law)
  }
})

t.test('the callee is spoken to when it hears sound, however long silence came before', async t => {
  const session = await RtpSession.open('127.0.0.1')
  const peer = createSocket('udp4')
  peer.bind(0, '127.0.0.1')
  await once(peer, 'listening')
  t.teardown(() => {
    session.close()
    peer.close()
  })
  session.start({
    address: '127.0.0.1',
    port: peer.address().port,
    law: 'PCMU',
    payload_type: 0,
    event_payload_type: 101,
  })
  session.echo()
  let spoken_to = false
  const heard = session.spokenTo().then(() => {
    spoken_to = true
  })
  const send = (payload: Buffer): void =>
    peer.send(Buffer.concat([Buffer.from('800000000000000000000001', 'hex'), payload]), session.port, '127.0.0.1')
  /** Resolves when the echo returns a payload whose first octet is `mark`. */
  const echoed = async (mark: number): Promise<void> => {
    for (;;) {
      const [packet] = (await once(peer, 'message')) as [Buffer]
      if (packet[12] === mark) return
    }
  }
  // 0xf0 is a magnitude of 120: no silence octet, so the echo shows that the packet was read, and no sound.
  send(Buffer.alloc(160, 0xf0))
  await echoed(0xf0)
  t.notOk(spoken_to)
  send(encode('PCMU', tone(440, 20)))
  await heard
  t.ok(spoken_to)
})

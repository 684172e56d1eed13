import pino from 'pino'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import type { Test } from './harness/index.ts'
import { openRtpPeer } from './rtp-peer.ts'

/** Places a call once. Returns how it is refused. */
export async function refusal(t: Test, host: string, uri: string, from: string) {
  const agent = await UserAgent.open({
    listeners: [{ protocol: 'udp', host, port: 0 }],
    log: pino({ level: 'silent' }),
    user: 'refused',
    incoming: call => call.reject(486),
  })
  t.teardown(() => agent.close())
  const peer = await openRtpPeer({ address: host, codec: 'PCMU' })
  t.teardown(() => peer.close())
  return new Promise<{ status: number; reason: string; retry_after: string }>((resolve, reject) => {
    agent.call(uri, {
      from: `<sip:${from}@${host}>`,
      body: peer.sdp({ address: host }),
      events: {
        answered: () => reject(new Error('the call was answered')),
        failed: response =>
          resolve({
            status: response?.status ?? 0,
            reason: response?.get('reason') ?? '',
            retry_after: response?.get('retry-after') ?? '',
          }),
      },
    })
  })
}

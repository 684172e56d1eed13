import * as werift from 'werift'
import { fingerprintOf } from '../../media/webrtc/browser-transport.ts'

const PROFILE = werift.ProtectionProfileAes128CmHmacSha1_80

/** A browser's side of DTLS, over a transport of the test. */
interface DtlsClient {
  /** SHA-256 of its certificate, as in SDP. */
  readonly fingerprint: string
  /** Takes a datagram of the other side. What is not DTLS is ignored. */
  receive(data: Buffer): void
  /** Runs the handshake. Resolves with the session that encrypts what the browser sends. */
  connect(send: (data: Buffer) => void): Promise<werift.SrtpSession>
}

export async function dtlsClient(): Promise<DtlsClient> {
  const signatureHash = { hash: werift.HashAlgorithm.sha256_4, signature: werift.SignatureAlgorithm.ecdsa_3 } as never
  const made = await werift.CipherContext.createSelfSignedCertificateWithKey(
    signatureHash,
    werift.NamedCurveAlgorithm.secp256r1_23,
  )
  const der = Buffer.from(made.certPem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  const transport = {
    ...{ type: 'udp', address: { address: '', family: '', port: 0 }, closed: false },
    onData: (_data: Buffer, _from: [string, number]): void => undefined,
    send: async (_data: Buffer): Promise<void> => undefined,
    close: async () => undefined,
  }
  const isFirst = firstVerifyRequest()
  return {
    fingerprint: fingerprintOf(der, 'sha-256'),
    receive(data) {
      if ((data[0] ?? 0) >= 20 && (data[0] ?? 0) <= 63 && isFirst(data)) transport.onData(data, ['127.0.0.1', 9])
    },
    async connect(send) {
      transport.send = async data => send(data)
      const dtls = new werift.DtlsClient({
        ...{ cert: made.certPem, key: made.keyPem, signatureHash },
        ...{ transport: transport as never, srtpProfiles: [PROFILE], extendedMasterSecret: true },
      })
      const connected = new Promise<void>((resolve, reject) => {
        dtls.onConnect.subscribe(() => resolve())
        dtls.onError.subscribe(reject)
      })
      await Promise.all([connected, dtls.connect()])
      const keys = dtls.extractSessionKeys(16, 14)
      return new werift.SrtpSession({
        keys: {
          localMasterKey: keys.localKey,
          localMasterSalt: keys.localSalt,
          remoteMasterKey: keys.remoteKey,
          remoteMasterSalt: keys.remoteSalt,
        },
        profile: PROFILE,
      })
    },
  }
}

/** Makes a connection of werift take a repeated HelloVerifyRequest as browsers do. Call it before DTLS begins. */
export function takeRepeats(connection: werift.RTCPeerConnection): void {
  for (const { connection: ice } of connection.iceTransports) {
    const take = ice.onData.execute
    const isFirst = firstVerifyRequest()
    ice.onData.execute = data => {
      if (isFirst(data)) take(data)
    }
  }
}

/**
 * Returns a filter of all but the first HelloVerifyRequest. A server that is late gets two ClientHellos, and answers
 * each. Browsers ignore the second answer; werift's client fails.
 */
function firstVerifyRequest(): (data: Buffer) => boolean {
  let seen = false
  return data => {
    const again = data[0] === 22 && data[13] === 3 && seen
    seen ||= data[0] === 22 && data[13] === 3
    return !again
  }
}
